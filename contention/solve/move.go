package solve

import (
	"math"
)

// move advances all live connections by dt seconds: it sends, queues and relays bytes at the rates
// that fill has set.
func (b *buffers[T]) move(dt float64) {
	for _, c := range b.live {
		if c.key.first {
			for _, q := range c.sendQueues {
				q.send(dt)
			}
			continue
		}
		budget := c.rate * dt
		if c.queued == 0 && len(c.limits) == 0 {
			budget = math.Inf(1) // everything that arrives
		}
		c.enqueue()
		c.serve(budget)
	}
	for _, q := range b.sendQueues {
		stages := q.path.stages
		if q.relayed {
			q.delivered += stages[len(stages)-1].moved
		}
		for k := range stages {
			stages[k].moved = 0
		}
	}
}

// account charges the dt seconds of a step to the resources that limited the transfers, and ends
// the transfers that have arrived.
func (b *buffers[T]) account(dt float64) {
	var step *Step[T]
	if b.o.Record {
		b.result.Steps = append(b.result.Steps, Step[T]{From: finite[T](b.now), To: finite[T](b.now + dt)})
		step = &b.result.Steps[len(b.result.Steps)-1]
	}
	kept := b.sendQueues[:0]
	for _, q := range b.sendQueues {
		limits, arrival := q.limits(), q.arrival()
		b.write(q, dt)
		if step != nil && len(limits) > 0 {
			record(q, step, limits, arrival)
		}
		charged := b.now
		for len(q.entries) > 0 && q.delivered >= q.entries[0].target*(1-1e-9) {
			x := q.entries[0]
			end := b.now + dt
			if arrival > 0 {
				end = max(charged, end-max(0, q.delivered-x.target)/arrival)
			}
			q.charge(limits, end-charged)
			charged = end
			end = max(end, x.least) // it may have begun early
			for _, t := range q.pop() {
				b.result.Limited[x.transfer] = append(b.result.Limited[x.transfer],
					Share[T]{t.Limit, finite[T](float64(t.Time))})
			}
			b.finish(x.transfer, finite[T](end))
		}
		if len(q.entries) > 0 {
			q.charge(limits, b.now+dt-charged)
			kept = append(kept, q)
			continue
		}
		q.path.detach()
	}
	clear(b.sendQueues[len(kept):])
	b.sendQueues = kept
}

// write ends the transfers in q for their senders, as far as these have finished with them in a
// step of dt seconds, if the transfers pass zippers. Others end for sender and receiver at once.
func (b *buffers[T]) write(q *sendQueue, dt float64) {
	if !q.relayed {
		return
	}
	for i := range q.entries {
		x := &q.entries[i]
		late := q.sent - (x.target - x.held)
		if late < -1e-9*x.target {
			return
		}
		if len(b.writers[x.transfer]) > 0 {
			end := b.now + dt
			if q.rate > 0 {
				end = max(max(b.now, x.began), end-max(0, late)/q.rate)
			}
			b.written(x.transfer, finite[T](end))
		}
	}
}
