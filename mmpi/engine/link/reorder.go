package link

import (
	"errors"
	"fmt"

	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/flow"
)

// A frame from another rank, from its head until it is handled:
//
//  1. Its ranks are checked, and its acknowledgement releases the retained frames that it covers.
//     A frame of a rank whose cluster is lost is discarded.
//  2. Segments and their acknowledgements have no order: sink.go. Credit has none either:
//     Upper.Frame.
//  3. A sequenced frame whose turn it is goes to Upper.Frame. While its payload arrives it is
//     Peer.delivering.
//  4. A frame ahead of its turn is kept complete until then (readAhead, keep, catchUp). A duplicate
//     of a delivered frame is dropped.
//  5. After a loss, a second copy of the frame that is being delivered may arrive. It is read aside
//     while the first copy may still arrive completely. The copy that is complete first is
//     delivered.

// arrive handles the header and body of a frame from another rank. It returns the destination of
// the payload, beyond which bytes are discarded, and the arrival to handle once the payload is
// complete. It does not keep body. An error means that the peer violates the protocol.
func (r *rail) arrive(h wire.Header, body []byte, payload int) (dst []byte, op arrival, err error) {
	c := r.core
	p, err := c.sender(&h, r.peer)
	if err != nil {
		return nil, op, err
	}
	if p.lost {
		return nil, op, nil
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
		case wire.TypeAck: // The header has the acknowledgement.
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
			return nil, op, fmt.Errorf("frame %d was sent again with %d bytes instead of %d", h.Seq, payload,
				p.delivering.n)
		}
		for _, o := range c.rails {
			if o.in.delivers(p) { // Either copy may be complete first, so this one is read aside.
				return p.readAhead(h, body, payload)
			}
		}
		return p.deliveringDst, p.delivering, nil // The rail of the first copy has been lost.
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

// sender checks the ranks in header h, and returns the peer that has sent the frame. direct is the
// process at the other end of the link, or nil if that is a forwarder.
func (c *core) sender(h *wire.Header, direct *Peer) (*Peer, error) {
	if int(h.Dst) != c.world.Rank || h.Dst == wire.Nobody {
		return nil, fmt.Errorf("it is for rank %d, but this is rank %d", h.Dst, c.world.Rank)
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

// readAhead prepares to receive a frame ahead of its turn into memory of its own, and returns the
// destination of its payload. The memory of such frames is limited to the sender's credit, for each
// rail that may bring a copy; an error means that the peer exceeds it.
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

// abandon ends the receipt of a frame whose link has been lost, before its payload is complete.
func (a *arrival) abandon() {
	if a.ahead != nil {
		a.peer.aheadBytes -= a.n
	}
}

// land handles a frame whose payload is in place: it delivers the frame, keeps it until its turn,
// or counts the segment.
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

// keep handles a frame that was received into memory of its own, ahead of its turn. It keeps the
// frame until its turn, delivers it if its turn has come, or drops it if another copy has been
// delivered.
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
	case place == flow.Next && p.delivering.some(): // This copy is complete before the one that began earlier.
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

// catchUp delivers, in order, the frames of the peer that were kept until their turn and whose turn
// has come.
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
