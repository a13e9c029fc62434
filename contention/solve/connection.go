package solve

import (
	"cmp"
	"math"
	"slices"

	"github.com/leidenzipper/zipper/contention/num"
	"github.com/leidenzipper/zipper/contention/sharing"
)

// connection carries one hop of all flows with the same edge: of those that begin here (lanes), or of those that come from a zipper (queue).
type connection struct {
	key    connectionKey
	lanes  []*lane
	feeds  bool     // some of them go on
	stages []*stage // of ways under way that come from a zipper
	order  int      // greatest stage of any that have
	queue  []slice
	queued float64

	uses   []use   // per byte of the connection
	demand float64 // bytes/s
	rate   float64
	limits []int // resources that limit the rate; none: the demand does
	risen  bool  // in filler
}

type connectionKey struct {
	hop   sharing.Hop
	flow  int // of a flow without hops; else -1
	first bool
}

// slice is bytes that came about the same time.
type slice struct {
	total float64
	parts []portion
}

type portion struct {
	stage *stage
	bytes float64
}

type use struct {
	resource int
	weight   float64
}

// way is a flow's, made when it is first used.
type way struct {
	stages []stage
	window float64
	socket float64
	lane   *lane // of its transfers, if relayed
}

// stage is a flow's part in a connection.
type stage struct {
	conn   *connection
	before *stage // nil: the first
	uses   []use
	queued float64 // bytes
	rate   float64 // in the present step
	moved  float64 // bytes, in the present step
}

// begin lets the way's connections know of its lane.
func (w *way) begin() {
	w.stages[0].conn.lanes = append(w.stages[0].conn.lanes, w.lane)
	for k := range w.stages {
		w.stages[k].rate, w.stages[k].moved = 0, 0
		if k > 0 {
			w.stages[k].before = &w.stages[k-1]
			w.stages[k].conn.stages = append(w.stages[k].conn.stages, &w.stages[k])
		}
	}
}

// over takes the way's lane, which is empty, off its connections.
func (w *way) over() {
	first := w.stages[0].conn
	first.lanes = slices.DeleteFunc(first.lanes, func(l *lane) bool { return l == w.lane })
	for k := range w.stages[1:] {
		s := &w.stages[k+1]
		s.conn.stages = slices.DeleteFunc(s.conn.stages, func(x *stage) bool { return x == s })
	}
	w.lane = nil
}

// lane is transfers of one way. Relayed ones go one after the other; others side by side, each with an equal part, so that one account of bytes serves all.
type lane struct {
	way             *way
	relayed         bool
	end             float64 // target of the last berth
	sent, delivered float64 // bytes since the lane began; of each, side by side
	rate, cap       float64 // of sending; of each
	berths          []berth // by target
	limited         []charged
}

// charged is time that was spent waiting for a resource.
type charged = Share[num.Float]

type berth struct {
	transfer int
	target   float64   // delivered at which it ends
	held     float64   // bytes of it that its sender need not see leave
	began    float64   // time
	least    float64   // time before which it cannot end
	before   []charged // side by side: of the lane, when it began
}

func (l *lane) add(transfer int, bytes, socket, now, least float64) {
	x := berth{transfer: transfer, target: l.end + bytes, held: min(socket, bytes), began: now, least: least}
	at := len(l.berths)
	if !l.relayed {
		x.target, x.before = l.sent+bytes, slices.Clone(l.limited)
		at, _ = slices.BinarySearchFunc(l.berths, x.target, func(b berth, t float64) int { return cmp.Compare(b.target, t) })
	}
	l.berths = slices.Insert(l.berths, at, x)
	l.end = l.berths[len(l.berths)-1].target
}

// pop ends the first berth and returns what it waited for.
func (l *lane) pop() []charged {
	x := l.berths[0]
	l.berths = l.berths[1:]
	list := since(l.limited, x.before)
	if l.relayed {
		l.limited = l.limited[:0]
	}
	return list
}

func (l *lane) charge(limits []int, time float64) {
	if time <= 0 {
		return
	}
	for _, r := range limits {
		l.limited = charge(l.limited, sharing.Limit{Resource: r}, num.Float(time/float64(len(limits))))
	}
}

// record adds the lane to a step of the whole.
func record[T num.Number[T]](l *lane, step *Step[T], limits []int, rate float64) {
	list := make([]sharing.Limit, len(limits))
	for i, r := range limits {
		list[i].Resource = r
	}
	for _, x := range l.berths[:int(l.side())] {
		step.Active, step.Rate, step.Limits = append(step.Active, x.transfer), append(step.Rate, real[T](rate)), append(step.Limits, list)
	}
}

// side is the number of transfers that go side by side.
func (l *lane) side() float64 {
	if l.relayed {
		return 1
	}
	return float64(len(l.berths))
}

