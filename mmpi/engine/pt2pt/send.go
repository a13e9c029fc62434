package pt2pt

import (
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
	"github.com/leidenzipper/zipper/mmpi/engine/link"
)

// A send, on the program's thread with the lock (engine.Engine.Isend calls it):
//
//  1. The peer is found. If the message is short and there is credit (flow.Budget) it is eager: one
//     frame with the envelope and a copy of the payload. The cell is done, or waits for Matched. On
//     a long path a message of a megabyte is short enough (peer.atOnce): asking takes longer.
//  2. Else it is announced: a frame with the envelope alone (RTS). The buffer belongs to the engine
//     until Fin; rendezvous.go has the rest.
//  3. link.Peer.Send numbers the frame, keeps it until it is acknowledged, and queues it on the
//     rail that reaches the peer.
//  4. The caller has it written (link.Set.Flush, link/output.go), with others that follow at once.

// Isend starts to send buf to rank dest of the communicator, which is in another cluster. Unless
// the message is eager buf belongs to the engine until the cell is done. Links().Flush puts it on a
// link.
func (ep *Endpoint) Isend(c *Comm, kind int, buf []byte, dest, tag int, sync bool, cell *Cell) error {
	if ep.err != nil {
		return ep.err
	}
	if dest < 0 || dest >= c.size || c.nativeOf(dest) != Remote {
		return fault.New(fault.Arg, "rank %d is not in another cluster", dest)
	}
	if kind < 0 || kind >= kinds || tag < 0 || kind == KindP2P && tag > ep.world.TagUB {
		return fault.New(fault.Arg, "tag %d, kind %d: tags go from 0 to %d", tag, kind, ep.world.TagUB)
	}
	if c.broken {
		if code := c.refuses(dest); code != fault.OK {
			cell.Begin()
			ep.Complete(cell, code)
			return nil
		}
	}
	p := ep.peer(c.Virtual(dest))
	if ep.recorder != nil && c.context != controlContext {
		ep.recorder.Sent(ep.links.Now(), p.Rank, len(buf))
	}
	env := wire.Envelope{Context: c.context, Tag: int32(tag), Kind: uint32(kind), Size: uint64(len(buf))}
	cell.Error, cell.Cancelled, cell.Bytes = 0, 0, int64(len(buf))
	whole := cell.missing() == 0
	if whole && (len(buf) <= ep.limit.Eager || p.atOnce(len(buf))) && p.eagerOut.Take(uint64(len(buf))) {
		var flags uint8
		if sync {
			r := ep.request(c, kind, nil, cell)
			r.peer = p
			r.to(waiting)
			env.Handle, flags = r.handle(), wire.FlagSync
		}
		f := p.NewFrame(wire.TypeEager, flags, wire.EnvelopeLen, len(buf))
		f.Buf = append(env.Append(f.Buf), buf...)
		p.Send(f)
		if !sync {
			cell.Finish()
		}
		return nil
	}
	r := ep.request(c, kind, buf, cell)
	r.peer = p
	r.to(announced)
	r.asks = true
	p.asking++
	env.Handle = r.handle()
	f := p.NewFrame(wire.TypeRTS, 0, wire.EnvelopeLen, 0)
	f.Buf = env.Append(f.Buf)
	p.Send(f)
	return nil
}

// Supply continues a send for which Cell.Missing has become lower. handle is the request's; the
// send may have ended.
func Supply(ep *Endpoint, handle uint64) {
	if r := ep.find(handle); r != nil && r.state == rndvSend {
		link.Resume(r.peer.Peer)
		ep.links.Flush()
	}
}

// Cancel tries to cancel an operation; how it went is in the cell when it is done. An eager send
// and a receive that has met its message are too late: they end as if Cancel had not been called.
// Application threads only.
func (ep *Endpoint) Cancel(cell *Cell) error {
	if ep.parked[cell.request] != nil {
		if r, err := ep.unpark(cell); r == nil {
			return err
		}
	}
	r := ep.find(cell.request)
	if r == nil || r.cell != cell {
		return nil
	}
	switch r.state {
	case announced:
		r.takeBack()
		ep.links.Flush()
	case posted:
		c := r.comm
		cell.Cancelled = 1
		r.retract()
		c.unshadow()
	case native:
		if !r.fixed {
			return ep.native.Cancel(r)
		}
	}
	return nil
}

// Posted reports whether a receive is in progress and no message has matched it.
func Posted(ep *Endpoint, cell *Cell) bool {
	r := ep.find(cell.request)
	return r != nil && r.state == posted
}

// Retract takes a receive back that no message has met.
func (ep *Endpoint) Retract(cell *Cell) {
	if Posted(ep, cell) {
		ep.find(cell.request).retract()
	}
}

func (r *Request) retract() {
	r.unpost()
	r.over()
}
