package solve

import (
	"github.com/leidenzipper/zipper/contention/num"
)

// request moves a due transfer, which is off the queue, one hop of its handshake closer to its
// first byte and back into the queue. It returns false if no hop is left. The hops are those of the
// request, and those of the go-ahead on the way back. Each takes an equal part of the handshake's
// time on an idle network, and waits for the bytes that its connection holds ahead of it. The first
// byte of any transfer also waits for bytes to other destinations; within a send queue the order is
// kept anyway. Without Flow.Socket nothing waits, and there is one hop.
func (b *buffers[T]) request(x start[T]) bool {
	t := &b.transfers[x.transfer]
	f := &b.n.Flows[t.Flow]
	socket, hops := f.Socket.Float64(), len(f.Hops)
	hop, last := int(b.handshakeHop[x.transfer]), 0
	if t.Handshake.Sign() > 0 {
		last = 2 * hops
	}
	b.handshakeHop[x.transfer]++
	if socket == 0 || hops == 0 {
		if hop > 0 || t.Handshake.Sign() == 0 {
			return false
		}
		b.queue.Add(start[T]{x.at.Add(t.Handshake), x.transfer})
		return true
	}
	if hop > last {
		return false
	}
	key := connectionKey{flow: -1, first: hop == 0 || hop == hops || hop == last}
	var own *sendQueue
	switch {
	case hop == last:
		key.hop = f.Hops[0]
		if p := b.paths[t.Flow]; p != nil {
			own = p.sending
		}
	case hop < hops:
		key.hop = f.Hops[hop]
	default:
		key.hop = f.Hops[2*hops-1-hop]
		key.hop.From, key.hop.To = key.hop.To, key.hop.From
	}
	wait := 0.0
	if c := b.conns[key]; c != nil && c.rate > 0 {
		wait = min(socket, c.backlog(own)) / c.rate
	}
	at := x.at.Add(finite[T](wait))
	if hop < last {
		at = at.Add(t.Handshake.Div(num.Int[T](int64(last))))
	}
	b.queue.Add(start[T]{at, x.transfer})
	return true
}
