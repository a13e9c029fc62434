package solve

import (
	"math"
	"slices"
)

// path is the sequence of connections that the bytes of a flow take. It is created when the first
// transfer uses it.
type path struct {
	stages  []stage    // parts of the flow in its connections, in order
	window  float64    // number of bytes that may be in flight; +Inf if unlimited
	socket  float64    // number of bytes that nothing overtakes (sharing.Flow.Socket)
	sending *sendQueue // queue of its transfers under way; nil if there are none
}

// stage is the part that a flow has in one connection.
type stage struct {
	conn   *connection // connection
	before *stage      // stage from which the bytes come; nil for the first one
	uses   []use       // resources that each byte uses
	queued float64     // number of bytes of the flow in the connection's queue
	rate   float64     // rate in bytes/s in the current step
	moved  float64     // number of bytes moved in the current step
}

// attach adds the path's send queue to the first connection of the path, and its later stages to
// the other ones.
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

// detach removes the path's stages from the lists of the connections that they use: the send queue
// of the first stage, which must be empty, and all later stages.
func (p *path) detach() {
	first := p.stages[0].conn
	first.sendQueues = slices.DeleteFunc(first.sendQueues, func(q *sendQueue) bool { return q == p.sending })
	for k := range p.stages[1:] {
		s := &p.stages[k+1]
		s.conn.stages = slices.DeleteFunc(s.conn.stages, func(x *stage) bool { return x == s })
	}
	p.sending = nil
}

// pathOf returns the path of the flow with this index, and creates it if needed. A use without a
// hop, the work of a forwarder, belongs to the hop before it: a busy forwarder reads less.
func (b *buffers[T]) pathOf(flow int) *path {
	if b.paths[flow] != nil {
		return b.paths[flow]
	}
	f := &b.n.Flows[flow]
	p := &path{window: math.Inf(1), socket: f.Socket.Float64()}
	if x := f.Window.Float64(); x > 0 {
		p.window = x
		if b.long { // a window must last several steps; it still has a small part of all bytes
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
