// Package standing keeps the queue in front of a connection short: bytes that are unsent in its
// socket, or sent but in the queue of this host's network card. The kernel puts there as much as it
// could send in a millisecond without a queue. Transport tcp asks this package for the bound of a
// socket. Simulations do so for theirs, so that they behave alike. The package has no I/O and no
// clock.
package standing

import "time"

// Queue bounds the bytes in a connection's socket, as long as that does not reduce its rate. It is
// a state machine for the connection's writer.
//
// A socket is free until a queue has stood for some measurements. Then it is bounded to the content
// of the path plus `ahead`. If that makes the connection slower, because its writer did not come
// back before the socket ran dry, the bound is doubled, and lowered again after longer and longer
// times. A connection that is slower even with the highest bound, or is very fast, is free again.
type Queue struct {
	at    time.Duration // time of the last measurement
	acked uint64        // bytes acknowledged by then
	busy  time.Duration // total time with unacknowledged bytes by then
	rate  float64       // current rate in bytes per second
	best  float64       // best recent rate over three measurements; 0 if not known

	lately [2]float64 // rates of the last two measurements, the last one first
	full   bool       // the socket was full since the last measurement
	// stood is the number of consecutive measurements with a standing queue. Below 0 it is the
	// number of measurements that are still to be ignored.
	stood int
	bound int // bytes that the socket may hold; 0 if it is free
	hold  int // measurements for which the bound may not be lowered yet
	next  int // value of hold when the bound is too low again

	written int // bytes written since the last sample
	fulls   int // times that the socket was full since then
}

// Sample is a set of TCP's measurements of a connection.
type Sample struct {
	At          time.Duration // time at which it was taken, on a clock of the connection
	Acked       uint64        // total number of acknowledged bytes
	Busy        time.Duration // total time with unacknowledged bytes
	Trip, Least time.Duration // current and smallest round trip
}

// Wrote reports a write of n bytes. full says that the socket takes no more now. It returns true
// when it is time for a Sample.
func (q *Queue) Wrote(n int, full bool) bool {
	if full {
		q.fulls++
	}
	q.written += n
	return q.written >= askAfter || q.fulls >= askFull || q.bound > 0 && full
}

// Measured updates the bound with a sample of the connection's counters.
func (q *Queue) Measured(s Sample) {
	q.full = q.full || q.fulls > 0
	q.written, q.fulls = 0, 0
	busy, d := s.Busy-q.busy, s.At-q.at
	if busy < measureFor || busy < 2*s.Trip {
		return
	}
	full := q.full && busy > d/2 // there was more to send all the time
	rate := float64(s.Acked-q.acked) / d.Seconds()
	q.at, q.acked, q.busy, q.full = s.At, s.Acked, s.Busy, false
	// After a pause more bytes may pass than the path carries.
	if !full && busy < d-d/steady {
		q.stood = min(q.stood, 0)
		return
	}
	q.best = max(min(rate, q.lately[0], q.lately[1]), q.best*(1-forget))
	q.lately = [2]float64{rate, q.lately[0]}
	if q.rate > 0 {
		rate = (q.rate + rate) / 2
	}
	q.rate = rate
	harm := full && rate < slower*q.best
	switch {
	case q.bound > 0 && (q.best > fastest || harm && q.bound == mostHeld):
		q.bound, q.stood = 0, -leaveFor
	case q.bound > 0 && harm:
		q.short()
	case q.bound > 0 && q.hold > 0:
		q.hold--
	case q.bound > 0:
		q.bound = max(q.bound/2, q.enough(s.Least))
		q.next = max(q.next-1, holdFor)
	case q.best > fastest || s.Least > nearTrip || q.enough(s.Least) == mostHeld ||
		s.Trip < standing || s.Trip < standingShare*s.Least || q.stood < 0:
		q.stood = min(q.stood+1, 0)
	default:
		if q.stood++; q.stood == stands {
			q.bound = q.enough(s.Least)
			q.hold, q.next = 0, holdFor
		}
	}
}

// short doubles the bound, up to mostHeld, because the bound has made the connection slower. It
// also doubles the number of samples for which the next bound is kept, up to longestHold.
func (q *Queue) short() {
	q.bound = min(2*q.bound, mostHeld)
	q.hold = q.next
	q.next = min(2*q.next, longestHold)
}

// enough returns the number of bytes on a path with that round trip, plus those that are ahead.
func (q *Queue) enough(least time.Duration) int {
	return min(max(int(q.best*(least+ahead).Seconds()), leastHeld), mostHeld)
}

// Bound returns the number of bytes that the socket may hold, or 0 if only the system limits it.
func (q *Queue) Bound() int { return q.bound }

// Free removes the bound, because it cannot be set.
func (q *Queue) Free() { q.bound = 0 }

// Bottleneck returns the rate of a connection with a standing queue, in bytes per second, and 0 for
// other connections.
func (q *Queue) Bottleneck() float64 {
	if q.bound == 0 {
		return 0
	}
	return q.best
}
