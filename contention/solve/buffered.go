package solve

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/leidenzipper/zipper/contention/num"
	"github.com/leidenzipper/zipper/contention/sharing"
)

// How zipped clusters really move bytes, for the rule sharing.Buffered. A transfer through zippers is not one stream from end to end: every
// hop is a connection of its own, and a forwarder queues what the next connection does not take. So a slow receiver does not slow the sender down
// before a whole window (Flow.Window) of the pair is on its way, and a queue is served in the order of arrival: who sends faster into a queue gets
// more out of it. What is modelled:
//
//   - connections share resources max-min fairly (progressive filling), whatever number of transfers they carry;
//   - a sender gives the destinations that it may send to equal parts of a connection; transfers to the same destination go one after the other;
//     transfers inside a network, which need no zipper, share their connection equally;
//   - a zipper's outgoing connection is a queue, first in first out.
//
// Time goes in steps that end when a transfer has been sent or has arrived, when a queue is empty, and at the latest when the fastest connection
// has moved a piece (or a part of the whole that keeps the number of steps bounded). Pieces are what programs move, too, so finer steps would not be truer.
const (
	piece     = 128 << 10 // bytes
	mostSteps = 4000      // of equal length
	leastStep = 1e-4      // of the longest step
	rounds    = 8         // of working out the rates of one step
)

// buffers is a run.
type buffers[T num.Number[T]] struct {
	*state[T]
	now      float64
	step     float64 // the longest
	capacity []float64
	ways     []*way
	conns    map[connectionKey]*connection
	sorted   []*connection // those with lanes first, then by order
	lanes    []*lane
}

func runBuffered[T num.Number[T]](s *state[T]) error {
	b := &buffers[T]{state: s, ways: make([]*way, len(s.n.Flows)), conns: make(map[connectionKey]*connection)}
	load := make([]T, len(s.n.Resources))
	fastest := 0.0
	for i := range s.transfers {
		s.n.AddUse(s.transfers[i].Flow, s.transfers[i].Bytes, load)
		fastest = math.Max(fastest, s.n.Alone(s.transfers[i].Flow).Float64())
	}
	for i, r := range s.n.Resources {
		b.capacity = append(b.capacity, r.Capacity.Float64())
		b.step = math.Max(b.step, load[i].Float64()/b.capacity[i]/mostSteps)
	}
	b.step = math.Max(b.step, piece/fastest)
	for s.finished < len(s.transfers) {
		if err := b.advance(); err != nil {
			return err
		}
	}
	return nil
}

func (b *buffers[T]) advance() error {
	if len(b.lanes) == 0 {
		if b.queue.Len() == 0 {
			return b.circular()
		}
		b.now = math.Max(b.now, b.queue[0].at.Float64())
	}
	b.admit()
	if len(b.lanes) == 0 {
		return nil // only empty transfers were due
	}
	b.result.Events++
	b.rates()
	dt, err := b.duration()
	if err != nil {
		return err
	}
	b.move(dt)
	b.account(dt)
	b.now += dt
	return nil
}

// admit starts what is due.
func (b *buffers[T]) admit() {
	for b.queue.Len() > 0 && b.queue[0].at.Float64() <= b.now {
		next := heap.Pop(&b.queue).(start[T])
		t := &b.transfers[next.transfer]
		if t.Bytes.Sign() == 0 {
			b.finish(next.transfer, next.at)
			continue
		}
		w := b.way(t.Flow)
		l := w.lane
		if l == nil {
			l = &lane{way: w}
			b.lanes = append(b.lanes, l)
			w.stages[0].conn.lanes = append(w.stages[0].conn.lanes, l)
			if len(w.stages) > 1 {
				w.lane = l
			}
		}
		l.end += t.Bytes.Float64()
		l.berths = append(l.berths, berth{next.transfer, l.end, make([]float64, len(b.capacity))})
	}
}

// way finds or makes a flow's way. A use without a hop, a forwarder's work, belongs to the hop before it: a busy forwarder reads less.
func (b *buffers[T]) way(flow int) *way {
	if b.ways[flow] != nil {
		return b.ways[flow]
	}
	f := &b.n.Flows[flow]
	w := &way{window: math.Inf(1)}
	if x := f.Window.Float64(); x > 0 {
		w.window = x
	}
	at := 1
	for _, u := range f.Uses {
		at = max(at, u.Hop)
		for len(w.stages) < at {
			w.stages = append(w.stages, stage{})
		}
		s := &w.stages[at-1]
		s.uses = append(s.uses, use{u.Resource, b.n.Weight(flow, u.Resource).Float64()})
	}
	for k := range w.stages {
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
		w.stages[k].conn, c.order = c, max(c.order, k)
		if k > 0 {
			c.ways = append(c.ways, w)
		}
	}
	slices.SortStableFunc(b.sorted, func(x, y *connection) int { return cmp.Compare(x.order, y.order) })
	b.ways[flow] = w
	return w
}

// rates works out how fast each connection goes. What an empty queue can pass on is what arrives, which depends on the rates: repeated until
// nothing changes.
func (b *buffers[T]) rates() {
	for _, c := range b.sorted {
		c.demand, c.uses = 0, c.uses[:0]
		for _, l := range c.lanes {
			l.cap = 0
			if l.sent < l.end {
				l.cap = math.Inf(1)
			}
			if room := l.way.window - (l.sent - l.delivered); room < l.end-l.sent {
				l.cap = math.Max(0, room) / b.step
			}
			c.demand += l.cap
		}
		for _, l := range c.lanes {
			if l.cap > 0 {
				c.use(&l.way.stages[0], 1/float64(len(c.lanes)))
			}
		}
		if c.queued > 0 {
			c.demand = math.Inf(1)
			for _, p := range c.queue[0].parts {
				c.use(p.stage, p.bytes/c.queue[0].total)
			}
			continue
		}
		n := 0
		for _, w := range c.ways {
			if w.passes() {
				n++
			}
		}
		for _, w := range c.ways {
			if w.passes() {
				c.demand = math.Inf(1)
				c.use(&w.stages[w.at(c)], 1/float64(n))
			}
		}
	}
	for range rounds {
		fill(b.sorted, b.capacity)
		if !b.arrivals() {
			return
		}
	}
}

