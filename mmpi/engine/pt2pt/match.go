package pt2pt

import "github.com/leidenzipper/zipper/internal/list"

// matchQueue is the matching state of one kind of traffic in one communicator.
//
// The posted queue has, in posting order, wildcard receives, receives from other clusters, and
// receives from the own cluster that an earlier entry shadows. A message from another cluster that
// meets no posted receive waits in unexpected, in order of arrival (which per sender is the order
// of sending).
//
// A queue that has become long is searched by hash (deep.go) until it is empty.
type matchQueue struct {
	posted     list.List[*Request]
	unexpected list.List[*message]

	receives, messages int    // how many there are of each
	order              uint64 // of the last receive posted

	byPattern  deep[*Request]
	patterns   [4]int // receives in byPattern, by kindOf
	byEnvelope [3]deep[*message]
}

// post appends a receive.
func (q *matchQueue) post(r *Request) {
	q.order++
	r.order = q.order
	q.posted.Push(&r.node)
	if q.receives++; q.receives > shortQueue || q.byPattern.on {
		q.postDeep(r)
	}
}

// unpost takes a receive out, by the pattern that it was posted with.
func (q *matchQueue) unpost(r *Request) {
	q.posted.Remove(&r.node)
	if q.receives--; q.byPattern.on {
		q.unpostDeep(r)
	}
}

// keep appends a message that no receive has met.
func (q *matchQueue) keep(m *message) {
	q.unexpected.Push(&m.node)
	if q.messages++; q.messages > shortQueue || q.byEnvelope[0].on {
		q.keepDeep(m)
	}
}

// drop takes a message out.
func (q *matchQueue) drop(m *message) {
	q.unexpected.Remove(&m.node)
	if q.messages--; q.byEnvelope[0].on {
		q.dropDeep(m)
	}
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
	if q.byPattern.on {
		return q.earliest(source, tag)
	}
	for n := q.posted.First(); n != nil; n = n.Next() {
		if r := n.Of; covers(r.source, r.tag, source, tag) {
			return r
		}
	}
	return nil
}

// look gives the first unexpected message that a pattern takes.
func (q *matchQueue) look(source, tag int) *message {
	if q.byEnvelope[0].on {
		return q.lookDeep(source, tag)
	}
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
		q.drop(m)
	}
	return m
}

// mayBeLocal reports whether a local message can match the pattern.
func (c *Comm) mayBeLocal(source int) bool {
	return source == AnySource || c.nativeOf(source) != Remote
}

// mayBeRemote reports whether a message from another cluster can match the pattern.
func (c *Comm) mayBeRemote(source int) bool {
	return source == AnySource || c.nativeOf(source) == Remote
}

// post appends a receive to the posted queue.
func (r *Request) post() {
	c := r.comm
	r.to(posted)
	c.queues[r.kind].post(r)
	if r.kind == KindP2P && c.mayBeLocal(r.source) {
		c.locals(r.source).Push(&r.local)
		c.localPosted++
		c.ep.localPosted++
	}
}

// unpost takes a receive from the posted queue; its state is the caller's business.
func (r *Request) unpost() {
	c := r.comm
	c.queues[r.kind].unpost(r)
	if r.kind != KindP2P || !c.mayBeLocal(r.source) {
		return
	}
	c.locals(r.source).Remove(&r.local)
	c.localPosted--
	c.ep.localPosted--
	if !c.shadows.Empty() && !c.flush { // what it shadowed may be free now
		c.flush = true
		c.ep.flushes++
	}
}

// locals is the list of those posted receives that a local message can match to which one from that
// source belongs.
func (c *Comm) locals(source int) *list.List[*Request] {
	if source == AnySource {
		return &c.wild
	}
	return &c.shadows
}

// shadowed reports whether a local receive must not go to native MPI: an entry before `end` (nil:
// any) of the posted queue comes first.
func (c *Comm) shadowed(source, tag int, end *Request) bool {
	if c.localPosted == 0 {
		return false
	}
	before := func(r *Request) bool { return end == nil || r.order < end.order }
	if tag != AnyTag {
		r := c.queues[KindP2P].first(source, tag)
		return r != nil && before(r)
	}
	for _, l := range [...]*list.List[*Request]{&c.wild, &c.shadows} {
		for n := l.First(); n != nil && before(n.Of); n = n.Next() {
			if r := n.Of; overlap(r.source, r.tag, source, tag) {
				return true
			}
		}
	}
	return false
}
