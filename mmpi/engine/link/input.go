package link

import (
	"errors"
	"fmt"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
	"github.com/leidenzipper/zipper/mmpi/engine/sealing"
)

// The reading side of a rail, all on the thread that has the lock:
//
//  1. Heads of frames are cut from the rail's buffer; while segments come they are read by
//     themselves, so that payload is never copied.
//  2. A frame between the two ends of the link is handled here (control).
//  3. Of a frame from another rank reorder.go says where its payload goes: into the receive that it
//     is for, into a buffer, or nowhere.
//  4. The payload is read to there, straight from the link but for what the buffer has already.
//  5. When it is in place landed is called, and the next frame has its turn.

// input is what has been read and not handled.
type input struct {
	buf  []byte
	r, w int // unread bytes are buf[r:w]

	busy bool   // a payload is coming
	all  []byte // its destination
	dst  []byte // the part of that which is not filled yet
	skip int    // bytes after that to throw away
	sum  uint32 // of what was thrown away, after that of the destination
	want uint32 // the payload's sum, as its sender says; 0 and lax: it is not checked
	lax  bool
	room []byte // at level sealed: for a frame that is longer than buf
	op   rxOp   // what to do when it is there
	bulk bool   // segments are coming

	read uint64 // bytes from the link
	at   uint64 // of these before the frame at hand
}

// begun is where the frame that has come in part begins, in bytes of the link; without one: read.
func (in *input) begun() uint64 {
	if in.busy {
		return in.at
	}
	return in.read - uint64(in.w-in.r)
}

// breach is a fault of what came over a link rather than of the link.
type breach struct{ error }

