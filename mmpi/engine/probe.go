package engine

// Iprobe looks for a message without receiving it: in out, Done says whether there is one, and Source, Tag, Bytes describe it.
// Application threads only.
func (e *Engine) Iprobe(c *Comm, source, tag int, out *Cell) error {
	e.lock()
	defer e.unlock()
	out.done, out.Error, out.Cancelled = 0, 0, 0
	m, h, err := e.probe(c, source, tag, false)
	switch {
	case err != nil:
		return err
	case m != nil:
		out.Source, out.Tag, out.Bytes = int32(m.source), int32(m.tag), m.size
	case h != nil:
		out.Source, out.Tag, out.Bytes = int32(h.Source), int32(h.Tag), h.Bytes
	default:
		return nil
	}
	out.finish()
	return nil
}

// Improbe is Iprobe that takes the message: only Mrecv of that handle receives it. native says that the handle is one of Native's
// (Probe.Message) rather than of the engine. Application threads only.
func (e *Engine) Improbe(c *Comm, source, tag int, out *Cell) (handle uint64, native bool, err error) {
	e.lock()
	defer e.unlock()
	out.done, out.Error, out.Cancelled = 0, 0, 0
	m, h, err := e.probe(c, source, tag, true)
	switch {
	case err != nil:
		return 0, false, err
	case m != nil:
		u := &c.spaces[KindP2P].unexpected
		prev, same := u.find(source, tag)
		u.remove(prev, same)
		e.probes++
		handle = e.probes
		e.probed[handle] = m
		c.outstanding++
		out.Source, out.Tag, out.Bytes = int32(m.source), int32(m.tag), m.size
	case h != nil:
		handle, native = h.Message, true
		out.Source, out.Tag, out.Bytes = int32(h.Source), int32(h.Tag), h.Bytes
	default:
		return 0, false, nil
	}
	out.finish()
	return handle, native, nil
}

// Mrecv receives a message that Improbe took, given its handle (not one of Native's).
func (e *Engine) Mrecv(handle uint64, buf []byte, cell *Cell) error {
	e.lock()
	defer e.unlock()
	if e.err != nil {
		return e.err
	}
	m := e.probed[handle]
	if m == nil {
		return failure(ErrArg, "no matched message %d", handle)
	}
	delete(e.probed, handle)
	c := e.contextOf[m.context]
	r := e.request(c, m.kind, buf, cell)
	c.outstanding-- // the message's
	e.accept(r, m)
	e.writeOut()
	return nil
}

// probe finds the first message for a pattern that no posted receive wants: from another cluster, or a native one, which it takes if take is set.
func (e *Engine) probe(c *Comm, source, tag int, take bool) (*message, *Probe, error) {
	if e.err != nil {
		return nil, nil, e.err
	}
	if source != AnySource && (source < 0 || source >= len(c.world)) || tag < AnyTag {
		return nil, nil, failure(ErrArg, "probe of %d, tag %d", source, tag)
	}
	if c.mayBeRemote(source) {
		if _, m := c.spaces[KindP2P].unexpected.find(source, tag); m != nil {
			return m, nil, nil
		}
	}
	if !c.mayBeLocal(source) {
		return nil, nil, nil
	}
	for {
		e.probeLocal(c) // posted receives come first
		if e.err != nil {
			return nil, nil, e.err
		}
		p, ok, err := e.native.Iprobe(c, c.LocalRank(source), tag)
		if err != nil {
			return nil, nil, failure(ErrInternal, "native probe: %v", err)
		}
		if !ok {
			return nil, nil, nil
		}
		if c.spaces[KindP2P].posted.first(p.Source, p.Tag) != nil {
			continue // it came since: what a posted receive takes is not to be seen
		}
		if !take {
			return nil, &p, nil
		}
		// By its envelope, so that no other message comes, one that a posted receive takes.
		p, ok, err = e.native.Improbe(c, c.LocalRank(p.Source), p.Tag)
		if err != nil {
			return nil, nil, failure(ErrInternal, "native probe: %v", err)
		}
		if ok { // else another thread was quicker
			return nil, &p, nil
		}
	}
}
