package link

import (
	"fmt"

	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/flow"
)

// The receiving end of large messages.

// data handles the header and body of a Data frame. It returns the destination of the payload, or
// nil if all of its bytes are duplicates or the receive is complete, and the arrival to handle once
// the payload is complete. An error means that the peer violates the protocol.
func (r *rail) data(p *Peer, h *wire.Header, body []byte, payload int) ([]byte, arrival, error) {
	d, err := wire.ParseData(body)
	if err != nil {
		return nil, arrival{}, err
	}
	op := arrival{typ: wire.TypeData, peer: p, n: payload, lane: r.index, epoch: h.Epoch, seq: h.Seq}
	k := p.core.upper.Sink(p, d.Receiver)
	if k == nil {
		if p.several() || p.core.replays {
			return nil, op, nil // a duplicate after a replay
		}
		return nil, arrival{}, fmt.Errorf("no receive %x from it is under way", d.Receiver)
	}
	size := int64(len(k.Buf))
	fits := payload > 0 && d.Offset <= uint64(size) && int64(payload) <= size-int64(d.Offset)
	if !fits || !p.scattered() && !p.core.replays && d.Offset != uint64(k.arrived) {
		return nil, arrival{}, fmt.Errorf("segment of %d bytes at %d, where %d of %d bytes have arrived",
			payload, d.Offset, k.arrived, size)
	}
	op.offset = int64(d.Offset)
	fresh := uint64(k.cover.Fresh(op.offset, op.offset+int64(payload)))
	if fresh == 0 {
		return nil, op, nil
	}
	if room := p.dataIn.Room(); fresh > room {
		return nil, arrival{}, fmt.Errorf("%w: %d bytes where %d were allowed", flow.ErrOverrun, fresh, room)
	}
	op.sink = k
	return k.Buf[op.offset : op.offset+int64(payload)], op, nil
}

// landSegment counts a segment whose payload is in place or was discarded as a duplicate. It sends
// credit and acknowledgements that are due, and calls Upper.Filled when the Sink is full.
func (a *arrival) landSegment() error {
	p, k := a.peer, a.sink
	c := p.core
	over := false
	if k != nil {
		fresh, err := k.add(a.offset, a.n)
		if err == nil {
			err = p.dataIn.Receive(uint64(fresh))
		}
		if err != nil {
			return err
		}
		if fresh > 0 {
			c.advanced()
		}
		a.protect()
		if c.zcopy.from > 0 && !k.full() {
			k.advance()
			p.register(k)
		}
		p.dataIn.Consume(uint64(fresh))
		if p.dataIn.Due(p.Far()) {
			p.fitWindow()
			c.upper.SendCredit(p)
		}
		if over = k.full(); over {
			for _, o := range c.rails {
				if o.in.busy && o.in.op.sink == k {
					o.in.detach()
				}
			}
			c.upper.Filled(k)
		}
	}
	r := p.railOf(a.lane)
	if !r.tracked || !r.Linked() {
		return nil
	}
	in := &p.lanes[a.lane].in
	if err := in.Count(a.epoch, a.seq, a.n); err != nil {
		return err
	}
	if every := c.landedEvery; r.shares && (over || in.Unacknowledged() >= every) || in.Unacknowledged() >= max(every, landedLazily) {
		r.sendLanded(p, in)
	}
	return nil
}

// protect prevents other rails from writing over a segment that has been verified: they discard the
// rest of a segment that overlaps it.
func (a *arrival) protect() {
	for _, o := range a.peer.core.rails {
		if o.in.busy && o.in.op.overlaps(a.sink, a.offset, a.n) && o != a.peer.railOf(a.lane) {
			o.in.detach()
		}
	}
}

// sendLanded acknowledges to peer p, over the rail, the segments from p that have arrived over the
// rail (a).
func (r *rail) sendLanded(p *Peer, a *flow.Arrivals) {
	epoch, n := a.Tell()
	f := p.newFrame(wire.TypeLanded, 0, epoch, wire.LandedLen, 0)
	m := wire.Landed{Bytes: n}
	f.Buf = m.Append(f.Buf)
	f.over(r.index)
	r.queue.push(r.core.sums(f))
}

// landed handles a peer's acknowledgement of segments that this process has sent to it over the
// rail. epoch is the lane's epoch (flow.Lane) in which those segments were sent; the
// acknowledgement of another epoch than the current one is ignored. An error means that the
// acknowledgement is malformed or covers bytes that were not sent.
func (r *rail) landed(p *Peer, epoch uint16, body []byte) error {
	m, err := wire.ParseLanded(body)
	if err != nil {
		return err
	}
	if err := p.lanes[r.index].out.Landed(epoch, m.Bytes, r.core.Now()); err != nil {
		return err
	}
	r.enroll(p)
	return nil
}
