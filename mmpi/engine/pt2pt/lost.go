package pt2pt

import (
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
)

// In a job that goes on when a cluster is lost, operations end early for two reasons. A rank that
// they need is in a lost cluster, or their communicator is revoked, which each of its processes may
// do. Both concern only communicators with Comm.broken set.
//
// The loss of a cluster ends the operations with its ranks, and takes from the queues what they
// have announced and not sent. A revocation ends the operations that no message has matched. The
// others make progress by themselves, because the process at the other end is alive, and complete.
// A send that is announced has to be taken back first, as by Cancel.

// LostRank reports whether the process with a virtual rank is in a lost cluster.
func (l *losses) LostRank(virtual int) bool {
	cluster, _ := l.ep.world.Place(virtual)
	return l.ep.links.Losses.Has(cluster)
}

// lose ends everything that needs ranks of a cluster.
func (l *losses) lose(cluster int, reason string) {
	ep := l.ep
	ep.order = append(ep.order, cluster)
	for _, r := range ep.requests {
		if r.state != idle && r.peer != nil && r.peer.Lost() {
			r.fail(fault.ProcFailed)
		}
	}
	dropLostOrphans(ep)
	for _, c := range ep.comms {
		if c != nil {
			c.loses(cluster)
		}
	}
	if ep.onLost != nil {
		ep.onLost(cluster, reason)
	}
}

// loses ends the communicator's operations that a lost cluster prevents, if it has members there.
func (c *Comm) loses(cluster int) {
	if !c.members.any(c.ep.world.Ranks(cluster)) {
		return
	}
	ep := c.ep
	c.broken = true
	c.lost = append(c.lost, cluster)
	for k := range c.queues {
		c.dropMessages(k, func(m *message) bool { return m.lost() || c.drops(k == KindCollective) })
	}
	for _, r := range ep.requests {
		switch {
		case r.comm != c || r.state != posted:
		case r.source != AnySource && c.lostMember(r.source):
			r.unpost()
			r.fail(fault.ProcFailed)
		case c.undecided(r.kind, r.source):
			r.park()
		}
	}
}

// dropMessages discards the unexpected messages of a kind for which f returns true.
func (c *Comm) dropMessages(kind int, f func(m *message) bool) {
	q := &c.queues[kind]
	for n := q.unexpected.First(); n != nil; {
		m := n.Of
		n = n.Next()
		if f(m) {
			q.drop(m)
			if m.lost() {
				c.ep.freeMessage(m)
			} else {
				c.ep.discard(m)
			}
		}
	}
}

// inherit gives a new communicator the losses and the revocation that came before it.
func (l *losses) inherit(c *Comm) {
	for _, cluster := range l.order {
		c.loses(cluster)
	}
	if l.revokedEarly[c.context] {
		delete(l.revokedEarly, c.context)
		l.Revoke(c.context)
	}
}

// Resume continues a receive whose cell is done with ProcFailedPending. The cell is no longer done,
// unless the receive has ended meanwhile, or a loss is still not acknowledged.
func (l *losses) Resume(cell *Cell) error {
	if l.ep.err != nil {
		return l.ep.err
	}
	r, err := l.unpark(cell)
	if err == nil && r != nil && r.state == posted && r.comm.undecided(r.kind, r.source) {
		r.park()
	}
	return err
}

// unpark gives a receive that park has told its owner's cell back. It returns nil if the receive
// has ended, and fills in the cell.
func (l *losses) unpark(cell *Cell) (*Request, error) {
	handle := cell.request
	own := l.parked[handle]
	if own == nil {
		return nil, fault.New(fault.Arg, "no receive waits for the acknowledgement of a loss")
	}
	delete(l.parked, handle)
	cell.Error, cell.Cancelled = own.Error, own.Cancelled
	if own.Done() {
		cell.Source, cell.Tag, cell.Bytes, cell.Sent = own.Source, own.Tag, own.Bytes, own.Sent
		cell.Finish()
		return nil, nil
	}
	r := l.ep.find(handle)
	r.answers(cell)
	return r, nil
}

// Revoke revokes the communicator with a context in this process, and reports whether it was not
// revoked before. A communicator that is not known yet is revoked when it is added.
func (l *losses) Revoke(context uint64) bool {
	c := l.ep.contextOf[context]
	if c == nil {
		if l.dead[context] || l.revokedEarly[context] {
			return false
		}
		if l.revokedEarly == nil {
			l.revokedEarly = map[uint64]bool{}
		}
		l.revokedEarly[context] = true
		return true
	}
	if c.revoked.Swap(true) {
		return false
	}
	c.broken = true
	for _, r := range l.ep.requests {
		if r.comm == c {
			r.interrupt(fault.Revoked)
		}
	}
	for k := range c.queues {
		c.dropMessages(k, func(*message) bool { return true })
	}
	for _, m := range l.ep.probed { // their senders must not wait for a receive
		if m.context == context && m.rts && !m.lost() {
			m.revoke()
		}
	}
	for _, follower := range l.ep.comms {
		if follower != nil && follower.leader == context {
			l.Revoke(follower.context)
		}
	}
	return true
}

// Follow makes the revocation of the communicator `leader` revoke c too, in this process. It
// revokes c at once if the leader has been revoked. Every process of c makes this call, so the
// revocation of c needs no messages.
func (l *losses) Follow(c, leader *Comm) {
	c.leader = leader.context
	if leader.Revoked() {
		l.Revoke(c.context)
	}
}

// Interrupt ends an operation that no message has matched, as a revocation does. An operation that
// has been matched completes by itself.
func (l *losses) Interrupt(cell *Cell, code fault.Code) {
	if r := l.ep.find(cell.request); r != nil && r.cell == cell {
		r.interrupt(code)
	}
}

// interrupt does the work of Interrupt. A receive in native MPI is cancelled later (StepNative),
// because only a thread of the program may call native MPI.
func (r *Request) interrupt(code fault.Code) {
	ep := r.comm.ep
	switch r.state {
	case posted:
		r.unpost()
		r.fail(code)
	case announced:
		r.takeBack()
	case waiting:
		r.fail(code)
	case native:
		ep.interrupt()
	}
}

// takeBack asks the peer to forget the announcement of a send.
func (r *Request) takeBack() {
	r.to(cancelling)
	f := r.peer.NewFrame(wire.TypeCancel, 0, wire.CancelLen, 0)
	c := wire.Cancel{Sender: r.handle()}
	f.Buf = c.Append(f.Buf)
	r.peer.Send(f)
}

// tookBack fills in the cell of an operation that was taken back before a message matched it.
func (r *Request) tookBack() {
	if r.comm.Revoked() {
		r.cell.Error, r.cell.Cancelled = int32(fault.Revoked), 0
	} else {
		r.cell.Cancelled = 1
	}
}

// tolerates reports whether a frame may name a send that is over, because a revocation has ended
// it.
func (l *losses) tolerates(handle uint64) bool { return l.onLost != nil && l.ep.find(handle) == nil }
