package link

import (
	"errors"
	"fmt"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
	"github.com/leidenzipper/zipper/mmpi/engine/link/demand"
	"github.com/leidenzipper/zipper/mmpi/engine/link/failover"
	"github.com/leidenzipper/zipper/mmpi/engine/sealing"
)

// The reading side of a rail, on the thread that has the lock:
//
//  1. Heads of frames are cut from the rail's buffer. While segments arrive each head is read by
//     itself, so that payload is never copied.
//  2. A frame between the two ends of the link is handled here (control).
//  3. For a frame from another rank reorder.go chooses the destination of the payload: the buffer
//     of its receive, memory of the engine, or none.
//  4. The payload is read to its destination straight from the link, except for the bytes that are
//     in the rail's buffer already.
//  5. When the payload is in place, arrival.land handles it, and the next frame has its turn.

// step reads and writes the rail's link once, without blocking, and returns how many bytes it
// moved. If the link fails, step handles the loss.
func (r *rail) step() (moved int) {
	if !r.Linked() {
		return 0
	}
	n, err := r.read()
	if err == nil && r.pending() {
		var m int
		m, err = r.write()
		n += m
	}
	switch {
	case err == nil || r.core.ended:
	case r.State() == failover.Closed: // The frames in the queue can no longer be sent.
		r.close()
		r.Detached()
	default:
		r.core.lost(r, err)
	}
	return n
}

// read reads and handles the bytes that the link has, without blocking and about turnSize at most,
// and returns how many it read.
func (r *rail) read() (moved int, err error) {
	in := &r.in
	dry := false // The last read took all bytes that the link had.
	fill := func(p []byte) (int, error) {
		n, err := r.link.TryRead(p)
		switch {
		case err == transport.ErrAgain:
			dry = true
			return 0, nil
		case err != nil && r.core.blames(err, p, true, in.receives):
			dry = true
			return 0, nil
		case err != nil:
			return 0, err
		}
		dry = n < len(p)
		r.live.arrived()
		moved += n
		in.filled(n)
		return n, nil
	}
	for !r.core.ended {
		if in.busy {
			in.copyBuffered()
			if in.wants() {
				if dry || moved > turnSize {
					return moved, nil
				}
				n, err := fill(in.rest())
				if err != nil {
					return moved, err
				}
				in.took(n)
			} else if err := r.complete(); err != nil {
				return moved, err
			}
			continue
		}
		n, err := r.frame()
		if err != nil {
			return moved, err
		}
		if n > 0 {
			continue
		}
		if dry || moved > turnSize || r.State() == failover.Closed {
			return moved, nil
		}
		want := wire.HeaderLen + wire.DataLen
		if r.core.seal != nil {
			want = wire.HeaderLen
		}
		if n, err = fill(in.space(want)); err != nil {
			return moved, err
		}
		in.buffered(n)
	}
	return moved, nil
}

// complete verifies the checksum of a frame whose payload has arrived completely, and handles the
// frame.
func (r *rail) complete() error {
	if err := r.in.verify(); err != nil {
		return malformed{err}
	}
	op := r.in.done()
	if op.typ == typeSealed {
		return r.openSealed(r.in.room)
	}
	if err := op.land(); err != nil {
		return malformed{err}
	}
	return nil
}

// frame handles the header and body of the next frame, and begins to receive its payload. It
// returns the number of bytes used, or 0 if the buffer does not have all of the header and body.
func (r *rail) frame() (int, error) {
	in := &r.in
	b := in.begin()
	if len(b) < wire.HeaderLen {
		return 0, nil
	}
	h, err := wire.ParseHeader(b)
	if err != nil {
		return 0, malformed{err}
	}
	if r.core.seal != nil || h.Flags&wire.FlagSealed != 0 {
		return r.sealed(&h, b)
	}
	payload := h.Payload()
	head := wire.HeaderLen + int(h.Length) - payload
	if head > len(in.buf) {
		return 0, malformed{fmt.Errorf("%v frame of %d bytes is too long here", h.Type, h.Length)}
	}
	if len(b) < head {
		in.partOf(h.Type)
		return 0, nil
	}
	in.use(head, h.Type)
	body := b[wire.HeaderLen:head]
	if r.core.checked || !h.Type.BetweenRanks() {
		if err := h.Verify(body); err != nil {
			return 0, malformed{fmt.Errorf("%v frame: %w", h.Type, err)}
		}
	}
	if !h.Type.BetweenRanks() {
		return head, r.control(h, body)
	}
	dst, op, err := r.arrive(h, body, payload)
	if err != nil {
		return 0, malformed{fmt.Errorf("%v frame from rank %d: %w", h.Type, h.Src, err)}
	}
	if payload > 0 || op.some() {
		in.expect(dst, payload, op)
		in.checks(h.PayloadSum, !r.core.checked || op.isDuplicate())
	}
	return head, nil
}

