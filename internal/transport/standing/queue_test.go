package standing

import (
	"testing"
	"time"
)

// path is a network that carries rate bytes per second, with a round trip of least without a queue.
type path struct {
	rate  float64
	least time.Duration
}

// drive makes a writer with much to send keep the connection full for n measurements.
func (p path) drive(q *Queue, s *Sample, n int) {
	for range n {
		s.Least, s.Trip = p.least, p.least+8*time.Millisecond
		q.Wrote(0, true)
		if q.bound > 0 {
			s.Trip = max(time.Duration(float64(q.bound)/p.rate*1e9), p.least)
		}
		rate := p.rate
		if q.bound > 0 { // less than the path holds
			rate = min(rate, float64(q.bound)/p.least.Seconds())
		}
		d := max(measureFor, 2*s.Trip)
		s.At += d
		s.Busy += d
		s.Acked += uint64(rate * d.Seconds())
		q.Measured(*s)
	}
}

// TestQueueBounded checks that the bound of a standing queue falls until no more than the part
// ahead waits, and that other queues get no bound.
func TestQueueBounded(t *testing.T) {
	const us, ms = time.Microsecond, time.Millisecond
	for _, c := range []struct {
		path
		want int
	}{
		{path{125e6, 50 * us}, 18750},        // 1 Gbit/s
		{path{1e6, 50 * us}, leastHeld},      // 8 Mbit/s
		{path{500e6, 1 * ms}, 0},             // a path that holds more than the largest bound
		{path{125e6, 3 * ms}, 0},             // a long path
		{path{2e9, 10 * us}, 0},              // a fast path
		{path{1.1e9, 10 * us}, 121000},       // a path that is not too fast
		{path{125e6, 1000 * us}, 137_500},    // content of the path, plus the part ahead
		{path{12.5e6, 1000 * us}, leastHeld}, // 100 Mbit/s
		{path{1.249e9, 200 * us}, 374_700},   // nearly too fast
	} {
		var q Queue
		var s Sample
		c.drive(&q, &s, 40)
		if q.bound != c.want && (q.bound < c.want*99/100 || q.bound > c.want*101/100) {
			t.Errorf("%v: bound to %d, want %d", c.path, q.bound, c.want)
		}
		if want := min(c.want, 1) * int(c.rate); int(q.Bottleneck()) > want*101/100 || int(q.Bottleneck()) < want*99/100 {
			t.Errorf("%v: bottleneck %v", c.path, q.Bottleneck())
		}
	}
}

// bounded returns a queue that has settled in front of a path of 1 Gbit/s, and the last sample.
func bounded() (p path, q *Queue, s Sample) {
	p, q = path{125e6, 50 * time.Microsecond}, new(Queue)
	p.drive(q, &s, 40)
	return p, q, s
}

// TestQueueStands checks that a queue which has not stood for long, or is short, gets no bound.
func TestQueueStands(t *testing.T) {
	var q Queue
	var s Sample
	p := path{125e6, 50 * time.Microsecond}
	for range 10 {
		p.drive(&q, &s, stands-1)
		s.Trip, s.At, s.Busy = standing-1, s.At+measureFor, s.Busy+measureFor
		q.Measured(s)
	}
	if q.bound != 0 {
		t.Errorf("bound to %d", q.bound)
	}
	if p.drive(&q, &s, stands); q.bound == 0 {
		t.Error("not bound")
	}
	was := q.bound
	s.At += measureFor / 2
	if q.Measured(s); q.bound != was {
		t.Error("a short measurement counts")
	}
}

// TestQueueShort checks that a bound which was too low is raised, and lowered again after longer
// and longer times.
func TestQueueShort(t *testing.T) {
	p, q, s := bounded()
	low := q.bound
	for k := holdFor; k < longestHold; k *= 2 {
		q.short()
		if q.bound != min(2*low, mostHeld) {
			t.Fatalf("bound to %d after %d", q.bound, low)
		}
		p.drive(q, &s, k)
		if q.bound != min(2*low, mostHeld) {
			t.Fatalf("lowered to %d within %d measurements", q.bound, k)
		}
		if p.drive(q, &s, 20); q.bound > low*101/100 {
			t.Fatalf("bound to %d after %d", q.bound, k)
		}
		q.next = 2 * k
	}
	p.drive(q, &s, 2*longestHold)
	if q.next != holdFor {
		t.Errorf("after a long time of peace the next hold is %d", q.next)
	}
}

// TestQueueFree checks that a bound which makes the connection slower is raised until it is
// removed, because the round trip may come from another connection's queue.
func TestQueueFree(t *testing.T) {
	p, q, s := bounded()
	for range 20 {
		s.At, s.Busy, s.Acked, s.Trip = s.At+measureFor, s.Busy+measureFor, s.Acked+uint64(25e6*measureFor.Seconds()), 5*time.Millisecond
		q.Wrote(0, true)
		if q.Measured(s); q.bound == 0 {
			break
		}
	}
	if q.bound > 0 {
		t.Errorf("bound to %d", q.bound)
	}
	for range leaveFor / 2 {
		if p.drive(q, &s, 1); q.bound > 0 {
			t.Fatal("bound again at once")
		}
	}
	if p.drive(q, &s, leaveFor); q.bound == 0 {
		t.Error("never bound again")
	}
}

// TestQueueBursts checks bursts at any rate, which a token bucket passes after a pause, and a
// single measurement that is too high because acknowledgements came late. Neither must be taken for
// the rate of the path, because the bound would be raised until it is removed.
func TestQueueBursts(t *testing.T) {
	p, q, s := bounded()
	low := q.bound
	burst := func(idle time.Duration) {
		s.At, s.Busy, s.Acked = s.At+idle+measureFor, s.Busy+measureFor, s.Acked+uint64(500e6*measureFor.Seconds())
		q.Wrote(0, true)
		q.Measured(s)
	}
	for range 20 {
		burst(time.Second)
		p.drive(q, &s, 3)
		burst(0)
		p.drive(q, &s, 3)
	}
	if q.bound != low {
		t.Errorf("bound to %d, %d before the bursts", q.bound, low)
	}
}
