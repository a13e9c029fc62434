package solve

import (
	"math"
	"slices"
)

// path is how the bytes of a flow go, connection by connection; made when it is first used.
type path struct {
	stages  []stage
	window  float64    // bytes that may be on their way; +Inf: any number
	socket  float64    // bytes that nothing overtakes
	sending *sendQueue // of its transfers under way; nil: none
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

// attach lets the path's connections know of its send queue.
func (p *path) attach() {
	p.stages[0].conn.sendQueues = append(p.stages[0].conn.sendQueues, p.sending)
	for k := range p.stages {
		p.stages[k].rate, p.stages[k].moved = 0, 0
		if k > 0 {
			p.stages[k].before = &p.stages[k-1]
			p.stages[k].conn.stages = append(p.stages[k].conn.stages, &p.stages[k])
		}
	}
}

// detach takes the path's send queue, which is empty, off its connections.
func (p *path) detach() {
	first := p.stages[0].conn
	first.sendQueues = slices.DeleteFunc(first.sendQueues, func(q *sendQueue) bool { return q == p.sending })
	for k := range p.stages[1:] {
		s := &p.stages[k+1]
		s.conn.stages = slices.DeleteFunc(s.conn.stages, func(x *stage) bool { return x == s })
	}
	p.sending = nil
}

// pathOf finds or makes a flow's path. A use without a hop, a forwarder's work, belongs to the hop
// before it: a busy forwarder reads less.
func (b *buffers[T]) pathOf(flow int) *path {
	if b.paths[flow] != nil {
		return b.paths[flow]
	}
	f := &b.n.Flows[flow]
	p := &path{window: math.Inf(1), socket: f.Socket.Float64()}
	if x := f.Window.Float64(); x > 0 {
		p.window = x
		if b.long { // a window is not to be over within a step: a small part of all, then
			p.window = max(x, windowSteps*b.step*b.n.Alone(flow).Float64())
		}
	}
	at := 1
	for _, u := range f.Uses {
		at = max(at, u.Hop)
		for len(p.stages) < at {
			p.stages = append(p.stages, stage{})
		}
		s := &p.stages[at-1]
		s.uses = append(s.uses, use{u.Resource, b.n.Weight(flow, u.Resource).Float64()})
	}
	for k := range p.stages {
		key := connectionKey{flow: flow, first: k == 0}
		if k < len(f.Hops) {
			key.hop, key.flow = f.Hops[k], -1
		}
		c := b.conns[key]
		if c == nil {
			c = &connection{key: key}
			b.conns[key] = c
			b.sorted = append(b.sorted, c)
		}
		p.stages[k].conn, c.order = c, max(c.order, k)
	}
	b.unsorted = true
	b.paths[flow] = p
	return p
}
