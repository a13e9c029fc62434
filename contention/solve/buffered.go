package solve

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"slices"

	"github.com/leidenzipper/zipper/contention/num"
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
// Time goes in steps that end when all of a connection has been sent, when a transfer that others wait for has arrived, when a queue is empty, and at the
// latest when the fastest connection has moved a piece (or a part of the whole that keeps the number of steps bounded). Pieces are what programs move, too,
// so finer steps would not be truer. A step may last longer than until such an event by a quarter of Options.Grain of the time that the transfer has taken by then
// (what each of a chain of transfers begins late adds up); the end of a transfer within a step is worked out from its rate.
const (
	piece         = 128 << 10 // bytes
	mostSteps     = 4000      // of equal length
	stepsPerGrain = 10        // the same with a grain: this over it
	leastStep     = 1e-4      // of the longest step
	crowd         = 5000      // lanes that together let a step, with a grain, be as long as it may: the more there are, the less does one matter
	windowSteps   = 4         // at the least
	rounds        = 8         // of working out the rates of one step
)

// buffers is a run.
type buffers[T num.Number[T]] struct {
	*state[T]
	now      float64
	step     float64 // the longest
	long     bool    // longer than a piece takes
	grain    float64
	capacity []float64
	legs     []uint8 // per transfer: of its handshake that are over
	ways     []*way
	conns    map[connectionKey]*connection
	sorted   []*connection // those with lanes first, then by order, once rates has looked
	unsorted bool
	live     []*connection // of sorted: those that have something to move
	lanes    []*lane
	filler   filler
}

