package link

import (
	"errors"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
)

// The writing side of a rail, all on the thread that has the lock:
//
//  1. Frames that wait go out together, up to batch in one vectored write, behind the segment that
//     is half written.
//  2. When no frame waits the next peer has its turn for a segment (nextSegment): lost bytes first,
//     then new ones.
//  3. The segment's payload is the program's buffer: it is written from there, spliced from there
//     (splice.go), or sent as one piece by an adapter (piece, zcopy.go).
//  4. What is written is accounted for: frames that are not retained are free again, the Source of
//     a segment is told (Upper.Written) when its last byte is in the link.
//  5. Nothing blocks: when the link takes no more the rail is blocked until there is room.

// segment is one Data frame on its way into the link.
type segment struct {
	active  bool
	peer    *Peer
	src     *Source // nil: it no longer cares
	offset  int64   // in the message
	first   bool    // not a replay: the Source waits for it to be written
	buf     [wire.HeaderLen + wire.DataLen]byte
	head    []byte // what is left of buf
	spliced bool   // it goes through the rail's pipe
	data    []byte // what is left of the payload, in the user's buffer
}

// write puts on the link what it takes, without blocking.
func (r *rail) write() (moved int, err error) {
	r.blocked = false
	full := false // no room for a large piece
	for turn := r.set.turn; moved < turn; {
		iov := r.iov[:0]
		sayCount(r)
		if !r.seg.active && r.queue.Empty() {
			if err := r.nextSegment(); err != nil {
				return moved, err
			}
		}
		whole := r.whole()
		if whole && !full && (r.queue.Empty() || r.queue.First().Of.off == 0) {
			switch err := r.piece(); {
			case err == nil:
				n := len(r.seg.head) + len(r.seg.data)
				moved += n
				r.count.sent += uint64(n)
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
		for n := r.queue.First(); n != nil && len(iov) < batch; n = n.Next() {
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
		if !whole && r.splicing() {
			n, err = r.splice()
		} else {
			n, err = r.link.TryWrite(iov...)
		}
		clear(iov)
		if errors.Is(err, transport.ErrAgain) || err != nil && blames(r.set, err, r.seg.data, false, r.seg.sends) {
			r.blocked = true
			return moved, nil
		}
		if err != nil {
			return moved, err
		}
		moved += n
		r.count.sent += uint64(n)
		if whole {
			r.framesWrote(n)
		} else {
			r.wrote(n)
		}
	}
	return moved, nil
}

// whole reports whether the segment at hand goes out as one piece. While there is no room for it
// frames overtake it.
func (r *rail) whole() bool {
	s := &r.seg
	return s.active && r.lender != nil && len(s.head) == wire.HeaderLen+wire.DataLen &&
		len(s.head)+len(s.data) <= r.lender.MaxPiece()
}

// wrote accounts for n bytes that the link took, in the order of write's list.
func (r *rail) wrote(n int) {
	if s := &r.seg; s.active {
		k := min(n, len(s.head))
		s.head, n = s.head[k:], n-k
		k = min(n, len(s.data))
		s.data, n = s.data[k:], n-k
		if len(s.head) > 0 || len(s.data) > 0 {
			return
		}
		p := s.peer
		r.dropSegment()
		r.enroll(p)
	}
	r.framesWrote(n)
}

func (r *rail) framesWrote(n int) {
	for n > 0 {
		f := r.queue.First().Of
		k := min(n, f.lineLen()-f.off)
		f.off += k
		n -= k
		if f.off < f.lineLen() {
			return
		}
		r.pop()
		if f.seq == 0 {
			r.set.freeFrame(f)
		}
	}
}

// nextSegment takes the next peer's turn, if one has bytes to send and this rail may carry them. An
// error is about keys.
func (r *rail) nextSegment() error {
	for len(r.bulk) > 0 {
		p := r.bulk[0]
		copy(r.bulk, r.bulk[1:])
		r.bulk = r.bulk[:len(r.bulk)-1]
		p.lanes[r.index].enrolled = false
		if !r.carries(p) {
			continue
		}
		src, what, first := r.nextBytes(p)
		if src == nil {
			continue // Credit, Landed or another Source brings it back
		}
		h := wire.Header{Type: wire.TypeData, Epoch: p.lanes[r.index].out.Epoch(),
			Length: uint32(wire.DataLen + what.Bytes), Src: uint32(r.set.world.Rank), Dst: uint32(p.Rank),
			Seq: p.lanes[r.index].out.Place(), Ack: p.order.Ack()}
		if !first {
			h.Flags |= wire.FlagAgain
		}
		d := wire.Data{Receiver: src.Receiver, Offset: uint64(what.Offset)}
		data := src.Buf[what.Offset : what.Offset+int64(what.Bytes)]
		s := &r.seg
		body := d.Append(s.buf[wire.HeaderLen:wire.HeaderLen])
		if r.set.checked {
			h.BodySum, h.PayloadSum = wire.Sum(body), wire.Sum(data)
		}
		h.Append(s.buf[:0])
		s.active, s.peer, s.src, s.offset, s.first = true, p, src, what.Offset, first
		s.head, s.data = s.buf[:], data
		if r.set.seal != nil {
			return s.seal(r, &h, &d, data)
		}
		return nil
	}
	return nil
}

// sends names the message that is being written to the user; "" if its bytes are a copy.
func (s *segment) sends() string {
	if s.active && s.src != nil {
		return s.src.Owner.String()
	}
	return ""
}

// dropSegment forgets the segment that is, or need not be, written.
func (r *rail) dropSegment() {
	s := &r.seg
	if s.src != nil && s.first {
		r.set.segmentDone(s.src)
	}
	s.active, s.spliced, s.peer, s.src, s.data = false, false, nil, nil, nil
}