// read handles what the link has, without blocking, and returns how many bytes it took.
func (r *rail) read() (moved int, err error) {
	in := &r.in
	dry := false // the last read took all there was
	fill := func(p []byte) (int, error) {
		n, err := r.link.TryRead(p)
		switch {
		case err == transport.ErrAgain:
			dry = true
			return 0, nil
		case err != nil && blames(r.set, err, p, true, in.receives):
			dry = true
			return 0, nil
		case err != nil:
			return 0, err
		}
		dry = n < len(p)
		r.fresh = true
		moved += n
		in.read += uint64(n)
		return n, nil
	}
	for !r.set.ended {
		if in.busy {
			if in.r < in.w {
				k := copy(in.dst, in.buf[in.r:in.w])
				in.dst = in.dst[k:]
				in.r += k
				k = min(in.skip, in.w-in.r)
				in.throw(in.buf[in.r : in.r+k])
				in.r += k
			}
			switch {
			case len(in.dst) > 0:
				if dry || moved > turnSize {
					return moved, nil
				}
				n, err := fill(in.dst)
				if err != nil {
					return moved, err
				}
				in.dst = in.dst[n:]
			case in.skip > 0:
				if dry || moved > turnSize {
					return moved, nil
				}
				in.r, in.w = 0, 0
				n, err := fill(in.buf[:min(in.skip, len(in.buf))])
				if err != nil {
					return moved, err
				}
				in.w = n
			default:
				if err := in.verify(); err != nil {
					return moved, breach{err}
				}
				in.busy, in.all, in.dst = false, nil, nil
				op := in.op
				in.op = rxOp{}
				if op.typ == typeSealed {
					err = r.openSealed(r.in.room)
				} else if err = r.set.landed(op); err != nil {
					err = breach{err}
				}
				if err != nil {
					return moved, err
				}
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
		if dry || moved > turnSize || r.state == closed {
			return moved, nil
		}
		if in.r > 0 {
			copy(in.buf, in.buf[in.r:in.w])
			in.r, in.w = 0, in.w-in.r
		}
		room := in.buf[in.w:]
		want := wire.HeaderLen + wire.DataLen
		if r.set.seal != nil {
			want = wire.HeaderLen
		}
		if in.bulk && in.w < want {
			room = in.buf[in.w:want]
		}
		if n, err = fill(room); err != nil {
			return moved, err
		}
		in.w += n
	}
	return moved, nil
}

// receives names the message that is being read into memory of the program's; "" if that is the
// set's own.
func (in *input) receives() string {
	if in.op.sink != nil {
		return in.op.sink.Owner.String()
	}
	if owner, ok := in.op.upper.(fmt.Stringer); ok && in.busy {
		return owner.String()
	}
	return ""
}

// throw takes bytes that nobody wants; those of the destination came before them.
func (in *input) throw(b []byte) {
	if len(b) > 0 && !in.lax {
		if in.all != nil {
			in.sum, in.all = wire.Sum(in.all), nil
		}
		in.sum = wire.SumMore(in.sum, b)
	}
	in.skip -= len(b)
}

// verify checks a payload that is there, where it is: what another rail may have written over it
// meanwhile counts.
func (in *input) verify() error {
	if in.lax {
		return nil
	}
	sum := in.sum
	if in.all != nil {
		sum = wire.Sum(in.all)
	}
	if sum == in.want {
		return nil
	}
	from := "another rank"
	if in.op.peer != nil {
		from = fmt.Sprintf("rank %d", in.op.peer.Rank)
	}
	return fmt.Errorf("payload from %s: %w", from, wire.ErrSum)
}

// frame handles the next frame but for its payload, if its head is there, and returns the bytes
// used.
func (r *rail) frame() (int, error) {
	in := &r.in
	b := in.buf[in.r:in.w]
	in.at = in.read - uint64(len(b))
	if len(b) < wire.HeaderLen {
		return 0, nil
	}
	h, err := wire.ParseHeader(b)
	if err != nil {
		return 0, breach{err}
	}
	if r.set.seal != nil || h.Flags&wire.FlagSealed != 0 {
		return in.sealed(r, &h, b)
	}
	payload := h.Payload()
	head := wire.HeaderLen + int(h.Length) - payload
	if head > len(in.buf) {
		return 0, breach{fmt.Errorf("%v frame of %d bytes is too long here", h.Type, h.Length)}
	}
	if len(b) < head {
		in.bulk = in.bulk && h.Type == wire.TypeData
		return 0, nil
	}
	in.bulk = h.Type == wire.TypeData
	in.r += head
	body := b[wire.HeaderLen:head]
	if r.set.checked || !h.Type.BetweenRanks() {
		if err := h.Verify(body); err != nil {
			return 0, breach{fmt.Errorf("%v frame: %w", h.Type, err)}
		}
	}
	if !h.Type.BetweenRanks() {
		return head, r.control(h, body)
	}
	dst, op, err := r.arrive(h, body, payload)
	if err != nil {
		return 0, breach{fmt.Errorf("%v frame from rank %d: %w", h.Type, h.Src, err)}
	}
	if payload > 0 || op.some() {
		in.busy, in.all, in.dst, in.skip, in.op = true, dst, dst, payload-len(dst), op
		in.sum, in.want, in.lax = 0, h.PayloadSum, !r.set.checked
	}
	return head, nil
}

// typeSealed is the type of an rxOp for a whole frame that is still sealed.
const typeSealed wire.Type = 255

// sealed is frame at level sealed: nothing but the header is looked at before the whole frame
// is here and its tag has been checked. A frame that the buffer cannot hold, and segments as they
// come, are read aside.
func (in *input) sealed(r *rail, h *wire.Header, b []byte) (int, error) {
	whole := wire.HeaderLen + int(h.Length)
	sealed := h.Flags&wire.FlagSealed != 0
	switch {
	case r.set.seal == nil:
		return 0, breach{fmt.Errorf("%v frame: it is sealed, and the job is not", h.Type)}
	case !sealed && (r.peer != nil || !r.seal.MayBePlain(h.Type)):
		return 0, breach{fmt.Errorf("%v frame: %w", h.Type, sealing.ErrPlain)}
	}
	segment := h.Type == wire.TypeData
	if len(b) < whole {
		if in.bulk = in.bulk && segment; !segment && whole <= len(in.buf) {
			return 0, nil
		}
		in.bulk = segment
		if cap(in.room) < whole {
			in.room = make([]byte, whole)
		}
		in.room = in.room[:whole]
		n := copy(in.room, b)
		in.r += n
		in.busy, in.all, in.dst, in.skip, in.op = true, nil, in.room[n:], 0, rxOp{typ: typeSealed}
		in.sum, in.lax = 0, true
		return n, nil
	}
	in.bulk = segment
	in.r += whole
	if !sealed {
		return whole, r.control(*h, b[wire.HeaderLen:whole])
	}
	return whole, r.openSealed(b[:whole])
}

// openSealed opens a whole frame in place and handles it.
func (r *rail) openSealed(frame []byte) error {
	h, err := wire.ParseHeader(frame)
	if err != nil {
		return breach{err}
	}
	if !h.Type.BetweenRanks() {
		var body []byte
		if r.peer == nil {
			h, body, err = r.seal.Open(h, frame)
		} else if err = r.peer.makePair(); err == nil {
			h, body, err = r.peer.pair.Open(h, frame, r.index)
		}
		if err != nil {
			return breach{fmt.Errorf("%v frame: %w", h.Type, err)}
		}
		return r.control(h, body)
	}
	bad := func(err error) error { return breach{fmt.Errorf("%v frame from rank %d: %w", h.Type, h.Src, err)} }
	p, err := sender(r.set, r, &h)
	if err != nil {
		return bad(err)
	}
	if err := p.makePair(); err != nil {
		return keyless{err}
	}
	h, plain, err := p.pair.Open(h, frame, r.index)
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
	if err := r.set.landed(op); err != nil {
		return bad(err)
	}
	return nil
}

// control handles a frame of the other end of the link.
func (r *rail) control(h wire.Header, body []byte) error {
	if r.peer != nil && h.Type == wire.TypeBye { // the process at the other end is through, and we with it
		if r.state == up {
			r.to(leaving)
		}
		r.push(r.set.newControl(wire.TypeByeAck, nil))
		return nil
	}
	switch h.Type {
	case wire.TypePing:
		r.push(r.set.newControl(wire.TypePong, nil))
		r.count.due = true // we may be too idle to do it later
	case wire.TypePong:
	case wire.TypeCount:
		return r.count.take(body, r.in.at)
	case wire.TypeByeAck:
		if r.state != byeSent {
			return breach{errors.New("the forwarder said good-bye unasked")}
		}
		r.to(closed)
	case wire.TypeRailState:
		s, err := wire.ParseRailState(body)
		if err == nil {
			err = r.count.states.Take(s.Number)
		}
		if err != nil {
			return breach{err}
		}
		return r.set.failover.forwarderSays(r, s)
	case wire.TypeNotice:
		n, err := wire.ParseNotice(body)
		if err != nil {
			return breach{err}
		}
		return fmt.Errorf("the forwarder has closed it: %s", wire.Printable(n.Text))
	case wire.TypeBye: // the link is lost like any other, but the forwarder may be started again
		r.stopped = true
		return errors.New("the forwarder is shutting down")
	case wire.TypeAbort:
		a, err := wire.ParseAbort(body)
		if err != nil {
			return breach{err}
		}
		reason := abortReason(a)
		if r.set.seal != nil {
			reason = sealedReason(r.set, a)
		}
		v := &r.set.failover
		if !v.met {
			v.giveWay(int(a.Rank))
		}
		v.fail(fault.Aborted, int(a.Code), reason)
	default:
		return breach{fmt.Errorf("unexpected %v frame", h.Type)}
	}
	return nil
}

// abortReason is what the rank says that is told of the end; a reason that a rank is the cause of
// names that rank. Another host has said it: it is shown as text.
func abortReason(a wire.Abort) string {
	a.Reason = wire.Printable(a.Reason)
	if a.Rank == wire.Nobody {
		return fmt.Sprintf("job ended by the forwarder: %s", a.Reason)
	}
	return fmt.Sprintf("job ended with exit status %d: %s", a.Code, a.Reason)
}

// sealedReason is abortReason where a rank's Abort comes as the rank has made it: a forwarder adds
// nothing to it.
func sealedReason(s *Set, a wire.Abort) string {
	switch {
	case a.By == wire.Nobody:
		return abortReason(a)
	case !s.seal.Said(&a):
		return fmt.Sprintf("a forwarder has ended the job with exit status %d in the name of rank %d, which has not said so", a.Code, a.By)
	}
	if a.By == a.Rank {
		c, native := s.world.Place(int(a.By))
		a.Reason = fmt.Sprintf("%s, by virtual rank %d (rank %d of cluster %s) with code %d", a.Reason, a.By,
			int(a.By)-native, s.world.Clusters[c].Name, a.Code)
	}
	return abortReason(a)
}

// step reads and writes once.
func (r *rail) step() (moved int) {
	if !r.linked() {
		return 0
	}
	n, err := r.read()
	if err == nil && r.pending() {
		var m int
		m, err = r.write()
		n += m
	}
	switch {
	case err == nil || r.set.ended:
	case r.state == closed: // what is queued cannot go out any more
		r.close()
	default:
		r.set.failover.lost(r, err)
	}
	return n
}