func runBuffered[T num.Number[T]](s *state[T]) error {
	b := &buffers[T]{state: s, grain: s.o.Grain, legs: make([]uint8, len(s.transfers)), ways: make([]*way, len(s.n.Flows)), conns: make(map[connectionKey]*connection)}
	load := make([]T, len(s.n.Resources))
	fastest := 0.0
	for i := range s.transfers {
		s.n.AddUse(s.transfers[i].Flow, s.transfers[i].Bytes, load)
		fastest = max(fastest, s.n.Alone(s.transfers[i].Flow).Float64())
	}
	most := min(mostSteps, stepsPerGrain/b.grain)
	for i, r := range s.n.Resources {
		b.capacity = append(b.capacity, r.Capacity.Float64())
		b.step = max(b.step, load[i].Float64()/b.capacity[i]/most)
	}
	b.long = b.step > piece/fastest
	b.step = max(b.step, piece/fastest)
	b.filler = newFiller(b.capacity)
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
		b.now = max(b.now, b.queue[0].at.Float64())
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

// write tells of the transfers that their sender is through with after a step: of relayed ones, for others it is their end.
func (b *buffers[T]) write(l *lane, dt float64) {
	if !l.relayed {
		return
	}
	for i := range l.berths {
		x := &l.berths[i]
		late := l.sent - (x.target - x.held)
		if late < -1e-9*x.target {
			return
		}
		if len(b.writers[x.transfer]) > 0 {
			end := b.now + dt
			if l.rate > 0 {
				end = max(max(b.now, x.began), end-max(0, late)/l.rate)
			}
			b.written(x.transfer, real[T](end))
		}
	}
}

// admit starts what is due, and with a grain what nearly is.
func (b *buffers[T]) admit() {
	for b.queue.Len() > 0 {
		if wait := b.queue[0].at.Float64() - b.now; wait > 0 {
			t := &b.transfers[b.queue[0].transfer]
			if b.grain == 0 || wait > b.grain*t.Bytes.Float64()*b.n.Congestion(t.Flow, b.load).Float64() {
				return
			}
		}
		next := heap.Pop(&b.queue).(start[T])
		if b.request(next) {
			continue
		}
		t := &b.transfers[next.transfer]
		if t.Bytes.Sign() == 0 {
			b.finish(next.transfer, next.at)
			continue
		}
		w := b.way(t.Flow)
		if w.lane == nil {
			w.lane = &lane{way: w, relayed: len(w.stages) > 1}
			b.lanes = append(b.lanes, w.lane)
			w.begin()
		}
		if b.load != nil {
			b.n.AddUse(t.Flow, num.Int[T](1), b.load)
		}
		w.lane.add(next.transfer, t.Bytes.Float64(), w.socket, b.now, next.at.Float64()+t.Bytes.Float64()/b.n.Alone(t.Flow).Float64())
	}
}

// request takes a due transfer, which is off the queue, one leg further towards its first byte and back into the queue; false: there is none left. Legs are
// those of the request, by every hop, and of the go-ahead, back by every hop. Each takes an equal part of the handshake's time on an idle network and
// waits for what its connection holds ahead of it; so does, at last, the first byte of any transfer, for what goes to others: a lane is in order by itself.
// Without Flow.Socket nothing waits, and there is one leg.
func (b *buffers[T]) request(x start[T]) bool {
	t := &b.transfers[x.transfer]
	f := &b.n.Flows[t.Flow]
	socket, hops := f.Socket.Float64(), len(f.Hops)
	leg, legs := int(b.legs[x.transfer]), 0
	if t.Handshake.Sign() > 0 {
		legs = 2 * hops
	}
	b.legs[x.transfer]++
	if socket == 0 || hops == 0 {
		if leg > 0 || t.Handshake.Sign() == 0 {
			return false
		}
		heap.Push(&b.queue, start[T]{x.at.Add(t.Handshake), x.transfer})
		return true
	}
	if leg > legs {
		return false
	}
	key := connectionKey{flow: -1, first: leg == 0 || leg == hops || leg == legs}
	var own *lane
	switch {
	case leg == legs:
		key.hop = f.Hops[0]
		if w := b.ways[t.Flow]; w != nil {
			own = w.lane
		}
	case leg < hops:
		key.hop = f.Hops[leg]
	default:
		key.hop = f.Hops[2*hops-1-leg]
		key.hop.From, key.hop.To = key.hop.To, key.hop.From
	}
	wait := 0.0
	if c := b.conns[key]; c != nil && c.rate > 0 {
		wait = min(socket, c.holds(own)) / c.rate
	}
	at := x.at.Add(real[T](wait))
	if leg < legs {
		at = at.Add(t.Handshake.Div(num.Int[T](int64(legs))))
	}
	heap.Push(&b.queue, start[T]{at, x.transfer})
	return true
}

// way finds or makes a flow's way. A use without a hop, a forwarder's work, belongs to the hop before it: a busy forwarder reads less.
func (b *buffers[T]) way(flow int) *way {
	if b.ways[flow] != nil {
		return b.ways[flow]
	}
	f := &b.n.Flows[flow]
	w := &way{window: math.Inf(1), socket: f.Socket.Float64()}
	if x := f.Window.Float64(); x > 0 {
		w.window = x
		if b.long { // a window is not to be over within a step: a small part of all, then
			w.window = max(x, windowSteps*b.step*b.n.Alone(flow).Float64())
		}
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
	}
	b.unsorted = true
	b.ways[flow] = w
	return w
}

// rates works out how fast each connection goes. What an empty queue can pass on is what arrives, which depends on the rates: repeated until
// nothing changes.
func (b *buffers[T]) rates() {
	if b.unsorted {
		slices.SortStableFunc(b.sorted, func(x, y *connection) int { return cmp.Compare(x.order, y.order) })
		b.unsorted = false
	}
	b.live = b.live[:0]
	for _, c := range b.sorted {
		if c.rate, c.limits = 0, c.limits[:0]; len(c.lanes)+len(c.stages) > 0 || c.queued > 0 {
			b.live = append(b.live, c)
			c.ask(b.step)
		}
	}
	for changed, k := true, 0; changed && k < rounds; k++ {
		b.filler.fill(b.live)
		changed = b.arrivals()
	}
	for _, c := range b.live {
		if !c.feeds {
			c.divide()
		}
	}
}

// arrivals follows the bytes from lane to queue to queue, lowers the demand of empty queues to what arrives, and reports whether that changed it.
func (b *buffers[T]) arrivals() (changed bool) {
	for _, c := range b.live {
		if c.key.first {
			if c.feeds {
				c.divide()
			}
			continue
		}
		arrives := 0.0
		for _, s := range c.stages {
			s.rate = s.before.rate
			arrives += s.rate
		}
		if c.queued > 0 {
			for _, s := range c.stages {
				s.rate = 0
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
			for _, s := range c.stages {
				s.rate *= c.rate / arrives
			}
		}
	}
	return changed
}

// duration is how long the rates hold.
func (b *buffers[T]) duration() (float64, error) {
	dt, moves := b.step, false
	until := func(bytes, rate, began float64) {
		if rate > 0 && bytes > 0 {
			t := bytes / rate
			dt, moves = min(dt, t+b.grain/4*(b.now+t-began)), true
		}
	}
	for _, l := range b.lanes {
		first := &l.berths[0]
		if !l.relayed {
			until(first.target-l.delivered, l.rate, first.began)
			continue
		}
		until(l.end-l.sent, l.rate, l.berths[len(l.berths)-1].began)
		if i := slices.IndexFunc(l.berths, func(x berth) bool { return len(b.writers[x.transfer]) > 0 }); i >= 0 {
			until(l.berths[i].target-l.berths[i].held-l.sent, l.rate, l.berths[i].began)
		}
		if rate := l.arrival(); b.o.Record || len(b.successors[first.transfer]) > 0 {
			until(first.target-l.delivered, rate, first.began)
		} else {
			moves = moves || rate > 0
		}
	}
	for _, c := range b.live {
		if c.queued > 0 {
			in := 0.0
			for _, s := range c.stages {
				in += s.before.rate
			}
			until(c.queued, c.rate-in, b.now)
			moves = moves || c.rate > 0
		}
	}
	if !moves {
		return 0, fmt.Errorf("transfer %s stalls", b.transfers[b.lanes[0].berths[0].transfer].Name)
	}
	least := b.step * leastStep
	if b.grain > 0 {
		least = b.step * min(1, max(leastStep, float64(len(b.lanes))/crowd))
	}
	dt = max(dt, least)
	for b.queue.Len() > 0 && b.queue[0].at.Float64() < b.now+dt {
		next := heap.Pop(&b.queue).(start[T])
		if b.request(next) { // on its way at the rates of this step
			continue
		}
		b.legs[next.transfer]--
		heap.Push(&b.queue, next)
		return min(dt, max(next.at.Float64()-b.now, least)), nil
	}
	return dt, nil
}

// move lets bytes move for a time.
func (b *buffers[T]) move(dt float64) {
	for _, c := range b.live {
		if c.key.first {
			for _, l := range c.lanes {
				l.send(dt)
			}
			continue
		}
		budget := c.rate * dt
		if c.queued == 0 && len(c.limits) == 0 {
			budget = math.Inf(1) // all that arrives
		}
		c.take()
		c.serve(budget)
	}
	for _, l := range b.lanes {
		stages := l.way.stages
		if l.relayed {
			l.delivered += stages[len(stages)-1].moved
		}
		for k := range stages {
			stages[k].moved = 0
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
		limits, arrival := l.limits(), l.arrival()
		b.write(l, dt)
		if step != nil && len(limits) > 0 {
			record(l, step, limits, arrival)
		}
		charged := b.now
		for len(l.berths) > 0 && l.delivered >= l.berths[0].target*(1-1e-9) {
			x := l.berths[0]
			end := b.now + dt
			if arrival > 0 {
				end = max(charged, end-max(0, l.delivered-x.target)/arrival)
			}
			l.charge(limits, end-charged)
			charged = end
			end = max(end, x.least) // it may have begun early
			for _, t := range l.pop() {
				b.result.Limited[x.transfer] = append(b.result.Limited[x.transfer], Share[T]{t.Limit, real[T](float64(t.Time))})
			}
			b.finish(x.transfer, real[T](end))
		}
		if len(l.berths) > 0 {
			l.charge(limits, b.now+dt-charged)
			kept = append(kept, l)
			continue
		}
		l.way.over()
	}
	clear(b.lanes[len(kept):])
	b.lanes = kept
}

// real converts a float that is finite.
func real[T num.Number[T]](x float64) T {
	var z T
	return z.FromFloat(x)
}
