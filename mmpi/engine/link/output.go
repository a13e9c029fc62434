package link

import (
	"errors"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/flow"
)

// The writing side of a rail, on the thread that has the lock:
//
//  1. Frames that wait go out together, up to batch slices in one vectored write, behind the
//     segment that has been written in part.
//  2. When no frame waits, the next peer has its turn for a segment (nextSegment): lost bytes
//     first, then new ones.
//  3. The segment's payload is in the program's buffer. It is written from there, spliced from
//     there (conn.go), or sent as one piece by an adapter (segment.sendPiece).
//  4. Written bytes are accounted for: frames that are not retained are released, and Upper.Written
//     is called when the last byte of a Source is in the link.
//  5. Nothing blocks: when the link takes no more, the rail is blocked until there is room.

// write writes queued frames and segments, as many bytes as the link takes without blocking and
// about core.turn at most. It returns how many bytes it wrote.
func (r *rail) write() (moved int, err error) {
	r.blocked = false
	full := false // The link has no room for a large piece.
	for turn := r.core.turn; moved < turn; {
		iov := r.iov[:0]
		r.queueCount()
		if !r.seg.active && r.queue.frames.Empty() {
			if err := r.nextSegment(); err != nil {
				return moved, err
			}
		}
		whole := r.seg.isPiece(r.lender)
		if whole && !full && !r.queue.begun() {
			switch err := r.seg.sendPiece(&r.conn, &r.core.zcopy); {
			case err == nil:
				n := len(r.seg.head) + len(r.seg.data)
				moved += n
				r.count.add(n)
				r.wrote(n)
				continue
			case !errors.Is(err, transport.ErrAgain):
				return moved, err
			}
			full = true
		}
		if r.seg.active && !whole {
			iov = append(iov, r.seg.head, r.seg.data)
		}
		for n := r.queue.frames.First(); n != nil && len(iov) < batch; n = n.Next() {
			line, err := r.line(n.Of)
			if err != nil {
				clear(iov)
				return moved, err
			}
			iov = append(iov, line[n.Of.off:])
		}
		r.iov = iov
		if len(iov) == 0 {
			r.blocked = full
			return moved, nil
		}
		var n int
		if !whole && r.seg.splicing(&r.conn) {
			n, err = r.splice(r.seg.head, r.seg.pages())
		} else {
			n, err = r.link.TryWrite(iov...)
		}
		clear(iov)
		if errors.Is(err, transport.ErrAgain) || err != nil && r.core.blames(err, r.seg.data, false, r.seg.sends) {
			r.blocked = true
			return moved, nil
		}
		if err != nil {
			return moved, err
		}
		moved += n
		r.count.add(n)
		if whole {
			r.framesWrote(n)
		} else {
			r.wrote(n)
		}
	}
	return moved, nil
}

// queueCount queues a Count as the next frame, if one is due and no frame has been written in part.
func (r *rail) queueCount() {
	if !r.count.due || r.link == nil || r.seg.active || r.queue.begun() {
		return
	}
	extra := 0
	if r.core.seal != nil {
		extra = wire.SealLen
	}
	r.queue.pushFirst(r.core.takeControl(wire.TypeCount, r.count.next(r.core.Now(), extra)))
}

// wrote counts n bytes as taken by the link: first those of the current segment, then those of
// queued frames, in the order in which write passed them.
func (r *rail) wrote(n int) {
	if s := &r.seg; s.active {
		n = s.wrote(n)
		if !s.written() {
			return
		}
		p := s.peer
		r.endSegment()
		r.enroll(p)
	}
	r.framesWrote(n)
}

// framesWrote accounts for n bytes of queued frames that the link took. It removes complete frames
// from the queue, and releases those that are not retained.
func (r *rail) framesWrote(n int) {
	for n > 0 {
		f := r.queue.frames.First().Of
		k := min(n, f.lineLen()-f.off)
		n -= k
		if !f.wrote(k) {
			return
		}
		r.queue.pop(&r.core.store)
		if f.seq == 0 {
			r.core.release(f)
		}
	}
}

// line returns the bytes that are written to the link for a queued frame. At level sealed, line
// seals the frame for this transmission, and keeps the result until it has been written. An error
// means that there are no keys.
func (r *rail) line(f *Frame) ([]byte, error) {
	c := r.core
	if c.seal == nil {
		return f.Buf, nil
	}
	if f.sealed != nil {
		return f.sealed, nil
	}
	b := c.Pool.Get(len(f.Buf) + wire.SealLen)[:0]
	p := r.peer // A direct link uses the keys of its two processes.
	if f.to != nobody {
		p = c.Peer(f.to)
	}
	var err error
	if p == nil {
		b, err = r.seal.Seal(b, f.Buf)
	} else if err = p.keys.make(p); err == nil {
		b, err = p.keys.pair.Seal(b, f.Buf)
	}
	if err != nil {
		return nil, keyless{err}
	}
	f.seal(b)
	return b, nil
}

// nextSegment begins a segment to the next peer in turn that has bytes to send and may use this
// rail, if there is one. An error means that there are no keys.
func (r *rail) nextSegment() error {
	for len(r.bulk) > 0 {
		p := r.bulk.next()
		p.lanes[r.index].enroll(false)
		if !r.carries(p) {
			continue
		}
		src, what, first := r.nextBytes(p)
		if src == nil {
			continue // Credit, Landed, Resume or another Source brings the peer back.
		}
		return r.seg.begin(p, &p.lanes[r.index].out, src, what, first)
	}
	return nil
}

// nextBytes chooses the next bytes to send to a peer over the rail: lost segments before new bytes.
// It returns a nil Source if nothing may be sent now. first reports that the bytes are new.
func (r *rail) nextBytes(p *Peer) (src *Source, s flow.Segment, first bool) {
	l := &p.lanes[r.index].out
	if r.shares && l.InFlight() >= max(p.share(r), minOnWay*r.core.limit.Segment) {
		return nil, s, false
	}
	for s, ok := p.out.nextLost(); ok; s, ok = p.out.nextLost() {
		if src = r.core.upper.Source(p, s.Request); src != nil {
			p.lanes[r.index].sent(s, r.core.Now(), r.tracked)
			return src, s, false
		}
	}
	ready := p.out.ready()
	if ready == 0 {
		return nil, s, false
	}
	if src, s = p.out.next(r.segmentSize(&p.out, ready, r.shares)); src == nil {
		return nil, s, false
	}
	p.lanes[r.index].sent(s, r.core.Now(), r.tracked)
	p.core.Demands.countBulk(p, r, s.Bytes)
	return src, s, true
}

// share returns how many bytes rail r may have in flight to the peer. It divides the window among
// the rails to forwarders that reach the peer, by their measured rates; a direct rail may use all
// of it. The window is the credit left plus the bytes in flight over all rails, but at least
// Limits.DataWindow.
func (p *Peer) share(r *rail) int {
	c := p.core
	window := int(p.out.credit.Available())
	for i := range p.lanes {
		window += p.lanes[i].out.InFlight()
	}
	window = max(window, c.limit.DataWindow)
	if r.peer != nil {
		return window
	}
	lanes := c.lanes[:0]
	for i, o := range c.forwarders {
		if o.Reaches(p.Rank) {
			lanes = append(lanes, &p.lanes[i].out)
		}
	}
	return flow.Share(window, &p.lanes[r.index].out, lanes)
}
