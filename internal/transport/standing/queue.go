// Package standing keeps short what waits in front of a connection: unsent in its socket, and sent
// in the queue of this host's network card, where the kernel puts what it could send in a
// millisecond if there were no queue. Transport tcp asks it what a socket may hold; simulations do
// for theirs, so that they behave alike. It has no I/O and no clock.
package standing

import "time"

// Queue bounds what a connection's socket holds, as long as that costs no speed. A state machine,
// for the connection's writer.
//
// A socket is free until a queue has stood for some measurements. Then it is bounded to what the
// path holds, and `ahead` besides. If the connection becomes slower with that, because its writer
// did not come back before the socket ran dry, the bound is doubled, and lowered again later and
// later. A connection that is slower even with the highest bound, or is very fast, is free again.
type Queue struct {
	at    time.Duration // of the last measurement,
	acked uint64        // bytes by then,
	busy  time.Duration // and how long something had been unacknowledged, in all
	rate  float64       // lately, bytes per second,
	best  float64       // and the best of late that lasted for three measurements; 0: not known

	lately [2]float64 // rates of the last two measurements, the last one first
	full   bool       // the socket has been, since the last measurement
	stood  int        // measurements in a row at which a queue stood; below 0: how many more are not believed
	bound  int        // bytes that the socket may hold; 0: free
	hold   int        // measurements for which the bound is not lowered yet,
	next   int        // and for how many it will not be when it has been too low again

	written int // bytes since the last sample
	fulls   int // times that the socket was full, since
}

// Sample is what TCP says of a connection.
type Sample struct {
	At          time.Duration // when it was taken, on a clock of the connection's
	Acked       uint64        // bytes that have been acknowledged, in all
	Busy        time.Duration // something was unacknowledged for so long, in all
	Trip, Least time.Duration // the round trip, lately and at least
}

// Wrote follows a write of n bytes; full: the socket takes no more now. It reports whether it is
// time for a Sample.
func (q *Queue) Wrote(n int, full bool) bool {
	if full {
		q.fulls++
	}
	q.written += n
	return q.written >= askAfter || q.fulls >= askFull || q.bound > 0 && full
}

// Measured takes a sample.
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
	if !full && busy < d-d/steady { // what passes after a pause may be faster than what the path carries
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

// short: the bound is too low.
func (q *Queue) short() {
	q.bound = min(2*q.bound, mostHeld)
	q.hold = q.next
	q.next = min(2*q.next, longestHold)
}

// enough is how many bytes a path with that round trip holds, and those that are ahead.
func (q *Queue) enough(least time.Duration) int {
	return min(max(int(q.best*(least+ahead).Seconds()), leastHeld), mostHeld)
}

// Bound is how many bytes the socket may hold; 0: as many as the system lets it.
func (q *Queue) Bound() int { return q.bound }

// Free has no bound: it cannot be set.
func (q *Queue) Free() { q.bound = 0 }

// Bottleneck is the rate of a connection before which a queue stands, in bytes per second; 0 of
// others.
func (q *Queue) Bottleneck() float64 {
	if q.bound == 0 {
		return 0
	}
	return q.best
}
