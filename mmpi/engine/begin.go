package engine

import (
	"errors"
	"fmt"

	"github.com/leidenzipper/zipper/mmpi/engine/flow"
	"github.com/leidenzipper/zipper/wire"
)

// landing is what to do when a frame's payload is in place.
type landing struct {
	typ   wire.Type
	peer  *peer
	req   *Request // Eager: the receive it met; Data: the receive it is part of
	msg   *message // Eager: the unexpected message it is
	n     int      // payload bytes
	early []byte   // a whole frame that is to be kept
	seq   uint64

	// Data: where it came from and its place. req is nil when the receive is over: then it only counts as landed.
	rail   *rail
	epoch  uint16
	offset int64
}

func (l *landing) some() bool { return l.typ != 0 }

// begin handles a frame from another rank but for its payload. It returns where the payload goes (the rest of it is thrown away) and what
// to do then. body is not kept. An error means a peer that breaks the protocol.
func (e *Engine) begin(r *rail, h wire.Header, body []byte, payload int) (dst []byte, l landing, err error) {
	if int(h.Dst) != e.world.Rank || h.Dst == wire.Nobody {
		return nil, l, fmt.Errorf("it is for rank %d, this is %d", h.Dst, e.world.Rank)
	}
	if h.Src >= uint32(e.size) || int(h.Src) == e.world.Rank {
		return nil, l, errors.New("no other rank")
	}
	p := e.peer(int(h.Src))
	if r.peer != nil && r.peer != p {
		return nil, l, fmt.Errorf("it came over the direct link of rank %d", r.peer.rank)
	}
	if err := e.acked(p, h.Ack); err != nil {
		return nil, l, err
	}
	if !h.Type.Sequenced() {
		dst, l, err = e.handle(p, h, body, payload)
		if l.typ == wire.TypeData {
			l.rail, l.epoch = r, h.Epoch
		} else if h.Type == wire.TypeLanded && err == nil {
			err = e.handleLanded(r, p, h.Epoch, body)
		}
		return dst, l, err
	}
	place, err := p.order.Place(h.Seq)
	if err != nil {
		return nil, l, err
	}
	switch place {
	case flow.Duplicate:
		return nil, l, nil
	case flow.Early:
		return e.beginEarly(p, h, body, payload)
	}
	if p.open.some() { // a copy of it has begun
		if p.open.n != payload || p.open.typ != h.Type {
			return nil, l, fmt.Errorf("frame %d comes again with %d bytes instead of %d", h.Seq, payload, p.open.n)
		}
		for _, o := range e.rails {
			if o.readsOpen(p) { // which of them will come whole is not known: this one waits aside
				return e.beginEarly(p, h, body, payload)
			}
		}
		return p.openDst, p.open, nil // the rail that it came over is lost
	}
	dst, l, err = e.handle(p, h, body, payload)
	if err != nil {
		return dst, l, err
	}
	if !l.some() {
		e.taken(p)
		return dst, l, e.catchUp(p)
	}
	l.seq = h.Seq
	p.open, p.openDst = l, dst
	return dst, l, nil
}

// beginEarly reads a frame aside. What may wait there is bounded by the sender's credit, for every rail that may bring a copy.
func (e *Engine) beginEarly(p *peer, h wire.Header, body []byte, payload int) (dst []byte, l landing, err error) {
	if most := e.slots * int(p.eagerIn.Window()); p.earlyBytes+payload > most {
		return nil, l, fmt.Errorf("%w: %d bytes ahead of their turn, at most %d allowed", flow.ErrOverrun, p.earlyBytes+payload, most)
	}
	p.earlyBytes += payload
	b := h.Append(make([]byte, 0, wire.HeaderLen+len(body)+payload))
	b = append(b, body...)
	l = landing{typ: h.Type, peer: p, early: b[:cap(b)], n: payload, seq: h.Seq}
	return l.early[len(b):][:payload], l, nil
}

// landed finishes a frame whose payload is in place.
func (e *Engine) landed(l landing) error {
	switch {
	case !l.some():
		return nil
	case l.early != nil:
		return e.keepEarly(l)
	}
	if err := e.finishPayload(l); err != nil {
		return err
	}
	if l.typ.Sequenced() {
		l.peer.open, l.peer.openDst = landing{}, nil
		e.taken(l.peer)
		return e.catchUp(l.peer)
	}
	return nil
}

// keepEarly keeps a frame until its turn, which may have come while it was arriving: another copy may have been faster.
func (e *Engine) keepEarly(l landing) error {
	p := l.peer
	place, err := p.order.Place(l.seq)
	if err != nil {
		return err
	}
	switch {
	case place == flow.Duplicate:
		p.earlyBytes -= l.n
		return nil
	case place == flow.Next && p.open.some(): // faster than the copy that began before
		p.earlyBytes -= l.n
		for _, o := range e.rails {
			if o.readsOpen(p) {
				o.toScratch()
				o.in.land = landing{}
			}
		}
		copy(p.openDst, l.early[len(l.early)-l.n:])
		return e.landed(p.open)
	}
	p.order.Keep(l.seq, l.early)
	return e.catchUp(p)
}

// catchUp handles early frames whose turn has come.
func (e *Engine) catchUp(p *peer) error {
	for {
		b, ok := p.order.Pop()
		if !ok {
			return nil
		}
		h, err := wire.ParseHeader(b)
		if err != nil {
			return err
		}
		n := len(b) - h.Payload()
		p.earlyBytes -= h.Payload()
		dst, l, err := e.handle(p, h, b[wire.HeaderLen:n], h.Payload())
		if err != nil {
			return err
		}
		copy(dst, b[n:])
		if err := e.finishPayload(l); err != nil {
			return err
		}
		e.taken(p)
	}
}
