package pt2pt

import "github.com/leidenzipper/zipper/mmpi/engine/fault"

// Iprobe looks for a message without receiving it. In out, Done says whether it found one, and
// Source, Tag and Bytes describe it. Application threads only.
func (ep *Endpoint) Iprobe(c *Comm, source, tag int, out *Cell) error {
	out.done, out.Error, out.Cancelled = 0, 0, 0
	m, h, err := ep.probe(c, source, tag, false)
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
	out.Finish()
	return nil
}

// Improbe looks for a message as Iprobe does and takes it, so that only Mrecv of its handle
// receives it. native says that the handle is Native's (Probe.Message) rather than the engine's.
// Application threads only.
func (ep *Endpoint) Improbe(c *Comm, source, tag int, out *Cell) (handle uint64, native bool, err error) {
	out.done, out.Error, out.Cancelled = 0, 0, 0
	m, h, err := ep.probe(c, source, tag, true)
	switch {
	case err != nil:
		return 0, false, err
	case m != nil:
		c.queues[KindP2P].drop(m)
		ep.probes++
		handle = ep.probes
		ep.probed[handle] = m
		c.outstanding++
		out.Source, out.Tag, out.Bytes = int32(m.source), int32(m.tag), m.size
	case h != nil:
		handle, native = h.Message, true
		out.Source, out.Tag, out.Bytes = int32(h.Source), int32(h.Tag), h.Bytes
	default:
		return 0, false, nil
	}
	out.Finish()
	return handle, native, nil
}

// Mrecv receives a message that Improbe took, given its handle (not one of Native's).
func (ep *Endpoint) Mrecv(handle uint64, buf []byte, cell *Cell) error {
	if ep.err != nil {
		return ep.err
	}
	m := ep.probed[handle]
	if m == nil {
		return fault.New(fault.Arg, "no matched message %d", handle)
	}
	delete(ep.probed, handle)
	c := ep.contextOf[m.context]
	if m.revoked || m.lost() {
		c.outstanding--
		cell.Begin()
		ep.Complete(cell, c.Failure())
		ep.freeMessage(m)
		return nil
	}
	r := ep.request(c, m.kind, buf, cell)
	c.outstanding-- // the message's
	r.accept(m)
	return nil
}

// probe finds the first message for a pattern that no posted receive wants: from another cluster,
// or a native one, which it takes if take is set.
func (ep *Endpoint) probe(c *Comm, source, tag int, take bool) (*message, *Probe, error) {
	if ep.err != nil {
		return nil, nil, ep.err
	}
	if source != AnySource && (source < 0 || source >= c.size) || tag < AnyTag {
		return nil, nil, fault.New(fault.Arg, "probe of %d, tag %d", source, tag)
	}
	if c.broken {
		if code := c.refusesReceive(KindP2P, source, tag); code != fault.OK {
			return nil, nil, fault.New(code, "probe: %v", code)
		}
	}
	if c.mayBeRemote(source) {
		if m := c.queues[KindP2P].look(source, tag); m != nil {
			return m, nil, nil
		}
	}
	if c.mayBeLocal(source) {
		if p, err := c.probeNative(source, tag, take); p != nil || err != nil {
			return nil, p, err
		}
	}
	if c.undecided(KindP2P, source) {
		return nil, nil, fault.New(fault.ProcFailed, "probe: %v", fault.ProcFailedPending)
	}
	return nil, nil, nil
}

// probeNative is the part of probe for native messages.
func (c *Comm) probeNative(source, tag int, take bool) (*Probe, error) {
	ep := c.ep
	for {
		c.probeLocal() // posted receives come first
		if ep.err != nil {
			return nil, ep.err
		}
		p, ok, err := ep.native.Iprobe(c, c.LocalRank(source), tag)
		if err != nil {
			return nil, fault.New(fault.Internal, "native probe: %v", err)
		}
		if !ok {
			return nil, nil
		}
		if c.queues[KindP2P].first(p.Source, p.Tag) != nil {
			continue // it arrived since probeLocal, and belongs to the posted receive
		}
		if !take {
			return &p, nil
		}
		// The envelope excludes other messages, which a posted receive might take.
		p, ok, err = ep.native.Improbe(c, c.LocalRank(p.Source), p.Tag)
		if err != nil {
			return nil, fault.New(fault.Internal, "native probe: %v", err)
		}
		if ok { // otherwise another thread has taken the message
			return &p, nil
		}
	}
}
