package engine

import "github.com/leidenzipper/zipper/wire"

// Irecv starts to receive into buf, which belongs to the engine until the cell is done: from a rank of another cluster, from AnySource,
// or from a rank of this cluster if Shadowed says so. If the message comes natively, Native.Imrecv or Native.Irecv is called and buf
// is not used. Application threads only.
func (e *Engine) Irecv(c *Comm, kind int, buf []byte, source, tag int, cell *Cell) error {
	e.lock()
	defer e.unlock()
	if err := e.irecv(c, kind, buf, source, tag, cell); err != nil {
		return err
	}
	e.writeOut()
	return nil
}

func (e *Engine) irecv(c *Comm, kind int, buf []byte, source, tag int, cell *Cell) error {
	if e.err != nil {
		return e.err
	}
	if source != AnySource && (source < 0 || source >= len(c.world)) || tag < AnyTag || kind < 0 || kind >= kinds {
		return failure(ErrArg, "receive from %d, tag %d, kind %d", source, tag, kind)
	}
	r := e.request(c, kind, buf, cell)
	r.source, r.tag = source, tag
	if kind == KindP2P && c.mayBeLocal(source) {
		e.unshadow(c)
	}
	if c.mayBeRemote(source) {
		u := &c.spaces[kind].unexpected
		if prev, m := u.find(source, tag); m != nil {
			u.remove(prev, m)
			e.accept(r, m)
			return nil
		}
	}
	if source != AnySource && c.native[source] != Remote && !c.shadowed(source, tag, nil) {
		e.startNative(r, e.native.Irecv(r)) // the shadow has gone since the caller asked
		return nil
	}
	e.post(r)
	return nil
}

// Shadowed reports whether a receive posted earlier may match what this receive from a local rank would: then it has to be given to Irecv.
// Otherwise it may be posted natively at once. Application threads only.
func (e *Engine) Shadowed(c *Comm, source, tag int) bool {
	e.lock()
	defer e.unlock()
	e.unshadow(c)
	return c.shadowed(source, tag, nil)
}

// meet notes in a receive which message it has met.
func (e *Engine) meet(r *Request, m *message) {
	r.peer, r.source, r.tag, r.size, r.remote = m.peer, m.source, m.tag, m.size, m.handle
	if m.sync {
		f := e.newFrame(m.peer, wire.TypeMatched, 0, wire.MatchedLen, 0)
		x := wire.Matched{Sender: m.handle}
		f.buf = x.Append(f.buf)
		e.enqueue(m.peer, f)
	}
}

// accept makes a receive (not in the posted list) take a message (in no list).
func (e *Engine) accept(r *Request, m *message) {
	e.meet(r, m)
	if !m.rts {
		e.to(r, landingState)
		if !m.whole {
			m.req = r // finishPayload delivers
			return
		}
		e.deliver(r, m)
		return
	}
	e.to(r, cleared)
	r.clear = min(m.size, int64(len(r.buf)))
	p := m.peer
	e.freeMessage(m)
	if r.clear == 0 {
		e.sendFin(p, r.remote)
		e.received(r)
		return
	}
	e.expect(r) // before the peer knows that it may send
	f := e.newFrame(p, wire.TypeCTS, 0, wire.CTSLen, 0)
	c := wire.CTS{Sender: r.remote, Receiver: r.handle(), Bytes: uint64(r.clear)}
	f.buf = c.Append(f.buf)
	e.enqueue(p, f)
}

// deliver copies a whole unexpected message into the receive that has met it.
func (e *Engine) deliver(r *Request, m *message) {
	r.moved = int64(copy(r.buf, m.buf))
	e.consumed(m.peer, len(m.buf))
	e.freeMessage(m)
	e.received(r)
}

func (e *Engine) sendFin(p *peer, sender uint64) {
	f := e.newFrame(p, wire.TypeFin, 0, wire.FinLen, 0)
	x := wire.Fin{Sender: sender}
	f.buf = x.Append(f.buf)
	e.enqueue(p, f)
}

// discard throws a message away that nobody will receive. One announced by RTS is answered as if it had been received.
func (e *Engine) discard(m *message) {
	switch {
	case m.rts:
		e.sendFin(m.peer, m.handle)
	case !m.whole:
		m.dropped = true
		return
	default:
		e.consumed(m.peer, len(m.buf))
	}
	e.freeMessage(m)
}

func (e *Engine) newMessage() *message {
	if n := len(e.messages); n > 0 {
		m := e.messages[n-1]
		e.messages = e.messages[:n-1]
		return m
	}
	return new(message)
}

func (e *Engine) freeMessage(m *message) {
	if m.buf != nil {
		e.pool.put(m.buf)
	}
	*m = message{}
	e.messages = append(e.messages, m)
}
