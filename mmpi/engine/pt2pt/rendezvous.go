package pt2pt

import (
	"fmt"

	"github.com/leidenzipper/zipper/internal/wire"
)

// A long message, or one without credit, is announced and waits to be cleared:
//
//  1. Sender (send.go): RTS with the envelope. The buffer is the engine's until Fin.
//  2. Receiver, when a receive meets it (accept): its buffer becomes a Sink, the sender gets CTS
//     with its handle. If there is nothing to send it gets Fin at once.
//  3. Sender (cts): the buffer becomes a Source. Links send it as segments, and say when all is
//     written.
//  4. Receiver: links put segments in place and say when the Sink is filled (filled): Fin, the cell
//     is done.
//  5. Sender (fin): the cell is done.

// rts handles an RTS frame.
func (p *peer) rts(body []byte) error {
	m, c, err := p.envelope(body)
	if err != nil {
		return err
	}
	m.rts = true
	if m.dropped {
		p.ep.discard(m)
		return nil
	}
	if m.size <= int64(p.ep.limit.Eager) || m.size <= longEager && p.Long() {
		p.widen(int(m.size)) // with enough credit the message would have been eager
	}
	if c != nil {
		if r := c.queues[m.kind].first(m.source, m.tag); r != nil {
			r.unpost()
			r.accept(m)
			return nil
		}
	}
	p.ep.unexpected(m, c)
	return nil
}

// accept makes a receive (not in the posted queue) take a message (in no queue).
func (r *Request) accept(m *message) {
	ep := r.comm.ep
	r.meet(m)
	if !m.rts {
		r.to(eagerRecv)
		if !m.whole {
			m.req = r // message.Landed delivers
			return
		}
		r.deliver(m)
		return
	}
	r.to(rndvRecv)
	p, sender := m.peer, m.handle
	ep.freeMessage(m)
	cleared := min(r.size, int64(len(r.buf)))
	r.remote = sender
	if cleared == 0 {
		p.sendFin(sender)
		r.received(0)
		return
	}
	r.in.Handle, r.in.Buf, r.in.Zcopy, r.in.Owner = r.handle(), r.buf[:cleared], r.kind == KindP2P, r
	r.in.Arrived = &r.cell.Arrived
	p.Open(&r.in) // before the peer knows that it may send
	f := p.NewFrame(wire.TypeCTS, 0, wire.CTSLen, 0)
	x := wire.CTS{Sender: sender, Receiver: r.handle(), Bytes: uint64(cleared)}
	f.Buf = x.Append(f.Buf)
	p.Send(f)
}

// cts handles a CTS frame.
func (p *peer) cts(body []byte) error {
	c, err := wire.ParseCTS(body)
	if err != nil {
		return err
	}
	r, err := p.sending(c.Sender, announced, cancelling)
	if err != nil {
		return err
	}
	if c.Bytes == 0 || c.Bytes > uint64(len(r.buf)) {
		return fmt.Errorf("it asks for %d of %d bytes", c.Bytes, len(r.buf))
	}
	r.to(rndvSend)
	r.out.Handle, r.out.Receiver, r.out.Buf, r.out.Zcopy, r.out.Owner = r.handle(), c.Receiver, r.buf[:c.Bytes],
		r.kind == KindP2P, r
	r.out.Missing = nil
	if r.cell.missing() > 0 {
		r.out.Missing = &r.cell.Missing
		r.out.Beyond = int64(len(r.buf)) - int64(c.Bytes)
	}
	p.Bulk(&r.out)
	return nil
}

// filled completes a receive whose bytes have all landed.
func (r *Request) filled() {
	r.peer.sendFin(r.remote)
	r.received(int64(len(r.in.Buf)))
}

// fin handles a Fin frame, which says that the receiver has all of the message or wants none of it.
func (p *peer) fin(body []byte) error {
	f, err := wire.ParseFin(body)
	if err != nil {
		return err
	}
	r, err := p.sending(f.Sender, sent, announced, cancelling)
	if err != nil {
		return err
	}
	p.ep.links.Abandon(&r.out)
	if r.state != sent && r.comm.Revoked() {
		r.tookBack()
	}
	r.over()
	return nil
}

// cancel handles a Cancel frame. It takes back the RTS unless a receive or a matched probe has
// matched it, and answers.
func (p *peer) cancel(body []byte) error {
	c, err := wire.ParseCancel(body)
	if err != nil {
		return err
	}
	reply := wire.CancelReply{Sender: c.Sender, OK: p.takeBack(c.Sender)}
	f := p.NewFrame(wire.TypeCancelReply, 0, wire.CancelReplyLen, 0)
	f.Buf = reply.Append(f.Buf)
	p.Send(f)
	return nil
}

func (p *peer) takeBack(handle uint64) bool {
	ep := p.ep
	mine := func(m *message) bool { return m.rts && m.peer == p && m.handle == handle }
	for i, m := range ep.orphans {
		if mine(m) {
			p.orphans--
			ep.orphans = append(ep.orphans[:i], ep.orphans[i+1:]...)
			ep.freeMessage(m)
			return true
		}
	}
	for _, c := range ep.comms {
		if c == nil {
			continue
		}
		for k := range c.queues {
			q := &c.queues[k]
			for n := q.unexpected.First(); n != nil; n = n.Next() {
				if m := n.Of; mine(m) {
					q.drop(m)
					ep.freeMessage(m)
					return true
				}
			}
		}
	}
	return false
}

// cancelReply handles a CancelReply frame.
func (p *peer) cancelReply(body []byte) error {
	c, err := wire.ParseCancelReply(body)
	if err != nil {
		return err
	}
	if !c.OK {
		return nil // the message was matched: CTS and Fin end the send, and may have ended it already
	}
	r, err := p.sending(c.Sender, cancelling)
	if err != nil {
		return err
	}
	r.tookBack()
	r.over()
	return nil
}
