package solve

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// rates computes the rate of each connection in the next step. An empty queue passes on the bytes
// that arrive, which depend on the rates, so the computation is repeated until nothing changes, at
// most rateRounds times.
func (b *buffers[T]) rates() {
	if b.unsorted {
		slices.SortStableFunc(b.sorted, func(x, y *connection) int { return cmp.Compare(x.order, y.order) })
		b.unsorted = false
	}
	b.live = b.live[:0]
	for _, c := range b.sorted {
		if c.rate, c.limits = 0, c.limits[:0]; len(c.sendQueues)+len(c.stages) > 0 || c.queued > 0 {
			b.live = append(b.live, c)
			c.want(b.step)
		}
	}
	for changed, k := true, 0; changed && k < rateRounds; k++ {
		b.filler.fill(b.live)
		changed = b.arrivals()
	}
	for _, c := range b.live {
		if !c.feeds {
			c.divide()
		}
	}
}

// arrivals follows the bytes from queue to queue, lowers the demand of empty queues to the rate of
// arrival, and reports whether that changed any demand.
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

// duration returns the length in seconds of the next step, in which the current rates hold: until a
// transfer has been sent or has arrived, a queue is empty or a transfer starts, within the limits
// for a step. It returns an error if nothing moves.
func (b *buffers[T]) duration() (float64, error) {
	dt, moves := b.step, false
	until := func(bytes, rate, began float64) {
		if rate > 0 && bytes > 0 {
			t := bytes / rate
			dt, moves = min(dt, t+b.grain/4*(b.now+t-began)), true
		}
	}
	for _, q := range b.sendQueues {
		first := &q.entries[0]
		if !q.relayed {
			until(first.target-q.delivered, q.rate, first.began)
			continue
		}
		until(q.end-q.sent, q.rate, q.entries[len(q.entries)-1].began)
		if i := slices.IndexFunc(q.entries, func(x entry) bool { return len(b.writers[x.transfer]) > 0 }); i >= 0 {
			until(q.entries[i].target-q.entries[i].held-q.sent, q.rate, q.entries[i].began)
		}
		if rate := q.arrival(); b.o.Record || len(b.successors[first.transfer]) > 0 {
			until(first.target-q.delivered, rate, first.began)
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
		return 0, fmt.Errorf("transfer %s stalls", b.transfers[b.sendQueues[0].entries[0].transfer].Name)
	}
	least := b.step * leastStep
	if b.grain > 0 {
		least = b.step * min(1, max(leastStep, float64(len(b.sendQueues))/manyQueues))
	}
	dt = max(dt, least)
	for len(b.queue) > 0 && b.queue[0].at.Float64() < b.now+dt {
		next := b.queue.Take()
		if b.request(next) { // under way at the rates of this step
			continue
		}
		b.handshakeHop[next.transfer]--
		b.queue.Add(next)
		return min(dt, max(next.at.Float64()-b.now, least)), nil
	}
	return dt, nil
}
