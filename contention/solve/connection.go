package solve

import (
	"math"
	"slices"

	"github.com/leidenzipper/zipper/contention/sharing"
)

// connection carries one hop of all flows with the same edge: of those that begin here (lanes), or of those that come from a zipper (queue).
type connection struct {
	key    connectionKey
	lanes  []*lane
	ways   []*way // that come from a zipper
	order  int    // greatest stage of these
	queue  []slice
	queued float64

	uses   []use   // per byte of the connection
	demand float64 // bytes/s
	rate   float64
	limits []int // resources that limit the rate; none: the demand does
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
	lane   *lane // of its transfers, if relayed
}

// stage is a flow's part in a connection.
type stage struct {
	conn   *connection
	uses   []use
	queued float64 // bytes
	rate   float64 // in the present step
	moved  float64 // bytes, in the present step
}

// lane is transfers that go one after the other, in bytes since the first began.
type lane struct {
	way                  *way
	end, sent, delivered float64
	rate, cap            float64 // of sending
	berths               []berth
}

type berth struct {
	transfer int
	target   float64 // delivered at which it ends
	limited  []float64
}

// at is the way's stage on the connection, which must be there.
func (w *way) at(c *connection) (k int) {
	for w.stages[k].conn != c {
		k++
	}
	return k
}

// passes tells whether bytes of the way are on their way, or could be.
func (w *way) passes() bool { return w.lane != nil }

// arrival is the rate at which the lane's bytes are delivered.
func (l *lane) arrival() float64 {
	if len(l.way.stages) == 1 {
		return l.rate
	}
	return l.way.stages[len(l.way.stages)-1].rate
}

// limits are those of the last connection where bytes of the lane wait.
func (l *lane) limits() []int {
	for k := len(l.way.stages) - 1; k > 0; k-- {
		if s := &l.way.stages[k]; s.queued > 0 && s.conn.limits != nil {
			return s.conn.limits
		}
	}
	for k := range l.way.stages {
		if c := l.way.stages[k].conn; c.limits != nil {
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

// divide gives the lanes equal parts of the rate; what one may not send the others get.
func (c *connection) divide() {
	left, n := c.rate, 0
	for _, l := range c.lanes {
		l.rate = -1
		n++
	}
	for again := true; again; {
		again = false
		for _, l := range c.lanes {
			if l.rate < 0 && l.cap <= left/float64(n) {
				l.rate, again = l.cap, true
				left -= l.cap
				n--
			}
		}
	}
	for _, l := range c.lanes {
		if l.rate < 0 {
			l.rate = left / float64(n)
		}
	}
	for _, l := range c.lanes {
		l.way.stages[0].rate = l.rate // of lanes that share a way only the last counts: such a way has no other stage
	}
}

// fill is max-min sharing among connections with a demand: all rates rise together.
func fill(conns []*connection, capacity []float64) {
	free, load := slices.Clone(capacity), make([]float64, len(capacity))
	users := make([]int, len(capacity)) // connections that rise
	rising := 0
	for _, c := range conns {
		c.rate, c.limits = 0, nil
		if c.demand > 0 {
			c.rate = -1
			rising++
			for _, u := range c.uses {
				load[u.resource] += u.weight
				users[u.resource]++
			}
		}
	}
	const near = 1 + 1e-9
	for rising > 0 {
		level := math.Inf(1) // at which the next connection stops
		for r := range free {
			if users[r] > 0 {
				level = math.Min(level, math.Max(0, free[r])/load[r])
			}
		}
		for _, c := range conns {
			if c.rate < 0 {
				level = math.Min(level, c.demand)
			}
		}
		if math.IsInf(level, 1) { // only hops that use nothing are left: nothing is known of their rate
			for _, c := range conns {
				c.rate = max(c.rate, 0)
			}
			return
		}
		var full []int
		for r := range free {
			if users[r] > 0 && math.Max(0, free[r]) <= level*load[r]*near {
				full = append(full, r)
			}
		}
		for _, c := range conns {
			if c.rate >= 0 {
				continue
			}
			for _, u := range c.uses {
				if slices.Contains(full, u.resource) {
					c.limits = append(c.limits, u.resource)
				}
			}
			if c.limits == nil && c.demand > level*near {
				continue
			}
			c.rate = math.Min(level, c.demand)
			rising--
			for _, u := range c.uses {
				free[u.resource] -= u.weight * c.rate
				load[u.resource] -= u.weight
				users[u.resource]--
			}
		}
	}
}

// take puts what has arrived behind the queue.
func (c *connection) take() {
	var s slice
	for _, w := range c.ways {
		k := w.at(c)
		if bytes := w.stages[k-1].moved; bytes > 0 {
			s.parts = append(s.parts, portion{&w.stages[k], bytes})
			s.total += bytes
			w.stages[k].queued += bytes
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
		for _, w := range c.ways {
			w.stages[w.at(c)].queued = 0
		}
	}
}
