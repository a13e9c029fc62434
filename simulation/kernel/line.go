package kernel

import "time"

// Line is one direction of an adapter, or another resource that passes the bytes of many
// connections at a rate. Packets with the same key, such as a source or a destination, wait in a
// queue. The queues are served in turn, about a packet at a time.
type Line struct {
	Name string  // name of the resource
	Rate float64 // bytes per second; 0 if unlimited
	// Burst is the number of bytes that pass at once after a pause (a token bucket); with 0 each
	// packet takes its time.
	Burst int
	Bytes int64         // bytes passed so far
	Busy  time.Duration // time during which packets were passing

	k     *Kernel          // kernel that plans the calls of serve
	queue map[string]*turn // queues by key
	turns []*turn          // queues that have packets; the first is served next
	free  time.Duration    // earliest time at which the line can take the next packet
	armed time.Duration    // time of the planned call of serve; 0 if none is planned
}

// turn is the queue of packets with one key that wait for a line.
type turn struct {
	packets []*queued     // packets that wait, in FIFO order
	free    time.Duration // with Burst: earliest time of its next packet
	left    int           // bytes that it may still send in this turn
	last    time.Duration // time at which its last packet has passed
	// waited is the total time for which packets have waited, in the queue and in front of it.
	waited time.Duration
}

// queued is a packet in a queue.
type queued struct {
	passenger
	size    int           // length of the packet in bytes
	fair    int           // bytes that its queue may send in a turn
	arrived time.Duration // time at which the packet entered the queue
}

// passenger is notified when it has passed a line.
type passenger interface{ passed() }

// keyBurst is the burst of each queue of a line with Burst, in bytes: the default of Linux's
// traffic classes.
const keyBurst = 1600

// Line creates a line with a name for people and a rate in bytes per second (0 if unlimited). burst
// is the number of bytes that pass at once after a pause (a token bucket); with 0 each packet takes
// its time at the rate.
func (k *Kernel) Line(name string, rate float64, burst int) *Line {
	return &Line{Name: name, Rate: rate, Burst: burst, k: k, queue: map[string]*turn{}}
}

// turn returns the queue of packets with a key, and creates it if needed.
func (l *Line) turn(key string) *turn {
	t := l.queue[key]
	if t == nil {
		t = &turn{}
		l.queue[key] = t
	}
	return t
}

// Waited returns for how long packets with a key have waited so far, in total. It includes the time
// in the sending host while the queue had no room.
func (l *Line) Waited(key string) time.Duration {
	if t := l.queue[key]; t != nil {
		return t.waited
	}
	return 0
}

// takes returns the time that n bytes need to pass the line at its rate; 0 if the rate is
// unlimited.
func (l *Line) takes(n int) time.Duration {
	if l.Rate <= 0 {
		return 0
	}
	return time.Duration(float64(n) / l.Rate * float64(time.Second))
}

// push puts packet q at the end of the queue of key, and serves the line.
func (l *Line) push(q *queued, key string) {
	t := l.turn(key)
	q.arrived = l.k.now
	t.packets = append(t.packets, q)
	if len(t.packets) == 1 {
		t.left = q.fair
		l.turns = append(l.turns, t)
	}
	l.serve()
}

// serve passes all packets that the rate of the line allows by now, and plans the next call of
// itself.
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

// pass removes the first packet of the queue l.turns[i] and sends it over the line.
func (l *Line) pass(i int) {
	t, now := l.turns[i], l.k.now
	p := t.packets[0]
	t.packets = t.packets[1:]
	n := p.size
	t.left -= n
	t.waited += now - p.arrived
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
	// Distinct times keep the order, because the order of events with equal times is drawn.
	t.last = max(at, t.last+1)
	l.k.at(t.last, p.passed)
}

// arm plans a call of serve at virtual time at, unless an earlier one is planned.
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
