package pt2pt

import "github.com/leidenzipper/zipper/internal/list"

// message is an envelope from another cluster, with its payload if it was eager.
type message struct {
	node    list.Node[*message]
	sorted  [3]list.Node[*message] // the entries in lists by pattern if the queue is long
	peer    *peer
	context uint64
	kind    int
	source  int      // the sender's rank in the communicator
	tag     int      // the message's tag
	size    int64    // the message's size in bytes
	handle  uint64   // the handle of the sender's request
	rts     bool     // whether the payload is still at the sender
	sync    bool     // whether the message is eager and its sender waits for the match
	buf     []byte   // the eager payload, from the pool
	whole   bool     // whether all of the payload is in buf
	revoked bool     // whether a matched probe's communicator was revoked, so that the message is not received
	dropped bool     // whether the message was discarded while its payload was arriving
	req     *Request // the receive that matched the message before its payload was whole
}

// lost reports whether the rest of the message will not arrive, because its sender is lost.
func (m *message) lost() bool { return (m.rts || !m.whole) && m.peer.Lost() }

// revoke ends a matched probe of a message that is still at its sender, so that the sender does not
// wait for a receive.
func (m *message) revoke() {
	m.peer.sendFin(m.handle)
	m.rts, m.whole, m.revoked = false, true, true
}

// discard frees a message that will not be received. It answers an RTS as if the message had been
// received.
func (ep *Endpoint) discard(m *message) {
	switch {
	case m.rts:
		m.peer.sendFin(m.handle)
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
