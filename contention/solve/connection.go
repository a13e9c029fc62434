package solve

import (
	"math"
	"slices"

	"github.com/leidenzipper/zipper/contention/sharing"
)

// connection carries one hop of all flows with the same sending and receiving vertex in a switch.
// Their bytes begin here (send queues), or come from a zipper (queue).
type connection struct {
	key        connectionKey // hop or flow that the connection carries
	sendQueues []*sendQueue  // queues of the transfers whose bytes begin here
	feeds      bool          // some of its flows go on to another connection
	stages     []*stage      // stages of paths under way that come from a zipper
	order      int           // largest index of any of its stages
	queue      []batch       // bytes that have come from a zipper and wait, in FIFO order
	queued     float64       // number of bytes in queue

	uses   []use   // resources that each byte of the connection uses
	demand float64 // demand in bytes/s
	rate   float64 // rate in bytes/s in the current step
	limits []int   // indices of the resources that limit the rate; empty if the demand does
	risen  bool    // whether the rate still rises with those of others; only used by filler
}

type connectionKey struct {
	hop   sharing.Hop // hop that the connection carries; zero for a flow without hops
	flow  int         // index of a flow without hops; otherwise -1
	first bool        // whether bytes begin here
}

// batch is a number of bytes that arrived at about the same time.
type batch struct {
	total float64   // number of bytes
	parts []portion // bytes of each flow
}

type portion struct {
	stage *stage // flow's part in the connection
	bytes float64
}

type use struct {
	resource int     // index of the resource
	weight   float64 // units of the resource for each byte
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

// want sets the demand of the connection, in bytes/s, in a step of at most step seconds, and the
// resources that one byte of it uses.
func (c *connection) want(step float64) {
	c.demand, c.uses = 0, c.uses[:0]
	open := 0.0
	c.feeds = false
	for _, q := range c.sendQueues {
		q.most = 0
		c.feeds = c.feeds || q.relayed
		if q.sent < q.end {
			q.most = math.Inf(1)
		}
		if room := q.path.window - (q.sent - q.delivered); room < q.end-q.sent {
			q.most = max(0, room) / step
		}
		if q.most > 0 {
			c.demand += q.most
			open += q.parallel()
		}
	}
	for _, q := range c.sendQueues {
		if q.most > 0 {
			c.use(&q.path.stages[0], q.parallel()/open)
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

// backlog returns the number of bytes that are sent before a new byte of the queue own: those from
// a zipper, and those of other relayed send queues that their windows allow.
func (c *connection) backlog(own *sendQueue) (bytes float64) {
	bytes = c.queued
	for _, q := range c.sendQueues {
		if q.relayed && q != own {
			bytes += max(0, min(q.end-q.sent, q.path.window-(q.sent-q.delivered)))
		}
	}
	return bytes
}

// divide gives the transfers that the connection's send queues send at the same time equal parts of
// its rate: one part for a queue whose path has zippers, otherwise one for each transfer. If the
// window of a queue allows less than its part, the others share the rest.
func (c *connection) divide() {
	left, n := c.rate, 0.0
	for _, q := range c.sendQueues {
		q.rate = -1
		n += q.parallel()
	}
	for again := true; again; {
		again = false
		for _, q := range c.sendQueues {
			if q.rate < 0 && q.most <= left/n {
				q.rate, again = q.most, true
				left -= q.most * q.parallel()
				n -= q.parallel()
			}
		}
	}
	for _, q := range c.sendQueues {
		if q.rate < 0 {
			q.rate = left / n
		}
		q.path.stages[0].rate = q.rate
	}
}

// enqueue puts the bytes that have arrived in the current step at the end of the connection's
// queue.
func (c *connection) enqueue() {
	var s batch
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

// serve removes at most budget bytes from the connection's queue and counts them as moved.
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
