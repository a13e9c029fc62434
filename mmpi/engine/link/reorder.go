package link

import (
	"errors"
	"fmt"

	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/flow"
)

// A frame from another rank, from its head until it is handled:
//
//  1. Its ranks are checked, and its acknowledgement releases what is retained for it.
//  2. Segments and their acknowledgements have no order: sink.go. Credit has none either:
//     Upper.Frame.
//  3. A sequenced frame whose turn it is goes to Upper.Frame. While its payload arrives it is
//     Peer.delivering.
//  4. A frame ahead of its turn is kept complete until then (readAhead, keep, catchUp). One that
//     has been delivered is dropped.
//  5. After a loss a second copy of the frame that is being delivered may arrive. It is read aside
//     while the first may still arrive completely; the one that is complete first counts.

// arrive handles a frame from another rank apart from its payload. It returns where the payload
// goes (the rest of it is discarded) and what is done then. body is not kept. An error means that
// the peer breaks the protocol.
func (r *rail) arrive(h wire.Header, body []byte, payload int) (dst []byte, op arrival, err error) {
	c := r.core
	p, err := c.sender(&h, r.peer)
	if err != nil {
		return nil, op, err
	}
	if err := p.acked(h.Ack); err != nil {
		return nil, op, err
	}
	if !h.Type.Sequenced() {
		switch h.Type {
		case wire.TypeData:
			return r.data(p, &h, body, payload)
		case wire.TypeLanded:
			return nil, op, r.landed(p, h.Epoch, body)
		case wire.TypeAck: // The header has it.
			return nil, op, nil
		case wire.TypeEcho:
			return nil, op, p.echoed(h.Flags, body)
		}
		_, _, err = c.upper.Frame(p, h, body, payload)
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
	if p.delivering.some() { // A copy of it has begun to arrive.
		if p.delivering.n != payload || p.delivering.typ != h.Type {
			return nil, op, fmt.Errorf("frame %d comes again with %d bytes instead of %d", h.Seq, payload,
				p.delivering.n)
		}
		for _, o := range c.rails {
			if o.in.delivers(p) { // Either copy may be complete first, so this one is read aside.
				return p.readAhead(h, body, payload)
			}
		}
		return p.deliveringDst, p.delivering, nil // The rail that it arrived over has been lost.
	}
	dst, done, err := c.upper.Frame(p, h, body, payload)
	if err != nil {
		return dst, op, err
	}
	if done == nil {
		p.delivered()
		return dst, op, p.catchUp()
	}
	op = arrival{typ: h.Type, peer: p, n: payload, upper: done, seq: h.Seq}
	p.delivering, p.deliveringDst = op, dst
	return dst, op, nil
}

// sender checks a header's ranks and returns the peer that it names as the sender. direct is the
// process at the other end of the link, if that is no forwarder.
func (c *core) sender(h *wire.Header, direct *Peer) (*Peer, error) {
	if int(h.Dst) != c.world.Rank || h.Dst == wire.Nobody {
		return nil, fmt.Errorf("it is for rank %d, this is %d", h.Dst, c.world.Rank)
	}
	if h.Src >= uint32(c.size) || int(h.Src) == c.world.Rank {
		return nil, errors.New("no other rank")
	}
	p := c.Peer(int(h.Src))
	if direct != nil && direct != p {
		return nil, fmt.Errorf("it came over the direct link of rank %d", direct.Rank)
	}
	return p, nil
}

// readAhead reads a frame aside. The sender's credit, for every rail that may bring a copy, bounds
// what may wait there.
func (p *Peer) readAhead(h wire.Header, body []byte, payload int) (dst []byte, op arrival, err error) {
	if most := p.core.slots * p.Ahead; p.aheadBytes+payload > most {
		return nil, op, fmt.Errorf("%w: %d bytes ahead of their turn, at most %d allowed",
			flow.ErrOverrun, p.aheadBytes+payload, most)
	}
	p.aheadBytes += payload
	b := h.AppendUnsummed(make([]byte, 0, wire.HeaderLen+len(body)+payload))
	b = append(b, body...)
	op = arrival{typ: h.Type, peer: p, ahead: b[:cap(b)], n: payload, seq: h.Seq}
	return op.ahead[len(b):][:payload], op, nil
}

// abandon ends the arrival of a frame whose link has been lost.
func (a *arrival) abandon() {
	if a.ahead != nil {
		a.peer.aheadBytes -= a.n
	}
}

// land finishes a frame whose payload is in place.
func (a *arrival) land() error {
	switch {
	case !a.some():
		return nil
	case a.ahead != nil:
		return a.keep()
	case a.typ == wire.TypeData:
		return a.landSegment()
	}
	if err := a.upper.Landed(a.n); err != nil {
		return err
	}
	p := a.peer
	p.delivering, p.deliveringDst = arrival{}, nil
	p.delivered()
	return p.catchUp()
}

// keep keeps a frame until its turn, which may have come while it was arriving, because another
// copy was faster.
func (a *arrival) keep() error {
	p := a.peer
	place, err := p.order.Place(a.seq)
	if err != nil {
		return err
	}
	switch {
	case place == flow.Duplicate:
		p.aheadBytes -= a.n
		return nil
	case place == flow.Next && p.delivering.some(): // faster than the copy that began before
		p.aheadBytes -= a.n
		for _, o := range p.core.rails {
			if o.in.delivers(p) {
				o.in.discard()
			}
		}
		copy(p.deliveringDst, a.ahead[len(a.ahead)-a.n:])
		first := p.delivering
		return first.land()
	}
	p.order.Keep(a.seq, a.ahead)
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
		dst, done, err := p.core.upper.Frame(p, h, b[wire.HeaderLen:n], h.Payload())
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
