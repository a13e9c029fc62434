package pt2pt

import (
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
)

// Irecv starts to receive into buf, which belongs to the engine until the cell is done: from a rank
// of another cluster, from AnySource, or from a rank of this cluster if Shadowed says so. If the
// message comes natively, Native.Imrecv or Native.Irecv is called and buf is not used. Irecv
// returns true if the message had already arrived, so that an answer may have to be flushed.
// Application threads only.
func (ep *Endpoint) Irecv(c *Comm, kind int, buf []byte, source, tag int, cell *Cell) (met bool, err error) {
	if ep.err != nil {
		return false, ep.err
	}
	if source != AnySource && (source < 0 || source >= c.size) || tag < AnyTag || kind < 0 || kind >= kinds {
		return false, fault.New(fault.Arg, "receive from %d, tag %d, kind %d", source, tag, kind)
	}
	if c.broken {
		if code := c.refusesReceive(kind, source, tag); code != fault.OK {
			cell.Begin()
			ep.Complete(cell, code)
			return false, nil
		}
	}
	r := ep.request(c, kind, buf, cell)
	r.source, r.tag = source, tag
	if kind == KindP2P && c.mayBeLocal(source) {
		c.unshadow()
	}
	if c.mayBeRemote(source) {
		if m := c.queues[kind].take(source, tag); m != nil {
			r.accept(m)
			return true, nil
		}
	}
	if source != AnySource && c.nativeOf(source) != Remote && !c.shadowed(source, tag, nil) {
		r.startNative(ep.native.Irecv(r)) // no longer shadowed, unlike when the caller asked
		return false, nil
	}
	r.post()
	if c.undecided(kind, source) {
		r.park()
	}
	return false, nil
}

// meet records in a receive the message that it matched.
func (r *Request) meet(m *message) {
	r.peer, r.source, r.tag, r.size = m.peer, m.source, m.tag, m.size
	if m.sync {
		f := m.peer.NewFrame(wire.TypeMatched, 0, wire.MatchedLen, 0)
		x := wire.Matched{Sender: m.handle}
		f.Buf = x.Append(f.Buf)
		m.peer.Send(f)
	}
}

// unexpected keeps a message that no receive has matched.
func (ep *Endpoint) unexpected(m *message, c *Comm) {
	if c == nil {
		m.peer.orphans++
		ep.orphans = append(ep.orphans, m)
		return
	}
	c.queues[m.kind].keep(m)
}
