package solve

import (
	"github.com/leidenzipper/zipper/contention/num"
)

// This file models how zipped clusters really move bytes, for the rule sharing.Buffered. A transfer
// through zippers is not one stream from end to end: every hop is a connection of its own, and a
// forwarder queues the bytes that the next connection does not take. So a slow receiver slows the
// sender down only when a whole window (Flow.Window) of the pair is in flight. A queue is served in
// FIFO order, so a sender that sends into it faster gets more out of it. The model:
//
//   - connections share resources max-min fairly (progressive filling), whatever the number of
//     their transfers;
//   - a sender gives the destinations that it may send to equal parts of a connection; transfers to
//     the same destination go one after the other; transfers inside a network, which need no
//     zipper, share their connection equally;
//   - a zipper's outgoing connection is a FIFO queue.
//
// Time proceeds in steps. A step ends when all transfers of a path have been sent, when a transfer
// that others wait for has arrived, or when a queue is empty; at the latest when the fastest flow
// has moved a piece (or a part of the whole that keeps the number of steps bounded). Programs move
// pieces, too, so finer steps would not be more exact. A step may go on beyond such an event, by a
// quarter of Options.Grain of the time that the transfer has taken by then. A larger part would be
// too much, because in a chain of transfers the delays add up. The end of a transfer within a step
// is computed from its rate.

// buffers is the state of a run by the rule buffered.
type buffers[T num.Number[T]] struct {
	*state[T]
	now  float64 // current time in seconds
	step float64 // upper limit for the length of a step, in seconds
	// long says whether step is longer than the fastest flow needs for a piece.
	long     bool
	grain    float64   // value of Options.Grain
	capacity []float64 // capacity of each resource, by its index
	// handshakeHop has the number of finished handshake hops of each transfer, by its index.
	handshakeHop []uint8
	// paths has the path of each flow, by its index; nil if not used yet.
	paths []*path
	conns map[connectionKey]*connection // connections made so far
	// sorted has the connections with send queues first, then by order, once rates has sorted
	// them.
	sorted     []*connection
	unsorted   bool          // whether sorted must be sorted again
	live       []*connection // connections of sorted that have bytes to move
	sendQueues []*sendQueue  // send queues with transfers under way
	filler     filler        // computes the rates of connections
}

func runBuffered[T num.Number[T]](s *state[T]) error {
	b := &buffers[T]{
		state: s, grain: s.o.Grain, handshakeHop: make([]uint8, len(s.transfers)), paths: make([]*path, len(s.n.Flows)),
		conns: make(map[connectionKey]*connection),
	}
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
	if len(b.sendQueues) == 0 {
		if len(b.queue) == 0 {
			return b.circular()
		}
		b.now = max(b.now, b.queue[0].at.Float64())
	}
	b.admit()
	if len(b.sendQueues) == 0 {
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

// admit starts the transfers that are due at the current time, and with a grain those that are
// nearly due.
func (b *buffers[T]) admit() {
	for len(b.queue) > 0 {
		if wait := b.queue[0].at.Float64() - b.now; wait > 0 {
			t := &b.transfers[b.queue[0].transfer]
			if b.grain == 0 || wait > b.grain*t.Bytes.Float64()*b.n.Congestion(t.Flow, b.load).Float64() {
				return
			}
		}
		next := b.queue.Take()
		if b.request(next) {
			continue
		}
		t := &b.transfers[next.transfer]
		if t.Bytes.Sign() == 0 {
			b.finish(next.transfer, next.at)
			continue
		}
		p := b.pathOf(t.Flow)
		if p.sending == nil {
			p.sending = &sendQueue{path: p, relayed: len(p.stages) > 1}
			b.sendQueues = append(b.sendQueues, p.sending)
			p.attach()
		}
		if b.load != nil {
			b.n.AddUse(t.Flow, num.Int[T](1), b.load)
		}
		p.sending.add(next.transfer, t.Bytes.Float64(), p.socket, b.now,
			next.at.Float64()+t.Bytes.Float64()/b.n.Alone(t.Flow).Float64())
	}
}
