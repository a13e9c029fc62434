package link

import (
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/flow"
)

// segment is the part of a large message, one Data frame, that a rail is writing to its link.
type segment struct {
	active bool  // A segment is being written.
	peer   *Peer // receiver of the segment
	// message of which the payload is a part; nil: the payload no longer belongs to one
	src     *Source
	offset  int64                               // offset of the payload in the message, in bytes
	first   bool                                // The segment is not a replay, so its Source waits for it.
	buf     [wire.HeaderLen + wire.DataLen]byte // header and body of the frame
	head    []byte                              // unwritten part of the header and body, or of the sealed frame
	spliced bool                                // The segment goes through the link's pipe.
	data    []byte                              // unwritten part of the payload, in the program's memory or a copy
	room    []byte                              // at level sealed: buffer for the sealed frame
}

// begin builds the Data frame for a part of src, which the argument what describes. first says that
// the bytes are not a replay. An error means that there are no keys.
func (s *segment) begin(p *Peer, l *flow.Lane, src *Source, what flow.Segment, first bool) error {
	h := wire.Header{Type: wire.TypeData, Epoch: l.Epoch(), Length: uint32(wire.DataLen + what.Bytes),
		Src: uint32(p.core.world.Rank), Dst: uint32(p.Rank), Seq: l.Place(), Ack: p.order.Ack()}
	if !first {
		h.Flags |= wire.FlagResent
	}
	d := wire.Data{Receiver: src.Receiver, Offset: uint64(what.Offset)}
	data := src.Buf[what.Offset : what.Offset+int64(what.Bytes)]
	body := d.Append(s.buf[wire.HeaderLen:wire.HeaderLen])
	if p.core.checked {
		h.BodySum, h.PayloadSum = wire.Sum(body), wire.Sum(data)
	}
	h.Append(s.buf[:0])
	s.active, s.peer, s.src, s.offset, s.first = true, p, src, what.Offset, first
	s.head, s.data = s.buf[:], data
	if p.core.seal == nil {
		return nil
	}
	return s.seal(&h, &d, data)
}

// seal encrypts the frame with header h, body d and payload data into room, from which it is then
// written.
func (s *segment) seal(h *wire.Header, d *wire.Data, data []byte) error {
	if err := s.peer.keys.make(s.peer); err != nil {
		return keyless{err}
	}
	if n := wire.HeaderLen + int(h.Length) + wire.SealLen; cap(s.room) < n {
		s.room = make([]byte, n)
	}
	var err error
	if s.head, err = s.peer.keys.pair.SealData(s.room[:0], *h, d, data); err != nil {
		return keyless{err}
	}
	s.data = nil
	return nil
}

// whole reports whether nothing of the segment has been written to the link yet.
func (s *segment) whole() bool { return len(s.head) == wire.HeaderLen+wire.DataLen }

// isPiece reports whether the segment is passed to the link in one call, all or nothing. lender is
// the link if it supports that, otherwise nil. While the link has no room for the piece, frames
// overtake it.
func (s *segment) isPiece(lender transport.Lender) bool {
	return s.active && lender != nil && s.whole() && len(s.head)+len(s.data) <= lender.MaxPiece()
}

// sendPiece passes the segment to the link in one call, from registered memory if the link and the
// Source allow that.
func (s *segment) sendPiece(c *conn, z *zcopy) error {
	if src := s.src; src != nil && c.placer != nil && z.may(src.Zcopy, &src.mem, len(src.Buf)) {
		if p := z.pinned(c.placer, &src.mem, src.Buf, s.offset, len(s.data)); p != nil {
			return c.placer.TrySendPinned(s.head, p.region, int(s.offset-p.from), len(s.data))
		}
	}
	return c.lender.TrySend(s.head, s.data)
}

// splicing reports whether the next bytes of the segment go through the link's pipe. When the
// segment begins, it decides that and puts the head into the pipe. The pipe never gets the copy of
// a detached segment, because Go may reuse that memory before the network has read its pages: only
// the bytes that are in the pipe already go through it.
func (s *segment) splicing(c *conn) bool {
	if s.spliced {
		return c.splices && s.src != nil || c.pipe.Len() > 0
	}
	if !s.active || s.src == nil || !c.splices || !s.whole() || len(s.data) <= c.most+c.crumb {
		return false
	}
	s.spliced = c.begin(s.head)
	return s.spliced
}

// pages returns the unwritten part of the payload if its pages may be put into the link's pipe, and
// otherwise nil.
func (s *segment) pages() []byte {
	if s.src == nil {
		return nil
	}
	return s.data
}

// wrote counts n bytes that the link took, and returns how many of them belong to the frames after
// the segment.
func (s *segment) wrote(n int) (behind int) {
	k := min(n, len(s.head))
	s.head, n = s.head[k:], n-k
	k = min(n, len(s.data))
	s.data, n = s.data[k:], n-k
	return n
}

// written reports whether all of the segment has been written.
func (s *segment) written() bool { return len(s.head) == 0 && len(s.data) == 0 }

// end ends the segment, which has been written or is no longer needed. It returns the Source that
// waits for the segment, or nil.
func (s *segment) end() (src *Source) {
	if s.first {
		src = s.src
	}
	s.active, s.spliced, s.peer, s.src, s.data = false, false, nil, nil, nil
	return src
}

// drop ends the segment although it has not been written.
func (s *segment) drop() { s.active = false }

// reset ends the segment, and drops its references to the program's memory.
func (s *segment) reset() { *s = segment{} }

// detach copies the bytes that have not been written, and so separates the segment from its Source,
// whose buffer the program may reuse soon.
func (s *segment) detach() {
	s.data = append([]byte(nil), s.data...)
	s.src = nil
}

// sends returns the name of the message whose segment is being written, or "" if none is or its
// bytes are a copy.
func (s *segment) sends() string {
	if s.active && s.src != nil {
		return s.src.Owner.String()
	}
	return ""
}
