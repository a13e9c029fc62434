package pt2pt

import "github.com/leidenzipper/zipper/internal/list"

// matchQueue is the matching state of one kind of traffic in one communicator.
//
// The posted queue has, in posting order, wildcard receives, receives from other clusters, and
// receives from the own cluster that an earlier entry shadows. A message from another cluster that
// matches no posted receive waits in unexpected, in order of arrival (which per sender is the order
// of sending).
//
// A queue that has become long is searched by hash (deep.go) until it is empty.
type matchQueue struct {
	posted     list.List[*Request]
	unexpected list.List[*message]

	receives, messages int    // the lengths of posted and unexpected
	order              uint64 // the number of receives posted so far, and the order of the last

	byPattern  deep[*Request]    // the posted receives of a long queue
	patterns   [4]int            // the number of receives in byPattern, by kindOf
	byEnvelope [3]deep[*message] // the unexpected messages of a long queue, by kindOf
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

// keep appends a message that no receive has matched.
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

// first returns the first posted receive that takes the envelope, or nil.
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

// look returns the first unexpected message that a pattern takes, or nil.
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

// take removes and returns the first unexpected message that a pattern takes, or nil.
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

// unpost takes a receive from the posted queue. The caller changes its state.
func (r *Request) unpost() {
	c := r.comm
	c.queues[r.kind].unpost(r)
	if r.kind != KindP2P || !c.mayBeLocal(r.source) {
		return
	}
	c.locals(r.source).Remove(&r.local)
	c.localPosted--
	c.ep.localPosted--
	if !c.shadows.Empty() && !c.flush { // receives that it shadowed may be free now
		c.flush = true
		c.ep.flushes++
	}
}

// locals returns the list, among those of receives that a local message can match, of receives from
// that source.
func (c *Comm) locals(source int) *list.List[*Request] {
	if source == AnySource {
		return &c.wild
	}
	return &c.shadows
}

// shadowed reports whether a local receive must not go to native MPI, because an entry before `end`
// (nil: any entry) of the posted queue comes first.
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
