package pt2pt

import "github.com/leidenzipper/zipper/internal/list"

// message is an envelope from another cluster, with its payload if it was eager.
type message struct {
	node    list.Node[*message]
	sorted  [3]list.Node[*message] // by patterns that take it, if the queue is long
	peer    *peer
	context uint64
	kind    int
	source  int // rank in the communicator
	tag     int
	size    int64
	handle  uint64 // the sender's request
	rts     bool   // payload is still at the sender
	sync    bool   // eager, and the sender waits for the match
	buf     []byte // eager payload, pooled
	whole   bool   // all of the payload is in buf
	dropped bool   // thrown away while its payload was arriving
	req     *Request
}

// discard throws a message away that nobody will receive. One announced by RTS is answered as if it
// had been received.
func (ep *Endpoint) discard(m *message) {
	switch {
	case m.rts:
		m.peer.sayFin(m.handle)
	case !m.whole:
		m.dropped = true
		return
	default:
		m.peer.consumed(len(m.buf))
	}
	ep.freeMessage(m)
}

func (ep *Endpoint) newMessage() *message {
	if n := len(ep.messages); n > 0 {
		m := ep.messages[n-1]
		ep.messages = ep.messages[:n-1]
		return m
	}
	m := new(message)
	m.node.Of = m
	return m
}

func (ep *Endpoint) freeMessage(m *message) {
	if m.buf != nil {
		ep.links.Pool.Put(m.buf)
	}
	*m = message{}
	m.node.Of = m
	ep.messages = append(ep.messages, m)
}