// arrivals follows the bytes from lane to queue to queue, lowers the demand of empty queues to what arrives, and reports whether that changed it.
func (b *buffers[T]) arrivals() (changed bool) {
	for _, c := range b.sorted {
		if c.key.first {
			c.divide()
			continue
		}
		arrives := 0.0
		for _, w := range c.ways {
			s := &w.stages[w.at(c)]
			if s.rate = 0; w.passes() {
				s.rate = w.stages[w.at(c)-1].rate
				arrives += s.rate
			}
		}
		if c.queued > 0 {
			for _, w := range c.ways {
				w.stages[w.at(c)].rate = 0
			}
			for _, p := range c.queue[0].parts {
				p.stage.rate = c.rate * p.bytes / c.queue[0].total
			}
			continue
		}
		if math.Abs(arrives-c.demand) > 1e-9*arrives {
			c.demand, changed = arrives, true
		}
		if arrives > c.rate {
			for _, w := range c.ways {
				w.stages[w.at(c)].rate *= c.rate / arrives
			}
		}
	}
	return changed
}

// duration is how long the rates hold.
func (b *buffers[T]) duration() (float64, error) {
	dt, moves := b.step, false
	until := func(bytes, rate float64) {
		if rate > 0 && bytes > 0 {
			dt, moves = math.Min(dt, bytes/rate), true
		}
	}
	for _, l := range b.lanes {
		until(l.end-l.sent, l.rate)
		until(l.berths[0].target-l.delivered, l.arrival())
	}
	for _, c := range b.sorted {
		if c.queued > 0 {
			in := 0.0
			for _, w := range c.ways {
				in += w.stages[w.at(c)-1].rate
			}
			until(c.queued, c.rate-in)
			moves = moves || c.rate > 0
		}
	}
	if !moves {
		return 0, fmt.Errorf("transfer %s stalls", b.transfers[b.lanes[0].berths[0].transfer].Name)
	}
	dt = math.Max(dt, leastStep*b.step)
	if b.queue.Len() > 0 {
		dt = math.Min(dt, math.Max(b.queue[0].at.Float64()-b.now, leastStep*b.step))
	}
	return dt, nil
}

// move lets bytes move for a time.
func (b *buffers[T]) move(dt float64) {
	for _, c := range b.sorted {
		if c.key.first {
			for _, l := range c.lanes {
				bytes := math.Min(l.rate*dt, l.end-l.sent)
				if l.end-l.sent-bytes < 1e-9*l.end {
					bytes = l.end - l.sent
				}
				l.sent += bytes
				l.way.stages[0].moved = bytes
				if len(l.way.stages) == 1 {
					l.delivered = l.sent
				}
			}
			continue
		}
		budget := c.rate * dt
		if c.queued == 0 && c.limits == nil {
			budget = math.Inf(1) // all that arrives
		}
		c.take()
		c.serve(budget)
	}
	for _, l := range b.lanes {
		if k := len(l.way.stages); k > 1 {
			l.delivered += l.way.stages[k-1].moved
		}
	}
	for _, w := range b.ways {
		if w != nil {
			for k := range w.stages {
				w.stages[k].moved = 0
			}
		}
	}
}

// account charges the time to what limited the transfers and ends those that have arrived.
func (b *buffers[T]) account(dt float64) {
	var step *Step[T]
	if b.o.Record {
		b.result.Steps = append(b.result.Steps, Step[T]{From: real[T](b.now), To: real[T](b.now + dt)})
		step = &b.result.Steps[len(b.result.Steps)-1]
	}
	kept := b.lanes[:0]
	for _, l := range b.lanes {
		first := &l.berths[0]
		limits := l.limits()
		for _, r := range limits {
			first.limited[r] += dt / float64(len(limits))
		}
		if step != nil && len(limits) > 0 {
			list := make([]sharing.Limit, len(limits))
			for i, r := range limits {
				list[i].Resource = r
			}
			step.Active, step.Rate, step.Limits = append(step.Active, first.transfer), append(step.Rate, real[T](l.arrival())), append(step.Limits, list)
		}
		arrival := l.arrival()
		for len(l.berths) > 0 && l.delivered >= l.berths[0].target*(1-1e-9) {
			x := l.berths[0]
			l.berths = l.berths[1:]
			late := 0.0
			if arrival > 0 {
				late = math.Min(dt, math.Max(0, l.delivered-x.target)/arrival)
			}
			for r, t := range x.limited {
				if t > 0 {
					b.result.Limited[x.transfer] = append(b.result.Limited[x.transfer], Share[T]{sharing.Limit{Resource: r}, real[T](t)})
				}
			}
			b.finish(x.transfer, real[T](b.now+dt-late))
		}
		if len(l.berths) > 0 {
			kept = append(kept, l)
			continue
		}
		l.way.lane = nil
		c := l.way.stages[0].conn
		c.lanes = slices.DeleteFunc(c.lanes, func(x *lane) bool { return x == l })
		l.way.stages[0].rate = 0
	}
	clear(b.lanes[len(kept):])
	b.lanes = kept
}

// real converts a float that is finite.
func real[T num.Number[T]](x float64) T {
	var z T
	return z.FromRat(new(big.Rat).SetFloat64(x))
}
