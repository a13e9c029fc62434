package kernel

import "time"

// Line is one direction of an adapter, or whatever else bytes of many connections pass at a rate.
// Those of one key, a place that they come from or go to, wait in a queue of their own; the queues
// are served in turn, about a packet each.
type Line struct {
	Name  string
	Rate  float64       // bytes a second; 0: any
	Burst int           // bytes that pass at once after a pause (a token bucket); 0: a packet takes its time
	Bytes int64         // that have passed
	Busy  time.Duration // for which something was passing

	k     *Kernel
	queue map[string]*turn
	turns []*turn // that have packets: the next one first
	free  time.Duration
	armed time.Duration // serve is called then; 0: it is not
}

// turn is a line's queue of one key.
type turn struct {
	packets []*queued
	free    time.Duration // with Burst: when its next packet may go
	left    int           // bytes before it is another one's turn
	last    time.Duration // when its last packet has passed
	waited  time.Duration // by all packets so far, before they began to pass, also outside the queue
}

// queued is a packet at a line.
type queued struct {
	passenger
	size int
	fair int           // bytes that its queue may send in a turn
	came time.Duration // when
}

// passenger is told that it has passed a line.
type passenger interface{ passed() }

// keyBurst is what a queue of a line with Burst lets pass before its own rate counts, as Linux's
// classes have it by default.
const keyBurst = 1600

// Line makes one.
func (k *Kernel) Line(name string, rate float64, burst int) *Line {
	return &Line{Name: name, Rate: rate, Burst: burst, k: k, queue: map[string]*turn{}}
}

// turn is the queue of a key.
func (l *Line) turn(key string) *turn {
	t := l.queue[key]
	if t == nil {
		t = &turn{}
		l.queue[key] = t
	}
	return t
}

// Waited is how long packets have waited for their queue's turn so far, together: in the queue, or
// in the adapter's own host because there is no room in it.
func (l *Line) Waited(key string) time.Duration {
	if t := l.queue[key]; t != nil {
		return t.waited
	}
	return 0
}

// takes is how long n bytes pass.
func (l *Line) takes(n int) time.Duration {
	if l.Rate <= 0 {
		return 0
	}
	return time.Duration(float64(n) / l.Rate * float64(time.Second))
}

// push has a packet pass.
func (l *Line) push(q *queued, key string) {
	t := l.turn(key)
	q.came = l.k.now
	t.packets = append(t.packets, q)
	if len(t.packets) == 1 {
		t.left = q.fair
		l.turns = append(l.turns, t)
	}
	l.serve()
}

// serve has the packets go on whose time has come.
func (l *Line) serve() {
	now := l.k.now
	for len(l.turns) > 0 {
		if l.free > now {
			l.arm(l.free)
			return
		}
		i, soonest := 0, time.Duration(0)
		for ; l.Burst > 0 && i < len(l.turns) && l.turns[i].free > now; i++ {
			if soonest == 0 || l.turns[i].free < soonest {
				soonest = l.turns[i].free
			}
		}
		if i == len(l.turns) {
			l.arm(soonest)
			return
		}
		l.pass(i)
	}
}

// pass has the first packet of a queue pass.
func (l *Line) pass(i int) {
	t, now := l.turns[i], l.k.now
	p := t.packets[0]
	t.packets = t.packets[1:]
	n := p.size
	t.left -= n
	t.waited += now - p.came
	switch {
	case len(t.packets) == 0:
		l.turns = append(l.turns[:i], l.turns[i+1:]...)
	case t.left <= 0:
		t.left += p.fair
		l.turns = append(append(l.turns[:i], l.turns[i+1:]...), t)
	}
	l.Bytes += int64(n)
	l.Busy += l.takes(n)
	at := now
	if l.Burst == 0 {
		l.free = now + l.takes(n)
		at = l.free
	} else {
		l.free = max(l.free, now-l.takes(l.Burst)) + l.takes(n)
		t.free = max(t.free, now-l.takes(keyBurst)) + l.takes(n)
	}
	t.last = max(at, t.last+1) // none overtakes: of events of one time any may be the first
	l.k.at(t.last, p.passed)
}

// arm has serve called.
func (l *Line) arm(at time.Duration) {
	if l.armed != 0 && l.armed <= at {
		return
	}
	l.armed = at
	l.k.at(at, func() {
		if l.armed == at {
			l.armed = 0
			l.serve()
		}
	})
}
