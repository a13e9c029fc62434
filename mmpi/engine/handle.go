package engine

import (
	"errors"
	"fmt"

	"github.com/leidenzipper/zipper/wire"
)

// handle acts on a frame whose turn it is.
func (e *Engine) handle(p *peer, h wire.Header, body []byte, payload int) (dst []byte, l landing, err error) {
	switch h.Type {
	case wire.TypeEager:
		return e.handleEager(p, h, body, payload)
	case wire.TypeData:
		return e.handleData(p, body, payload)
	case wire.TypeRTS:
		err = e.handleRTS(p, body)
	case wire.TypeCTS:
		err = e.handleCTS(p, body)
	case wire.TypeFin:
		err = e.handleFin(p, body)
	case wire.TypeMatched:
		err = e.handleMatched(p, body)
	case wire.TypeCancel:
		err = e.handleCancel(p, body)
	case wire.TypeCancelReply:
		err = e.handleCancelReply(p, body)
	case wire.TypeCredit:
		err = e.handleCredit(p, body)
	case wire.TypeAck: // the header says it
	case wire.TypeLanded: // begin sees to it
	default:
		err = errors.New("no such frame between ranks")
	}
	return nil, l, err
}

// envelope makes a message of an envelope; its communicator may be unknown yet (nil).
func (e *Engine) envelope(p *peer, body []byte) (*message, *Comm, error) {
	env, err := wire.ParseEnvelope(body)
	if err != nil {
		return nil, nil, err
	}
	if env.Kind >= kinds || env.Tag < 0 || env.Size > 1<<62 {
		return nil, nil, fmt.Errorf("envelope of kind %d, tag %d, %d bytes", env.Kind, env.Tag, env.Size)
	}
	c := e.contextOf[env.Context]
	source := -1
	if c != nil {
		if source = c.remoteRank(p.rank); source < 0 {
			return nil, nil, fmt.Errorf("it is no rank of another cluster in the communicator with context %x", env.Context)
		}
	} else if p.orphans >= e.limits.Orphans {
		return nil, nil, fmt.Errorf("%d messages for communicators unknown here", p.orphans)
	}
	m := e.newMessage()
	m.peer, m.context, m.kind, m.source, m.tag, m.size, m.handle = p, env.Context, int(env.Kind), source, int(env.Tag), int64(env.Size), env.Handle
	return m, c, nil
}

// unexpected keeps a message that no receive has met.
func (e *Engine) unexpected(m *message, c *Comm) {
	if c == nil {
		m.peer.orphans++
		e.orphans = append(e.orphans, m)
		return
	}
	c.spaces[m.kind].unexpected.add(m)
}

// adopt hands the messages that came before their communicator to it.
func (e *Engine) adopt(c *Comm) error {
	left := e.orphans[:0]
	for _, m := range e.orphans {
		if m.context != c.context {
			left = append(left, m)
			continue
		}
		m.peer.orphans--
		if m.source = c.remoteRank(m.peer.rank); m.source < 0 {
			e.fatal(ErrLink, 1, fmt.Sprintf("rank %d sent a message in communicator %x, which it is not in", m.peer.rank, c.context))
			return e.err
		}
		c.spaces[m.kind].unexpected.add(m)
	}
	clear(e.orphans[len(left):])
	e.orphans = left
	return nil
}

func (e *Engine) handleEager(p *peer, h wire.Header, body []byte, payload int) ([]byte, landing, error) {
	if err := p.eagerIn.Receive(uint64(payload)); err != nil {
		return nil, landing{}, err
	}
	m, c, err := e.envelope(p, body)
	if err != nil {
		return nil, landing{}, err
	}
	if m.size != int64(payload) {
		return nil, landing{}, fmt.Errorf("message of %d bytes with %d bytes of payload", m.size, payload)
	}
	m.sync = h.Flags&wire.FlagSync != 0
	l := landing{typ: wire.TypeEager, peer: p, n: payload}
	if c != nil {
		if r := c.spaces[m.kind].posted.first(m.source, m.tag); r != nil {
			e.meet(r, m)
			e.unpost(r)
			e.to(r, landingState)
			e.freeMessage(m)
			l.req = r
			return r.buf[:min(payload, len(r.buf))], l, nil
		}
	}
	m.buf = e.pool.get(payload)
	e.unexpected(m, c)
	l.msg = m
	return m.buf, l, nil
}

// finishPayload acts on payload that is in place.
func (e *Engine) finishPayload(l landing) error {
	switch {
	case l.typ == wire.TypeData:
		return e.segmentLanded(l)
	case l.req != nil:
		e.consumed(l.peer, l.n)
		l.req.moved = min(int64(l.n), int64(len(l.req.buf)))
		e.received(l.req)
	case l.msg != nil:
		l.msg.whole = true
		switch {
		case l.msg.dropped:
			e.discard(l.msg)
		case l.msg.req != nil:
			e.deliver(l.msg.req, l.msg)
		}
	}
	return nil
}