// sealed handles the next frame at level sealed, and refuses a sealed frame at other levels. b has
// the frame, or its first part, and h is its header; nothing else of the frame is used until the
// whole of it has arrived and its tag has been verified. Frames that may be plain
// (sealing.Link.MayBePlain) have no tag. A frame that is longer than the buffer, or a segment that
// is incomplete, is received into memory of its own. sealed returns the number of bytes of b used,
// or 0 if the rest of the frame must arrive first.
func (r *rail) sealed(h *wire.Header, b []byte) (int, error) {
	in := &r.in
	whole := wire.HeaderLen + int(h.Length)
	sealed := h.Flags&wire.FlagSealed != 0
	switch {
	case r.core.seal == nil:
		return 0, malformed{fmt.Errorf("%v frame: it is sealed, and the job is not", h.Type)}
	case !sealed && (r.peer != nil || !r.seal.AllowsPlain(h.Type)):
		return 0, malformed{fmt.Errorf("%v frame: %w", h.Type, sealing.ErrPlain)}
	case len(b) < whole && h.Type != wire.TypeData && whole <= len(in.buf):
		in.partOf(h.Type)
		return 0, nil
	case len(b) < whole:
		in.use(len(b), h.Type)
		return in.aside(b, whole), nil
	}
	in.use(whole, h.Type)
	if !sealed {
		return whole, r.control(*h, b[wire.HeaderLen:whole])
	}
	return whole, r.openSealed(b[:whole])
}

// openSealed verifies and decrypts a complete sealed frame in place, and handles it.
func (r *rail) openSealed(frame []byte) error {
	h, err := wire.ParseHeader(frame)
	if err != nil {
		return malformed{err}
	}
	if !h.Type.BetweenRanks() {
		var body []byte
		if r.peer == nil {
			h, body, err = r.seal.Open(h, frame)
		} else if err = r.peer.keys.make(r.peer); err == nil {
			h, body, err = r.peer.keys.pair.Open(h, frame, r.index)
		}
		if err != nil {
			return malformed{fmt.Errorf("%v frame: %w", h.Type, err)}
		}
		return r.control(h, body)
	}
	bad := func(err error) error { return malformed{fmt.Errorf("%v frame from rank %d: %w", h.Type, h.Src, err)} }
	p, err := r.core.sender(&h, r.peer)
	if err != nil {
		return bad(err)
	}
	if err := p.keys.make(p); err != nil {
		return keyless{err}
	}
	h, plain, err := p.keys.pair.Open(h, frame, r.index)
	if err != nil {
		return bad(err)
	}
	payload := h.Payload()
	body := plain[:len(plain)-payload]
	dst, op, err := r.arrive(h, body, payload)
	if err != nil {
		return bad(err)
	}
	copy(dst, plain[len(body):])
	if err := op.land(); err != nil {
		return bad(err)
	}
	return nil
}

