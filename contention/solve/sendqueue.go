package solve

import (
	"cmp"
	"slices"

	"github.com/leidenzipper/zipper/contention/num"
	"github.com/leidenzipper/zipper/contention/sharing"
)

// sendQueue has the transfers under way on one path. Relayed transfers go one after the other.
// Others go side by side in equal parts, so that one count of bytes serves all of them.
type sendQueue struct {
	path    *path   // path of the transfers
	relayed bool    // whether the path has zippers, so that the transfers go one after the other
	end     float64 // value of sent at the end of the last entry, in bytes
	// sent and delivered are bytes since the queue began; for transfers side by side, bytes of
	// each.
	sent, delivered float64
	// rate is the sending rate and most the rate that its window allows, in bytes/s; for transfers
	// side by side, those of each.
	rate, most float64
	entries    []entry // entries sorted by target
	// limited has the time that the first entry, or all of them side by side, waited for each
	// resource.
	limited []charged
}

// charged is the time in seconds that was spent waiting for a resource.
type charged = Share[num.Float]

// entry is a transfer in a send queue.
type entry struct {
	transfer int     // index of the transfer
	target   float64 // value of sendQueue.delivered at which it ends, in bytes
	held     float64 // number of bytes that may be unsent when its sender has finished with it
	began    float64 // time in seconds at which it began
	least    float64 // earliest time of its end in seconds
	// before is the value of sendQueue.limited when it began; only if transfers go side by side.
	before []charged
}

func (q *sendQueue) add(transfer int, bytes, socket, now, least float64) {
	x := entry{transfer: transfer, target: q.end + bytes, held: min(socket, bytes), began: now, least: least}
	at := len(q.entries)
	if !q.relayed {
		x.target, x.before = q.sent+bytes, slices.Clone(q.limited)
		at, _ = slices.BinarySearchFunc(q.entries, x.target,
			func(b entry, t float64) int { return cmp.Compare(b.target, t) })
	}
	q.entries = slices.Insert(q.entries, at, x)
	q.end = q.entries[len(q.entries)-1].target
}

// pop removes the first entry, whose transfer has ended, and returns for how long the transfer
// waited for each resource.
func (q *sendQueue) pop() []charged {
	x := q.entries[0]
	q.entries = q.entries[1:]
	list := since(q.limited, x.before)
	if q.relayed {
		q.limited = q.limited[:0]
	}
	return list
}

func (q *sendQueue) charge(limits []int, time float64) {
	if time <= 0 {
		return
	}
	for _, r := range limits {
		q.limited = charge(q.limited, sharing.Limit{Resource: r}, num.Float(time/float64(len(limits))))
	}
}

// record adds the transfers that queue q sends now to step, each with the given rate in bytes/s and
// the indices of the resources that limit it.
func record[T num.Number[T]](q *sendQueue, step *Step[T], limits []int, rate float64) {
	list := make([]sharing.Limit, len(limits))
	for i, r := range limits {
		list[i].Resource = r
	}
	for _, x := range q.entries[:int(q.parallel())] {
		step.Active, step.Rate, step.Limits = append(step.Active, x.transfer), append(step.Rate, finite[T](rate)),
			append(step.Limits, list)
	}
}

// parallel returns the number of transfers of the queue that are sent at the same time: 1 if the
// path has zippers, or all.
func (q *sendQueue) parallel() float64 {
	if q.relayed {
		return 1
	}
	return float64(len(q.entries))
}

// send advances the queue by dt seconds: it sends bytes at the queue's rate, at most to the end of
// the queue. Without a zipper on the path, bytes are delivered when they are sent.
func (q *sendQueue) send(dt float64) {
	bytes := min(q.rate*dt, q.end-q.sent)
	if q.end-q.sent-bytes < 1e-9*q.end {
		bytes = q.end - q.sent
	}
	q.sent += bytes
	q.path.stages[0].moved = bytes
	if !q.relayed {
		q.delivered = q.sent
	}
}

// arrival returns the rate in bytes/s at which the queue's bytes are delivered to the receiver.
func (q *sendQueue) arrival() float64 {
	if !q.relayed {
		return q.rate
	}
	return q.path.stages[len(q.path.stages)-1].rate
}

// limits returns the indices of the resources that limit the last connection in which bytes of the
// queue wait. If none wait it returns those of the first connection on the path that a resource
// limits.
func (q *sendQueue) limits() []int {
	for k := len(q.path.stages) - 1; k > 0; k-- {
		if s := &q.path.stages[k]; s.queued > 0 && len(s.conn.limits) > 0 {
			return s.conn.limits
		}
	}
	for k := range q.path.stages {
		if c := q.path.stages[k].conn; len(c.limits) > 0 {
			return c.limits
		}
	}
	return nil
}