func (e *Engine) handleRTS(p *peer, body []byte) error {
	m, c, err := e.envelope(p, body)
	if err != nil {
		return err
	}
	m.rts = true
	if m.size <= int64(e.limits.Eager) {
		e.widen(p) // it would have been eager, had there been credit
	}
	if c != nil {
		if r := c.spaces[m.kind].posted.first(m.source, m.tag); r != nil {
			e.unpost(r)
			e.accept(r, m)
			return nil
		}
	}
	e.unexpected(m, c)
	return nil
}

// sending gives a send of ours that a frame from the peer names.
func (e *Engine) sending(p *peer, handle uint64, states ...state) (*Request, error) {
	r := e.find(handle)
	if r == nil || r.peer != p {
		return nil, fmt.Errorf("no send %x to it is outstanding", handle)
	}
	for _, s := range states {
		if r.state == s {
			return r, nil
		}
	}
	return nil, fmt.Errorf("send %x is in state %v", handle, r.state)
}

func (e *Engine) handleCTS(p *peer, body []byte) error {
	c, err := wire.ParseCTS(body)
	if err != nil {
		return err
	}
	r, err := e.sending(p, c.Sender, announced, cancelling)
	if err != nil {
		return err
	}
	if c.Bytes == 0 || c.Bytes > uint64(len(r.buf)) {
		return fmt.Errorf("it asks for %d of %d bytes", c.Bytes, len(r.buf))
	}
	e.to(r, clear2send)
	r.remote, r.clear = c.Receiver, int64(c.Bytes)
	p.backlog += r.clear
	if p.bulkTail == nil {
		p.pace.Begin(p.dataOut.Limit(), e.now())
		p.bulkHead = r
	} else {
		p.bulkTail.next = r
	}
	p.bulkTail = r
	e.schedule(p)
	return nil
}

func (e *Engine) handleFin(p *peer, body []byte) error {
	f, err := wire.ParseFin(body)
	if err != nil {
		return err
	}
	r, err := e.sending(p, f.Sender, sent, announced, cancelling)
	if err != nil {
		return err
	}
	for _, o := range e.rails { // replays that were not needed
		if o.seg.active && o.seg.req == r {
			o.seg.detach()
		}
	}
	e.over(r)
	return nil
}

func (e *Engine) handleMatched(p *peer, body []byte) error {
	m, err := wire.ParseMatched(body)
	if err != nil {
		return err
	}
	r, err := e.sending(p, m.Sender, waiting)
	if err != nil {
		return err
	}
	e.over(r)
	return nil
}

// handleCancel takes back an RTS, if no receive and no matched probe has met it.
func (e *Engine) handleCancel(p *peer, body []byte) error {
	c, err := wire.ParseCancel(body)
	if err != nil {
		return err
	}
	reply := wire.CancelReply{Sender: c.Sender, OK: e.takeBack(p, c.Sender)}
	f := e.newFrame(p, wire.TypeCancelReply, 0, wire.CancelReplyLen, 0)
	f.buf = reply.Append(f.buf)
	e.enqueue(p, f)
	return nil
}

func (e *Engine) takeBack(p *peer, handle uint64) bool {
	mine := func(m *message) bool { return m.rts && m.peer == p && m.handle == handle }
	for i, m := range e.orphans {
		if mine(m) {
			p.orphans--
			e.orphans = append(e.orphans[:i], e.orphans[i+1:]...)
			e.freeMessage(m)
			return true
		}
	}
	for _, c := range e.comms {
		if c == nil {
			continue
		}
		for k := range c.spaces {
			l := &c.spaces[k].unexpected
			for prev, m := (*message)(nil), l.head; m != nil; prev, m = m, m.next {
				if mine(m) {
					l.remove(prev, m)
					e.freeMessage(m)
					return true
				}
			}
		}
	}
	return false
}

func (e *Engine) handleCancelReply(p *peer, body []byte) error {
	c, err := wire.ParseCancelReply(body)
	if err != nil {
		return err
	}
	if !c.OK {
		return nil // the message was met: CTS and Fin do the rest, and may have done it
	}
	r, err := e.sending(p, c.Sender, cancelling)
	if err != nil {
		return err
	}
	r.cell.Cancelled = 1
	e.over(r)
	return nil
}

func (e *Engine) handleCredit(p *peer, body []byte) error {
	c, err := wire.ParseCredit(body)
	if err != nil {
		return err
	}
	p.eagerOut.Raise(c.Eager)
	if p.dataOut.Raise(c.Data) {
		p.pace.Acked(c.Data, e.now())
		e.schedule(p)
	}
	return nil
}
