package pt2pt

import "github.com/leidenzipper/zipper/internal/list"

// matchQueue is the matching state of one kind of traffic in one communicator.
//
// The posted queue has, in posting order, wildcard receives, receives from other clusters, and
// receives from the own cluster that an earlier entry shadows. A message from another cluster that
// meets no posted receive waits in unexpected, in order of arrival (which per sender is the order
// of sending).
type matchQueue struct {
	posted     list.List[*Request]
	unexpected list.List[*message]
}

// covers reports whether a receive pattern takes an envelope.
func covers(patSource, patTag, source, tag int) bool {
	return (patSource == AnySource || patSource == source) && (patTag == AnyTag || patTag == tag)
}

// overlap reports whether one message could match both patterns.
func overlap(s1, t1, s2, t2 int) bool {
	return (s1 == s2 || s1 == AnySource || s2 == AnySource) && (t1 == t2 || t1 == AnyTag || t2 == AnyTag)
}

// first gives the first posted receive that takes the envelope.
func (q *matchQueue) first(source, tag int) *Request {
	for n := q.posted.First(); n != nil; n = n.Next() {
		if r := n.Of; covers(r.source, r.tag, source, tag) {
			return r
		}
	}
	return nil
}

// look gives the first unexpected message that a pattern takes.
func (q *matchQueue) look(source, tag int) *message {
	for n := q.unexpected.First(); n != nil; n = n.Next() {
		if m := n.Of; covers(source, tag, m.source, m.tag) {
			return m
		}
	}
	return nil
}

// take is look that takes it out.
func (q *matchQueue) take(source, tag int) *message {
	m := q.look(source, tag)
	if m != nil {
		q.unexpected.Remove(&m.node)
	}
	return m
}

// mayBeLocal reports whether a local message can match the pattern.
func (c *Comm) mayBeLocal(source int) bool { return source == AnySource || c.native[source] != Remote }

// mayBeRemote reports whether a message from another cluster can match the pattern.
func (c *Comm) mayBeRemote(source int) bool { return source == AnySource || c.native[source] == Remote }

// post appends a receive to the posted queue.
func (r *Request) post() {
	ep := r.comm.ep
	r.to(posted)
	r.comm.queues[r.kind].posted.Push(&r.node)
	if r.kind == KindP2P && r.comm.mayBeLocal(r.source) {
		r.comm.localPosted++
		ep.localPosted++
	}
}

// unpost takes a receive from the posted queue; its state is the caller's business. What it
// shadowed may be free now.
func (r *Request) unpost() {
	ep := r.comm.ep
	c := r.comm
	c.queues[r.kind].posted.Remove(&r.node)
	if r.kind == KindP2P && c.mayBeLocal(r.source) {
		c.localPosted--
		ep.localPosted--
		if c.localPosted > 0 && !c.flush {
			c.flush = true
			ep.flushes++
		}
	}
}

// shadowed reports whether a local receive must not go to native MPI: an entry before `end` (nil:
// any) of the posted queue comes first.
func (c *Comm) shadowed(source, tag int, end *Request) bool {
	if c.localPosted == 0 {
		return false
	}
	for n := c.queues[KindP2P].posted.First(); n != nil && n.Of != end; n = n.Next() {
		if r := n.Of; c.mayBeLocal(r.source) && overlap(r.source, r.tag, source, tag) {
			return true
		}
	}
	return false
}
