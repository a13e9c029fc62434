package engine

// space is the matching state of one kind of traffic in one communicator.
//
// The posted list (D in ARCHITECTURE.md) has, in posting order, wildcard receives, receives from other clusters, and
// receives from the own cluster that an earlier entry shadows. A message from another cluster that meets no posted receive waits in
// unexpected, in order of arrival (which per sender is the order of sending).
type space struct {
	posted     postedList
	unexpected messageList
}

// message is an envelope from another cluster, with its payload if it was eager.
type message struct {
	next    *message
	peer    *peer
	context uint64
	kind    int
	source  int // rank in the communicator
	tag     int
	size    int64
	handle  uint64 // the sender's request
	rts     bool   // payload is still at the sender
	sync    bool   // eager, and the sender waits for the match
	buf     []byte // eager payload, pooled
	whole   bool   // all of the payload is in buf
	dropped bool   // thrown away while its payload was arriving
	req     *Request
}

// covers reports whether a receive pattern takes an envelope.
func covers(patSource, patTag, source, tag int) bool {
	return (patSource == AnySource || patSource == source) && (patTag == AnyTag || patTag == tag)
}

// overlap reports whether one message could match both patterns.
func overlap(s1, t1, s2, t2 int) bool {
	return (s1 == s2 || s1 == AnySource || s2 == AnySource) && (t1 == t2 || t1 == AnyTag || t2 == AnyTag)
}

type postedList struct{ head, tail *Request }

func (l *postedList) add(r *Request) {
	r.prev, r.next = l.tail, nil
	if l.tail == nil {
		l.head = r
	} else {
		l.tail.next = r
	}
	l.tail = r
}

func (l *postedList) remove(r *Request) {
	if r.prev == nil {
		l.head = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		l.tail = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.prev, r.next = nil, nil
}

// first gives the first entry that takes the envelope.
func (l *postedList) first(source, tag int) *Request {
	for r := l.head; r != nil; r = r.next {
		if covers(r.source, r.tag, source, tag) {
			return r
		}
	}
	return nil
}

type messageList struct{ head, tail *message }

func (l *messageList) add(m *message) {
	m.next = nil
	if l.tail == nil {
		l.head = m
	} else {
		l.tail.next = m
	}
	l.tail = m
}

// find gives the first message that a pattern takes, and the one before it (for remove).
func (l *messageList) find(source, tag int) (prev, m *message) {
	for m = l.head; m != nil; prev, m = m, m.next {
		if covers(source, tag, m.source, m.tag) {
			return prev, m
		}
	}
	return nil, nil
}

func (l *messageList) remove(prev, m *message) {
	if prev == nil {
		l.head = m.next
	} else {
		prev.next = m.next
	}
	if l.tail == m {
		l.tail = prev
	}
	m.next = nil
}

// mayBeLocal reports whether a local message can match the pattern.
func (c *Comm) mayBeLocal(source int) bool { return source == AnySource || c.native[source] != Remote }

// mayBeRemote reports whether a message from another cluster can match the pattern.
func (c *Comm) mayBeRemote(source int) bool { return source == AnySource || c.native[source] == Remote }

// post appends a receive to the posted list.
func (e *Engine) post(r *Request) {
	e.to(r, posted)
	r.comm.spaces[r.kind].posted.add(r)
	if r.kind == KindP2P && r.comm.mayBeLocal(r.source) {
		r.comm.localPosted++
		e.localPosted++
	}
}

// unpost takes a receive from the posted list; its state is the caller's business. What it shadowed may be free now.
func (e *Engine) unpost(r *Request) {
	c := r.comm
	c.spaces[r.kind].posted.remove(r)
	if r.kind == KindP2P && c.mayBeLocal(r.source) {
		c.localPosted--
		e.localPosted--
		if c.localPosted > 0 && !c.flush {
			c.flush = true
			e.flushes++
		}
	}
}

// shadowed reports whether a local receive must not go to native MPI: an entry before `end` (nil: any) of the posted list comes first.
func (c *Comm) shadowed(source, tag int, end *Request) bool {
	if c.localPosted == 0 {
		return false
	}
	for r := c.spaces[KindP2P].posted.head; r != end; r = r.next {
		if c.mayBeLocal(r.source) && overlap(r.source, r.tag, source, tag) {
			return true
		}
	}
	return false
}

// unshadow posts local receives natively that nothing shadows any more. Application threads only.
func (e *Engine) unshadow(c *Comm) {
	if !c.flush {
		return
	}
	c.flush = false
	e.flushes--
	for r := c.spaces[KindP2P].posted.head; r != nil; {
		next := r.next
		if r.source != AnySource && c.native[r.source] != Remote && !c.shadowed(r.source, r.tag, r) {
			c.spaces[KindP2P].posted.remove(r)
			c.localPosted--
			e.localPosted--
			e.startNative(r, e.native.Irecv(r))
		}
		r = next
	}
}

// startNative moves a receive that has left the posted list to those that native MPI completes.
func (e *Engine) startNative(r *Request, err error) {
	e.to(r, native)
	if err != nil {
		r.cell.Error = int32(ErrInternal)
		e.over(r)
		return
	}
	e.natives = append(e.natives, r)
}

// take gives a message that Improbe found to a posted receive.
func (e *Engine) take(r *Request, p Probe) {
	c := r.comm
	e.unpost(r)
	r.probed = true
	e.startNative(r, e.native.Imrecv(r, p.Message))
	e.unshadow(c)
}

// probeLocal takes native messages for posted receives: what is found goes to the first entry that takes its envelope, which need not
// be the one that was probed for. Application threads only.
func (e *Engine) probeLocal(c *Comm) (found int) {
	e.unshadow(c)
	var tried [4]struct{ source, tag int } // patterns that found nothing in this pass
	n := 0
	for r := c.spaces[KindP2P].posted.head; r != nil && c.localPosted > 0; {
		if !c.mayBeLocal(r.source) {
			r = r.next
			continue
		}
		skip := false
		for _, t := range tried[:n] {
			skip = skip || covers(t.source, t.tag, r.source, r.tag) // AnySource, AnyTag are covered only by themselves
		}
		if skip {
			r = r.next
			continue
		}
		p, ok, err := e.native.Iprobe(c, c.LocalRank(r.source), r.tag)
		if err != nil {
			e.fatal(ErrInternal, 1, "native probe: "+err.Error())
			return found
		}
		if !ok {
			if n < len(tried) {
				tried[n] = struct{ source, tag int }{r.source, r.tag}
				n++
			}
			r = r.next
			continue
		}
		// Taking it by r's pattern could overtake: an earlier entry for any tag may have to take a message that this sender sent before
		// and that came since that entry was probed for. So take the sender's first message for the first entry that takes this one: with
		// AnyTag it is the sender's first of all, with a tag every message of that tag has the same first entry.
		first := c.spaces[KindP2P].posted.first(p.Source, p.Tag)
		p, ok, err = e.native.Improbe(c, c.LocalRank(p.Source), first.tag)
		if err != nil {
			e.fatal(ErrInternal, 1, "native probe: "+err.Error())
			return found
		}
		if !ok { // another thread was quicker
			r = r.next
			continue
		}
		found++
		e.take(c.spaces[KindP2P].posted.first(p.Source, p.Tag), p)
		r = c.spaces[KindP2P].posted.head // the list has changed
	}
	return found
}
