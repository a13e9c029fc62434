package pt2pt

import (
	"github.com/leidenzipper/zipper/internal/list"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
)

// Receives that the cluster's own MPI completes. A wildcard receive may take a message from the own
// cluster, which the engine does not see: it looks for one natively (probeLocal). A receive from
// the own cluster goes to native MPI at once unless an earlier receive might take its message
// (shadowed); it goes there when the earlier receive has left the queue (unshadow).

// Shadowed reports whether a receive posted earlier may match a message for this receive from a
// local rank. If so the caller must give it to Irecv; otherwise it may be posted natively at once.
// Application threads only.
func (ep *Endpoint) Shadowed(c *Comm, source, tag int) bool {
	c.unshadow()
	return c.shadowed(source, tag, nil)
}

// unshadow posts natively the local receives that no earlier receive shadows any more.
func (c *Comm) unshadow() {
	ep := c.ep
	if !c.flush {
		return
	}
	c.flush = false
	ep.flushes--
	q := &c.queues[KindP2P]
	for n := c.shadows.First(); n != nil; {
		r := n.Of
		n = n.Next()
		if !c.shadowed(r.source, r.tag, r) {
			q.unpost(r)
			c.shadows.Remove(&r.local)
			c.localPosted--
			ep.localPosted--
			r.startNative(ep.native.Irecv(r))
		}
	}
}

// startNative moves a receive that has left the posted queue to those that native MPI completes.
func (r *Request) startNative(err error) {
	ep := r.comm.ep
	r.to(native)
	if err != nil {
		r.cell.Error = int32(fault.Internal)
		r.over()
		return
	}
	ep.natives = append(ep.natives, r)
}

// receiveProbed starts to receive a message that Improbe found into a posted receive.
func (r *Request) receiveProbed(p Probe) {
	ep := r.comm.ep
	c := r.comm
	r.unpost()
	r.fixed = true
	r.startNative(ep.native.Imrecv(r, p.Message))
	c.unshadow()
}

// probeLocal takes native messages for posted receives, and returns the number of messages. Each
// goes to the first entry that takes its envelope, which need not be the entry probed for.
func (c *Comm) probeLocal() (found int) {
	c.unshadow()
	var t tried
	for c.localPosted > 0 && c.probeOne(&t) {
		found++
	}
	return found
}

// tried has the patterns that found nothing in a pass.
type tried struct {
	patterns [4]struct{ source, tag int }
	n        int
}

// covers reports whether a message for the receive would have been found. Only AnySource covers
// AnySource, and only AnyTag covers AnyTag.
func (t *tried) covers(r *Request) bool {
	for _, p := range t.patterns[:t.n] {
		if covers(p.source, p.tag, r.source, r.tag) {
			return true
		}
	}
	return false
}

func (t *tried) add(source, tag int) {
	if t.n < len(t.patterns) {
		t.patterns[t.n] = struct{ source, tag int }{source, tag}
		t.n++
	}
}

// probeOne takes one message. It returns false if no receive takes a message that has arrived, or
// the endpoint has failed.
func (c *Comm) probeOne(t *tried) bool {
	if c.localPosted > len(t.patterns) && t.n == 0 {
		// Most often no message has arrived, so that one probe stands for those of many receives.
		if c.probeFor(AnySource, AnyTag, t) {
			return true
		}
	}
	for _, l := range [...]*list.List[*Request]{&c.wild, &c.shadows} {
		for x := l.First(); x != nil && c.ep.err == nil; x = x.Next() {
			if r := x.Of; !t.covers(r) && c.probeFor(r.source, r.tag, t) {
				return true
			}
		}
	}
	return false
}

// probeFor takes a message that matches both the pattern and a posted receive. It reports whether
// it found one.
func (c *Comm) probeFor(source, tag int, t *tried) bool {
	ep := c.ep
	q := &c.queues[KindP2P]
	p, ok, err := ep.native.Iprobe(c, c.LocalRank(source), tag)
	if err != nil {
		ep.fatal(fault.Internal, 1, "native probe: "+err.Error())
		return false
	}
	if !ok {
		t.add(source, tag)
		return false
	}
	// Taking the message by the pattern that was probed for could overtake another message. Since
	// an earlier entry for any tag was probed for, a message may have arrived that this sender sent
	// before this one, and that belongs to that entry. So for the first entry that takes this
	// message, take the sender's first message: with AnyTag the first of all, else the first with
	// that tag, which all have the same first entry.
	first := q.first(p.Source, p.Tag)
	if first == nil { // found by a pattern that no receive has
		return false
	}
	p, ok, err = ep.native.Improbe(c, c.LocalRank(p.Source), first.tag)
	if err != nil {
		ep.fatal(fault.Internal, 1, "native probe: "+err.Error())
		return false
	}
	if !ok { // another thread has taken the message
		return false
	}
	q.first(p.Source, p.Tag).receiveProbed(p)
	return true
}

// StepNative probes for posted receives and tests native ones. It returns the number of receives
// that found a message or ended. Application threads only.
func (ep *Endpoint) StepNative() (n int) {
	if ep.localPosted > 0 || ep.flushes > 0 {
		for _, c := range ep.comms {
			if c != nil && (c.localPosted > 0 || c.flush) {
				n += c.probeLocal()
			}
		}
	}
	if len(ep.natives) == 0 {
		return n
	}
	if ep.interrupted() {
		cancelNatives(ep)
	}
	left := ep.natives[:0]
	for i, r := range ep.natives {
		over, err := ep.native.Test(r)
		if ep.err != nil {
			return n
		}
		if err != nil {
			r.cell.Error = int32(fault.CodeOf(err))
			over = true
		}
		if !over {
			left = append(left, ep.natives[i])
			continue
		}
		if r.cell.Cancelled != 0 {
			r.tookBack()
		}
		r.over()
		n++
	}
	clear(ep.natives[len(left):])
	ep.natives = left
	return n
}

// cancelNatives cancels the receives in native MPI whose communicators are revoked.
func cancelNatives(ep *Endpoint) {
	for _, r := range ep.natives {
		if r.comm.Revoked() && !r.fixed {
			r.fixed = true
			_ = ep.native.Cancel(r) // if it fails the receive completes
		}
	}
}
