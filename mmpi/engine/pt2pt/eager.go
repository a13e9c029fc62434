package pt2pt

import (
	"fmt"

	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/link"
)

// An eager message is its envelope and payload in one frame:
//
//  1. Sender, on the program's thread (send.go): credit is taken, the payload is copied once,
//     behind its header, into a frame that links keep until it is acknowledged; the cell is done. A
//     synchronous send waits for Matched.
//  2. Receiver: credit is counted, the envelope looks for a posted receive. If there is one the
//     payload is read from the link into its buffer.
//  3. Else it is read into a buffer, and the message waits in the unexpected queue. The receive
//     that meets it copies it (deliver), at once or when the payload is whole.
//  4. When the memory is free again the sender gets credit (peer.consumed).

// eager handles an Eager frame apart from its payload. It returns the memory for the payload, and
// the receive or message that is told when the payload has arrived.
func (p *peer) eager(sync bool, body []byte, payload int) ([]byte, link.Payload, error) {
	ep := p.ep
	if err := p.eagerIn.Receive(uint64(payload)); err != nil {
		return nil, nil, err
	}
	m, c, err := p.envelope(body)
	if err != nil {
		return nil, nil, err
	}
	if m.size != int64(payload) {
		return nil, nil, fmt.Errorf("message of %d bytes with %d bytes of payload", m.size, payload)
	}
	m.sync = sync
	if c != nil && !m.dropped {
		if r := c.queues[m.kind].first(m.source, m.tag); r != nil {
			r.unpost() // by its pattern, which meet replaces with the message's envelope
			r.meet(m)
			r.to(eagerRecv)
			ep.freeMessage(m)
			return r.buf[:min(payload, len(r.buf))], (*eagerReceive)(r), nil
		}
	}
	m.buf = ep.links.Pool.Get(payload)
	if !m.dropped {
		ep.unexpected(m, c)
	}
	return m.buf, m, nil
}

// eagerReceive is a receive whose eager payload is arriving.
type eagerReceive Request

// String implements fmt.Stringer for the errors of links that read into the program's memory.
func (x *eagerReceive) String() string { return (*Request)(x).String() }

// Landed implements link.Payload.
func (x *eagerReceive) Landed(n int) error {
	r := (*Request)(x)
	r.peer.consumed(n)
	r.received(min(int64(n), int64(len(r.buf))))
	return nil
}

// Landed implements link.Payload. It is called when the message is whole.
func (m *message) Landed(int) error {
	ep := m.peer.ep
	m.whole = true
	switch {
	case m.dropped:
		ep.discard(m)
	case m.req != nil:
		m.req.deliver(m)
	}
	return nil
}

// deliver copies a whole unexpected message into the receive that matched it.
func (r *Request) deliver(m *message) {
	n := copy(r.buf, m.buf)
	m.peer.consumed(len(m.buf))
	r.comm.ep.freeMessage(m)
	r.received(int64(n))
}

// matched handles a Matched frame, which says that a receive has matched a synchronous eager send.
func (p *peer) matched(body []byte) error {
	m, err := wire.ParseMatched(body)
	if err != nil {
		return err
	}
	if p.ep.tolerates(m.Sender) {
		return nil
	}
	r, err := p.sending(m.Sender, waiting)
	if err != nil {
		return err
	}
	r.over()
	return nil
}