// control handles a frame that the other end of the link has sent to this process itself, rather
// than for a rank behind it. An error means that the link must be given up.
func (r *rail) control(h wire.Header, body []byte) error {
	c := r.core
	if r.peer != nil && h.Type == wire.TypeBye { // All processes have finished: nothing more arrives.
		r.PeerLeft()
		r.queue.push(c.takeControl(wire.TypeByeAck, nil))
		return nil
	}
	switch h.Type {
	case wire.TypePing:
		r.queue.push(c.takeControl(wire.TypePong, nil))
		r.count.report() // The next tick may be late: idle processes tick rarely.
	case wire.TypePong:
	case wire.TypeCount:
		return r.count.check(body, r.in.at)
	case wire.TypeByeAck:
		if r.State() != failover.ByeSent {
			return malformed{errors.New("the forwarder confirmed a goodbye that was not sent")}
		}
		r.ByeAcked()
	case wire.TypeRailState:
		s, err := wire.ParseRailState(body)
		if err == nil {
			err = r.count.states.Take(s.Number)
		}
		if err == nil {
			err = c.reported(r, s)
		}
		if err != nil {
			return malformed{err}
		}
	case wire.TypeLost:
		x, err := wire.ParseLost(body)
		if err == nil {
			err = r.count.states.Take(x.Number)
		}
		if err == nil {
			err = c.Losses.hear(r, x)
		}
		if err != nil {
			return malformed{err}
		}
	case wire.TypeOffer, wire.TypeWay:
		if err := c.Demands.hear(r, h.Type, body); err != nil {
			return malformed{err}
		}
	case wire.TypeNotice:
		n, err := wire.ParseNotice(body)
		if err != nil {
			return malformed{err}
		}
		return fmt.Errorf("the forwarder has closed it: %s", wire.Printable(n.Text))
	case wire.TypeBye: // The link is lost like any other, but the forwarder may be started again.
		r.Stopped()
		return errors.New("the forwarder is shutting down")
	case wire.TypeAbort:
		a, err := wire.ParseAbort(body)
		if err != nil {
			return malformed{err}
		}
		c.aborted(a)
	default:
		return malformed{fmt.Errorf("unexpected %v frame", h.Type)}
	}
	return nil
}

// hear handles an Offer or a Way, of type t, from the forwarder of rail r. An error means that the
// frame is malformed, or that the other end may not send it. Ways beyond demand.MaxLinks since the
// last tick are dropped.
func (d *Demands) hear(r *rail, t wire.Type, body []byte) error {
	if r.peer != nil {
		return fmt.Errorf("unexpected %v frame", t)
	}
	if t == wire.TypeOffer {
		d.offer(r.index, true)
		return nil
	}
	w, err := wire.ParseWay(body)
	if err == nil && (int64(w.Rank) >= int64(d.core.size) || int(w.Rank) == d.core.world.Rank) {
		err = fmt.Errorf("a way to rank %d", w.Rank)
	}
	if err == nil && d.open != nil && len(d.ways) < demand.MaxLinks {
		d.ways = append(d.ways, w)
	}
	return err
}

// aborted ends the job in this process with the status in a, because an Abort has arrived from a
// rank or forwarder.
func (c *core) aborted(a wire.Abort) {
	reason := abortReason(a)
	if c.seal != nil {
		reason = c.sealedReason(a)
	}
	if !c.tracker.HasFinished() {
		c.giveWay(int(a.Rank))
	}
	c.fail(fault.Aborted, int(a.Code), reason)
}

// abortReason returns the text about an Abort that is shown to the user. If a rank is the cause,
// the reason in the Abort names that rank. Another host has written the reason, so it is made
// printable.
func abortReason(a wire.Abort) string {
	a.Reason = wire.Printable(a.Reason)
	if a.Rank == wire.Nobody {
		return fmt.Sprintf("job ended by the forwarder: %s", a.Reason)
	}
	return fmt.Sprintf("job ended with exit status %d: %s", a.Code, a.Reason)
}

// sealedReason returns the text about an Abort at level sealed, where the Abort of a rank arrives
// as the rank has signed it. Since a forwarder adds nothing to it, sealedReason adds the name of
// the rank. An Abort whose signature does not fit is attributed to a forwarder.
func (c *core) sealedReason(a wire.Abort) string {
	switch {
	case a.By == wire.Nobody:
		return abortReason(a)
	case !c.seal.VerifyAbort(&a):
		return fmt.Sprintf("a forwarder has ended the job with exit status %d in the name of rank %d, which has not requested it", a.Code, a.By)
	}
	if a.By == a.Rank {
		cluster, native := c.world.Place(int(a.By))
		a.Reason = fmt.Sprintf("%s, by virtual rank %d (rank %d of cluster %s) with code %d", a.Reason, a.By,
			int(a.By)-native, c.world.Clusters[cluster].Name, a.Code)
	}
	return abortReason(a)
}
