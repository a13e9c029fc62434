package engine

import "github.com/leidenzipper/zipper/wire"

// Isend starts to send buf to rank dest of the communicator, which is in another cluster. The steps of an eager message,
// all on the calling thread: the payload is copied once, behind its header, into a frame that is kept until it is acknowledged; the frame
// goes to the link if nothing is before it (or is held for those that follow, hold.go); the cell is done. A longer message (or one without credit) is announced by an RTS and
// buf belongs to the engine until the cell is done.
func (e *Engine) Isend(c *Comm, kind int, buf []byte, dest, tag int, sync bool, cell *Cell) error {
	e.lock()
	defer e.unlock()
	if err := e.isend(c, kind, buf, dest, tag, sync, cell); err != nil {
		return err
	}
	e.writeSent(len(buf))
	return nil
}

func (e *Engine) isend(c *Comm, kind int, buf []byte, dest, tag int, sync bool, cell *Cell) error {
	if e.err != nil {
		return e.err
	}
	if dest < 0 || dest >= len(c.world) || c.native[dest] != Remote {
		return failure(ErrArg, "rank %d is not in another cluster", dest)
	}
	if kind < 0 || kind >= kinds || tag < 0 || kind == KindP2P && tag > e.world.TagUB {
		return failure(ErrArg, "tag %d, kind %d: tags go from 0 to %d", tag, kind, e.world.TagUB)
	}
	p := e.peer(int(c.world[dest]))
	e.recordSent(c, p, len(buf))
	env := wire.Envelope{Context: c.context, Tag: int32(tag), Kind: uint32(kind), Size: uint64(len(buf))}
	cell.Error, cell.Cancelled, cell.Bytes = 0, 0, int64(len(buf))
	if len(buf) <= e.limits.Eager && p.eagerOut.Take(uint64(len(buf))) {
		var flags uint8
		if sync {
			r := e.request(c, kind, nil, cell)
			r.peer = p
			e.to(r, waiting)
			env.Handle, flags = r.handle(), wire.FlagSync
		}
		f := e.newFrame(p, wire.TypeEager, flags, wire.EnvelopeLen, len(buf))
		f.buf = append(env.Append(f.buf), buf...)
		e.enqueue(p, f)
		if !sync {
			cell.finish()
		}
		return nil
	}
	r := e.request(c, kind, buf, cell)
	r.peer = p
	e.to(r, announced)
	env.Handle = r.handle()
	f := e.newFrame(p, wire.TypeRTS, 0, wire.EnvelopeLen, 0)
	f.buf = env.Append(f.buf)
	e.enqueue(p, f)
	return nil
}

// Cancel tries to cancel an operation; how it went is in the cell when it is done. An eager send and a receive that has met its message
// are too late: they end as if Cancel had not been called.
func (e *Engine) Cancel(cell *Cell) error {
	e.lock()
	defer e.unlock()
	r := e.find(cell.request)
	if r == nil || r.cell != cell {
		return nil
	}
	switch r.state {
	case announced:
		e.to(r, cancelling)
		f := e.newFrame(r.peer, wire.TypeCancel, 0, wire.CancelLen, 0)
		c := wire.Cancel{Sender: r.handle()}
		f.buf = c.Append(f.buf)
		e.enqueue(r.peer, f)
		e.writeOut()
	case posted:
		c := r.comm
		e.unpost(r)
		cell.Cancelled = 1
		e.over(r)
		e.unshadow(c)
	case native:
		if !r.probed {
			return e.native.Cancel(r)
		}
	}
	return nil
}