// send lets bytes go for a time.
func (l *lane) send(dt float64) {
	bytes := min(l.rate*dt, l.end-l.sent)
	if l.end-l.sent-bytes < 1e-9*l.end {
		bytes = l.end - l.sent
	}
	l.sent += bytes
	l.way.stages[0].moved = bytes
	if !l.relayed {
		l.delivered = l.sent
	}
}

// arrival is the rate at which the lane's bytes are delivered.
func (l *lane) arrival() float64 {
	if !l.relayed {
		return l.rate
	}
	return l.way.stages[len(l.way.stages)-1].rate
}

// limits are those of the last connection where bytes of the lane wait.
func (l *lane) limits() []int {
	for k := len(l.way.stages) - 1; k > 0; k-- {
		if s := &l.way.stages[k]; s.queued > 0 && len(s.conn.limits) > 0 {
			return s.conn.limits
		}
	}
	for k := range l.way.stages {
		if c := l.way.stages[k].conn; len(c.limits) > 0 {
			return c.limits
		}
	}
	return nil
}

func (c *connection) use(s *stage, part float64) {
	for _, u := range s.uses {
		k := slices.IndexFunc(c.uses, func(x use) bool { return x.resource == u.resource })
		if k < 0 {
			k = len(c.uses)
			c.uses = append(c.uses, use{resource: u.resource})
		}
		c.uses[k].weight += part * u.weight
	}
}

// ask works out what the connection would carry and what a byte of it uses, in a step of at most the given time.
func (c *connection) ask(step float64) {
	c.demand, c.uses = 0, c.uses[:0]
	open := 0.0
	c.feeds = false
	for _, l := range c.lanes {
		l.cap = 0
		c.feeds = c.feeds || l.relayed
		if l.sent < l.end {
			l.cap = math.Inf(1)
		}
		if room := l.way.window - (l.sent - l.delivered); room < l.end-l.sent {
			l.cap = max(0, room) / step
		}
		if l.cap > 0 {
			c.demand += l.cap
			open += l.side()
		}
	}
	for _, l := range c.lanes {
		if l.cap > 0 {
			c.use(&l.way.stages[0], l.side()/open)
		}
	}
	switch {
	case c.queued > 0:
		c.demand = math.Inf(1)
		for _, p := range c.queue[0].parts {
			c.use(p.stage, p.bytes/c.queue[0].total)
		}
	case len(c.stages) > 0:
		c.demand = math.Inf(1)
		for _, s := range c.stages {
			c.use(s, 1/float64(len(c.stages)))
		}
	}
}

// holds is the bytes of other lanes that were there to go before anything new.
func (c *connection) holds(own *lane) (bytes float64) {
	bytes = c.queued
	for _, l := range c.lanes {
		if l.relayed && l != own {
			bytes += max(0, min(l.end-l.sent, l.way.window-(l.sent-l.delivered)))
		}
	}
	return bytes
}

// divide gives the lanes equal parts of the rate; what one may not send the others get.
func (c *connection) divide() {
	left, n := c.rate, 0.0
	for _, l := range c.lanes {
		l.rate = -1
		n += l.side()
	}
	for again := true; again; {
		again = false
		for _, l := range c.lanes {
			if l.rate < 0 && l.cap <= left/n {
				l.rate, again = l.cap, true
				left -= l.cap * l.side()
				n -= l.side()
			}
		}
	}
	for _, l := range c.lanes {
		if l.rate < 0 {
			l.rate = left / n
		}
		l.way.stages[0].rate = l.rate
	}
}

// take puts what has arrived behind the queue.
func (c *connection) take() {
	var s slice
	for _, x := range c.stages {
		if bytes := x.before.moved; bytes > 0 {
			s.parts = append(s.parts, portion{x, bytes})
			s.total += bytes
			x.queued += bytes
		}
	}
	if s.total == 0 {
		return
	}
	c.queued += s.total
	if n := len(c.queue); n > 1 && c.queue[n-1].total+s.total <= piece {
		last := &c.queue[n-1]
		for _, p := range s.parts {
			if k := slices.IndexFunc(last.parts, func(x portion) bool { return x.stage == p.stage }); k >= 0 {
				last.parts[k].bytes += p.bytes
			} else {
				last.parts = append(last.parts, p)
			}
		}
		last.total += s.total
		return
	}
	c.queue = append(c.queue, s)
}

// serve lets at most budget bytes leave.
func (c *connection) serve(budget float64) {
	for len(c.queue) > 0 && budget > 0 {
		s := &c.queue[0]
		part := 1.0
		if budget < s.total*(1-1e-9) {
			part = budget / s.total
		}
		budget -= part * s.total
		for i := range s.parts {
			p := &s.parts[i]
			bytes := part * p.bytes
			p.bytes -= bytes
			p.stage.queued -= bytes
			p.stage.moved += bytes
		}
		c.queued -= part * s.total
		if s.total -= part * s.total; part < 1 {
			break
		}
		c.queue = c.queue[1:]
	}
	if len(c.queue) == 0 {
		c.queued = 0
		for _, s := range c.stages {
			s.queued = 0
		}
	}
}
