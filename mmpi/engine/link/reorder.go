package link

import (
	"errors"
	"fmt"

	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/flow"
)

// A frame from another rank, from its head to its handling:
//
//  1. Its ranks are checked, and its acknowledgement frees what is retained for it.
//  2. Segments and their acknowledgements have no order: sink.go, source.go. Credit has none
//     either: Upper.Frame.
//  3. A sequenced frame whose turn it is goes to Upper.Frame. While its payload comes it is
//     Peer.delivering.
//  4. One ahead of its turn is kept whole until then (readAhead, keep, catchUp); one that was
//     delivered is dropped.
//  5. After a loss a second copy of the one that is being delivered may come. It is read aside
//     while the first may still come whole; whichever is whole first counts.

// rxOp is a frame whose payload is coming, and what is done when it is in place.
type rxOp struct {
	typ   wire.Type
	peer  *Peer
	n     int     // payload bytes
	upper Payload // is told; nil: nobody
	ahead []byte  // a whole frame that is to be kept
	seq   uint64  // of Data: its place in the lane

	// Data: where it came from and its place. sink is nil when the receive is over: then it only
	// counts as landed.
	rail   *rail
	epoch  uint16
	offset int64
	sink   *Sink
}

func (op *rxOp) some() bool { return op.typ != 0 }

// arrive handles a frame from another rank but for its payload. It returns where the payload goes
// (the rest of it is thrown away) and what to do then. body is not kept. An error means a peer that
// breaks the protocol.
func (r *rail) arrive(h wire.Header, body []byte, payload int) (dst []byte, op rxOp, err error) {
	s := r.set
	p, err := sender(s, r, &h)
	if err != nil {
		return nil, op, err
	}
	if err := p.acked(h.Ack); err != nil {
		return nil, op, err
	}
	if !h.Type.Sequenced() {
		switch h.Type {
		case wire.TypeData:
			return p.data(r, &h, body, payload)
		case wire.TypeLanded:
			return nil, op, p.landed(r, h.Epoch, body)
		case wire.TypeAck: // the header says it
			return nil, op, nil
		case wire.TypeEcho:
			return nil, op, p.echoed(h.Flags, body)
		}
		_, _, err = s.upper.Frame(p, h, body, payload)
		return nil, op, err
	}
	place, err := p.order.Place(h.Seq)
	if err != nil {
		return nil, op, err
	}
	switch place {
	case flow.Duplicate:
		return nil, op, nil
	case flow.Early:
		return p.readAhead(h, body, payload)
	}
	if p.delivering.some() { // a copy of it has begun
		if p.delivering.n != payload || p.delivering.typ != h.Type {
			return nil, op, fmt.Errorf("frame %d comes again with %d bytes instead of %d", h.Seq, payload,
				p.delivering.n)
		}
		for _, o := range s.rails {
			if o.readsDelivering(p) { // either copy may come whole: this one is read aside meanwhile
				return p.readAhead(h, body, payload)
			}
		}
		return p.deliveringDst, p.delivering, nil // the rail that it came over is lost
	}
	dst, done, err := s.upper.Frame(p, h, body, payload)
	if err != nil {
		return dst, op, err
	}
	if done == nil {
		p.delivered()
		return dst, op, p.catchUp()
	}
	op = rxOp{typ: h.Type, peer: p, n: payload, upper: done, seq: h.Seq}
	p.delivering, p.deliveringDst = op, dst
	return dst, op, nil
}

// sender checks a header's ranks and gives the peer that the frame is said to be from.
func sender(s *Set, r *rail, h *wire.Header) (*Peer, error) {
	if int(h.Dst) != s.world.Rank || h.Dst == wire.Nobody {
		return nil, fmt.Errorf("it is for rank %d, this is %d", h.Dst, s.world.Rank)
	}
	if h.Src >= uint32(s.size) || int(h.Src) == s.world.Rank {
		return nil, errors.New("no other rank")
	}
	p := s.Peer(int(h.Src))
	if r.peer != nil && r.peer != p {
		return nil, fmt.Errorf("it came over the direct link of rank %d", r.peer.Rank)
	}
	return p, nil
}

// readsDelivering reports whether the rail is reading the payload of the frame that the peer has
// delivering.
func (r *rail) readsDelivering(p *Peer) bool {
	op := &r.in.op
	return r.in.busy && op.peer == p && op.typ.Sequenced() && op.ahead == nil
}

// readAhead reads a frame aside. What may wait there is bounded by the sender's credit, for every
// rail that may bring a copy.
func (p *Peer) readAhead(h wire.Header, body []byte, payload int) (dst []byte, op rxOp, err error) {
	if most := p.set.slots * p.Ahead; p.aheadBytes+payload > most {
		return nil, op, fmt.Errorf("%w: %d bytes ahead of their turn, at most %d allowed",
			flow.ErrOverrun, p.aheadBytes+payload, most)
	}
	p.aheadBytes += payload
	b := h.AppendUnsummed(make([]byte, 0, wire.HeaderLen+len(body)+payload))
	b = append(b, body...)
	op = rxOp{typ: h.Type, peer: p, ahead: b[:cap(b)], n: payload, seq: h.Seq}
	return op.ahead[len(b):][:payload], op, nil
}

// landed finishes a frame whose payload is in place.
func (s *Set) landed(op rxOp) error {
	switch {
	case !op.some():
		return nil
	case op.ahead != nil:
		return s.keep(&op)
	case op.typ == wire.TypeData:
		return s.segmentLanded(&op)
	}
	if err := op.upper.Landed(op.n); err != nil {
		return err
	}
	p := op.peer
	p.delivering, p.deliveringDst = rxOp{}, nil
	p.delivered()
	return p.catchUp()
}

// keep keeps a frame until its turn, which may have come while it was arriving: another copy may
// have been faster.
func (s *Set) keep(op *rxOp) error {
	p := op.peer
	place, err := p.order.Place(op.seq)
	if err != nil {
		return err
	}
	switch {
	case place == flow.Duplicate:
		p.aheadBytes -= op.n
		return nil
	case place == flow.Next && p.delivering.some(): // faster than the copy that began before
		p.aheadBytes -= op.n
		for _, o := range s.rails {
			if o.readsDelivering(p) {
				o.toScratch()
				o.in.op = rxOp{}
			}
		}
		copy(p.deliveringDst, op.ahead[len(op.ahead)-op.n:])
		return s.landed(p.delivering)
	}
	p.order.Keep(op.seq, op.ahead)
	return p.catchUp()
}

// catchUp handles frames that were ahead of their turn and no longer are.
func (p *Peer) catchUp() error {
	for {
		b, ok := p.order.Pop()
		if !ok {
			return nil
		}
		h := wire.ParsedHeader(b)
		n := len(b) - h.Payload()
		p.aheadBytes -= h.Payload()
		dst, done, err := p.set.upper.Frame(p, h, b[wire.HeaderLen:n], h.Payload())
		if err != nil {
			return err
		}
		copy(dst, b[n:])
		if done != nil {
			if err := done.Landed(h.Payload()); err != nil {
				return err
			}
		}
		p.delivered()
	}
}
