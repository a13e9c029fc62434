package tcp

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// queue keeps short what waits in front of a connection. That waits in two places: unsent in the
// socket, and sent in the queue of this host's network card. There the kernel puts what it could
// send in a millisecond if there were no queue. So the queue bounds what the socket holds, as long
// as that costs no speed. A state machine without I/O, for the link's writer.
//
// A socket is free until a queue has stood for some measurements. Then it is bounded, lower and
// lower, down to what the path holds and `ahead` besides. If the connection becomes slower with a
// bound, because its writer did not come back before the socket ran dry, the bound is doubled, and
// lowered again later and later. A connection that is slower even with the highest bound, or is
// very fast, is free again.
type queue struct {
	at    time.Duration // of the last measurement,
	acked uint64        // bytes by then,
	busy  time.Duration // and how long something had been unacknowledged, in all
	rate  float64       // lately, bytes per second,
	best  float64       // and the best one of late; 0: not known
	full  bool          // the socket has been, since the last measurement
	stood int           // measurements in a row at which a queue stood; below 0: how many more are not believed
	bound int           // bytes that the socket may hold; 0: free
	hold  int           // measurements for which the bound is not lowered yet,
	next  int           // and for how many it will not be when it has been too low again
}

// sample is what TCP says of a connection.
type sample struct {
	at          time.Duration // when it was taken, on a clock of the connection's
	acked       uint64        // bytes that have been acknowledged, in all
	busy        time.Duration // something was unacknowledged for so long, in all
	trip, least time.Duration // the round trip, lately and at least
	full        bool          // the socket is, or has been since the last sample
}

// measured takes a sample.
func (q *queue) measured(s sample) {
	q.full = q.full || s.full
	busy := s.busy - q.busy
	if d := s.at - q.at; q.full && busy > d/2 { // there was more to send all the time
		busy = d
	}
	if busy < measureFor || busy < 2*s.trip {
		return
	}
	rate := float64(s.acked-q.acked) / busy.Seconds()
	if q.rate > 0 {
		rate = (q.rate + rate) / 2
	}
	q.at, q.acked, q.busy, q.rate = s.at, s.acked, s.busy, rate
	q.best = max(rate, q.best*(1-forget))
	harm := q.full && rate < slower*q.best
	q.full = false
	switch {
	case q.bound > 0 && (q.best > fastest || harm && q.bound == mostHeld):
		q.bound, q.stood = 0, -leaveFor
	case q.bound > 0 && harm:
		q.short()
	case q.bound > 0 && q.hold > 0:
		q.hold--
	case q.bound > 0:
		q.bound = max(q.bound/2, q.enough(s.least))
		q.next = max(q.next-1, holdFor)
	case q.best > fastest || s.least > nearTrip || q.enough(s.least) == mostHeld ||
		s.trip < standing || s.trip < standingShare*s.least || q.stood < 0:
		q.stood = min(q.stood+1, 0)
	default:
		if q.stood++; q.stood == stands {
			q.bound = max(min(int(rate*s.trip.Seconds()), mostHeld), q.enough(s.least))
			q.hold, q.next = 0, holdFor
		}
	}
}

// short: the bound is too low.
func (q *queue) short() {
	q.bound = min(2*q.bound, mostHeld)
	q.hold = q.next
	q.next = min(2*q.next, longestHold)
}

// enough is how many bytes a path with that round trip holds, and those that are ahead.
func (q *queue) enough(least time.Duration) int {
	return min(max(int(q.best*(least+ahead).Seconds()), leastHeld), mostHeld)
}

// bottleneck is the rate of a connection before which a queue stands, 0 of others.
func (q *queue) bottleneck() float64 {
	if q.bound == 0 {
		return 0
	}
	return q.best
}

// watch is the queue of a link's socket, with what it takes to ask the kernel seldom.
type watch struct {
	queue
	since   time.Time // the clock of its samples starts
	written int       // bytes since it was asked
	fulls   int       // times that the socket was full, since
	never   bool      // a bound could not be taken back: this kernel is older than 5.14
}

// wrote follows a write of n bytes; full: the socket takes no more now.
func (w *watch) wrote(fd, n int, full bool) {
	if w.never {
		return
	}
	if full {
		w.fulls++
	}
	if w.written += n; w.written < askAfter && w.fulls < askFull && (w.bound == 0 || !full) {
		return
	}
	var info unix.TCPInfo // what x/sys does for this allocates
	size := uint32(unsafe.Sizeof(info))
	if _, _, e := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0); e != 0 {
		return
	}
	const us = time.Microsecond
	was := w.bound
	w.measured(sample{time.Since(w.since), info.Bytes_acked, time.Duration(info.Busy_time) * us,
		time.Duration(info.Rtt) * us, time.Duration(info.Min_rtt) * us, w.fulls > 0})
	w.written, w.fulls = 0, 0
	w.apply(fd, was)
}

// apply tells the kernel of a bound that was another.
func (w *watch) apply(fd, was int) {
	if w.bound == was {
		return
	}
	// What sets the size turns off that it grows by itself, and is undone by SO_BUF_LOCK.
	if was == 0 || w.bound == 0 {
		w.never = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BUF_LOCK, 0) != nil
	}
	if w.bound > 0 && !w.never {
		w.never = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, w.bound/2) != nil // the kernel doubles it
	}
	if w.never {
		w.bound = 0
	}
}
