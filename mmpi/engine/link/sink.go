package link

import (
	"fmt"

	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/flow"
)

// Sink is a receive that its sender has been told to fill. Its owner keeps it in place until
// Upper.Filled.
type Sink struct {
	Handle uint64       // by which Upper.Sink finds it
	Buf    []byte       // what was cleared
	Zcopy  bool         // Buf may be registered with links
	Owner  fmt.Stringer // names the message to the user

	peer     *Peer
	arrived  int64 // bytes
	cover    flow.Cover
	expected int64 // up to where Buf is registered
	mem      registration
}

// Open makes a Sink, whose exported fields are set, ready for what the peer will send. The peer
// does not know yet that it may.
func (p *Peer) Open(k *Sink) {
	k.peer, k.arrived, k.cover, k.expected = p, 0, flow.Cover{}, 0
	k.mem.node.Of = &k.mem
	p.set.zcopy.expect(k)
}

// Release takes away what links know of a Sink's memory.
func (k *Sink) Release(s *Set) { s.zcopy.unpin(&k.mem) }

// data handles a Data frame but for its payload.
func (p *Peer) data(r *rail, h *wire.Header, body []byte, payload int) ([]byte, rxOp, error) {
	d, err := wire.ParseData(body)
	if err != nil {
		return nil, rxOp{}, err
	}
	op := rxOp{typ: wire.TypeData, peer: p, n: payload, rail: r, epoch: h.Epoch, seq: h.Seq}
	k := p.set.upper.Sink(p, d.Receiver)
	if k == nil {
		if p.several() || p.set.replays {
			return nil, op, nil // late, after a replay
		}
		return nil, rxOp{}, fmt.Errorf("no receive %x from it is under way", d.Receiver)
	}
	size := int64(len(k.Buf))
	fits := payload > 0 && d.Offset <= uint64(size) && int64(payload) <= size-int64(d.Offset)
	if !fits || !p.scattered() && !p.set.replays && d.Offset != uint64(k.arrived) {
		return nil, rxOp{}, fmt.Errorf("segment of %d bytes at %d, where %d of %d bytes have arrived",
			payload, d.Offset, k.arrived, size)
	}
	op.offset = int64(d.Offset)
	fresh := uint64(k.cover.Fresh(op.offset, op.offset+int64(payload)))
	if fresh == 0 {
		return nil, op, nil
	}
	if room := p.dataIn.Room(); fresh > room {
		return nil, rxOp{}, fmt.Errorf("%w: %d bytes where %d were allowed", flow.ErrOverrun, fresh, room)
	}
	op.sink = k
	return k.Buf[op.offset : op.offset+int64(payload)], op, nil
}

// segmentLanded counts a segment that is in place (or was thrown away, because its bytes were).
func (s *Set) segmentLanded(op *rxOp) error {
	p, k := op.peer, op.sink
	over := false
	if k != nil {
		fresh, err := k.cover.Add(op.offset, op.offset+int64(op.n))
		if err == nil {
			err = p.dataIn.Receive(uint64(fresh))
		}
		if err != nil {
			return err
		}
		k.arrived += fresh
		if fresh > 0 {
			s.progress++
		}
		for _, o := range s.rails { // nothing is written over what has been checked
			if o != op.rail && o.in.busy && o.in.op.sink == k && o.in.op.offset < op.offset+int64(op.n) &&
				op.offset < o.in.op.offset+int64(o.in.op.n) {
				o.in.op.sink = nil
				o.toScratch()
			}
		}
		s.zcopy.expectMore(k)
		p.dataIn.Consume(uint64(fresh))
		if p.dataIn.Due(p.Far()) {
			p.fitWindow()
			s.upper.SayCredit(p)
		}
		if over = k.arrived == int64(len(k.Buf)); over {
			for _, o := range s.rails {
				if o.in.busy && o.in.op.sink == k {
					o.in.op.sink = nil // it still counts as landed
					o.toScratch()
				}
			}
			s.upper.Filled(k)
		}
	}
	if r := op.rail; r.tracked() && r.linked() {
		a := &p.lanes[r.index].in
		if err := a.Count(op.epoch, op.seq, op.n); err != nil {
			return err
		}
		if every := s.landedEvery; r.shares() && (over || a.Untold() >= every) ||
			a.Untold() >= max(every, landedLazily) {
			r.sendLanded(p, a)
		}
	}
	return nil
}

// fitWindow widens the window of what a peer sends where its path takes more.
func (p *Peer) fitWindow() {
	trip := p.RoundTrip()
	if trip == 0 {
		return
	}
	if w := min(p.dataIn.Suits(p.set.Now(), trip), WidestData); w > p.dataIn.Window() {
		p.dataIn.Grow(w - p.dataIn.Window())
	}
}

// sendLanded acknowledges segments, over the rail that they came over.
func (r *rail) sendLanded(p *Peer, a *flow.Arrivals) {
	epoch, n := a.Tell()
	f := p.newFrame(wire.TypeLanded, 0, epoch, wire.LandedLen, 0)
	m := wire.Landed{Bytes: n}
	f.Buf = m.Append(f.Buf)
	f.sum(p.set)
	f.rail = r
	r.push(f)
}
