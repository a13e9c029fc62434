package link

import (
	"math/bits"

	"github.com/leidenzipper/zipper/internal/list"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
)

// Frame is an outgoing frame other than Data, in a buffer of its own. A sequenced frame is retained
// until the peer has acknowledged it.
type Frame struct {
	Buf []byte // header, body and payload, in a buffer of the Pool

	sealed []byte // at level sealed: bytes that are written in place of Buf; nil: not sealed yet
	off    int    // number of bytes that have been written to the link
	seq    uint64 // sequence number; 0: the frame is not sequenced, or no longer retained
	// rank of the receiver in the whole job; nobody: the frame is for the other end of the link
	to         int
	lane       int               // index in Peer.lanes of the rail that was given the frame last; nobody: none
	replayed   bool              // resend has prepared the frame to be sent, so a copy may have been sent before.
	queued     bool              // The frame is in a rail's queue.
	background bool              // The program does not wait for the frame, so unsent does not count it.
	out        list.Node[*Frame] // element of a rail's queue
	kept       list.Node[*Frame] // element of the peer's list of retained frames
}

// nobody stands for no rank, or no rail.
const nobody = -1

// sum writes the checksum of the header into a complete frame, and if checked is true those of its
// body and payload too.
func (f *Frame) sum(checked bool) {
	if checked {
		wire.SumFrame(f.Buf)
	} else {
		wire.SumHeader(f.Buf)
	}
}

// lineLen returns the number of bytes that are written to the link for the frame, sealed or not.
func (f *Frame) lineLen() int {
	if f.sealed != nil {
		return len(f.sealed)
	}
	return len(f.Buf)
}

// seal sets b, the encrypted form of the frame, which is written to the link in place of Buf.
func (f *Frame) seal(b []byte) { f.sealed = b }

// wrote counts n bytes of the frame as written to the link, and reports whether all of it is
// written.
func (f *Frame) wrote(n int) bool {
	f.off += n
	return f.off == f.lineLen()
}

// over records the index of the rail that is given the frame to send, as in Peer.lanes.
func (f *Frame) over(lane int) { f.lane = lane }

// again prepares the frame to be sent again, from its start. lane is the index in Peer.lanes of the
// rail over which it is sent.
func (f *Frame) again(lane int) { f.off, f.lane, f.replayed = 0, lane, true }

// store allocates frames and their buffers, and reuses released ones.
type store struct {
	// Pool provides the buffers of frames, and buffers for the upper layers.
	Pool Pool
	free []*Frame // released frames that can be used again
}

// take returns an empty frame whose buffer has room for n bytes, the length of the whole frame with
// its header.
func (s *store) take(n int) *Frame {
	var f *Frame
	if k := len(s.free); k > 0 {
		f = s.free[k-1]
		s.free = s.free[:k-1]
	} else {
		f = new(Frame)
	}
	f.out.Of, f.kept.Of = f, f
	f.to, f.lane = nobody, nobody
	f.Buf = s.Pool.Get(n)[:0]
	return f
}

// takeTo returns a frame to the rank in header h. The header is written except for its checksums,
// and the buffer has room for body and payload.
func (s *store) takeTo(h *wire.Header) *Frame {
	f := s.take(wire.HeaderLen + int(h.Length))
	f.to, f.seq, f.background = int(h.Dst), h.Seq, !h.Type.Sequenced()
	f.Buf = h.AppendUnsummed(f.Buf)
	return f
}

// takeControl returns a complete frame of type t for the other end of a link, rather than for a
// rank behind it. body may be nil.
func (s *store) takeControl(t wire.Type, body wire.Body) *Frame {
	b := wire.AppendFrame(nil, wire.Control(t), body)
	f := s.take(len(b))
	f.background = true
	f.Buf = append(f.Buf, b...)
	return f
}

// release frees a frame, to which nothing refers any more, and its buffer for reuse.
func (s *store) release(f *Frame) {
	s.unseal(f)
	s.Pool.Put(f.Buf)
	*f = Frame{}
	s.free = append(s.free, f)
}

// unseal frees the encrypted form of a frame, if there is one.
func (s *store) unseal(f *Frame) {
	if f.sealed != nil {
		s.Pool.Put(f.sealed)
		f.sealed = nil
	}
}

// queue holds the frames that wait to be written to a rail's link, in order.
type queue struct {
	frames list.List[*Frame] // waiting frames; the first one may have been written in part
	unsent int               // number of frames that are not background frames
}

// push appends a frame to those that wait to be written.
func (q *queue) push(f *Frame) {
	f.queued = true
	if !f.background {
		q.unsent++
	}
	q.frames.Push(&f.out)
}

// pushFirst inserts a frame for which the program does not wait (background) before all others.
func (q *queue) pushFirst(f *Frame) {
	f.queued = true
	q.frames.PushFirst(&f.out)
}

// pop removes and returns the first frame, and frees its encrypted form.
func (q *queue) pop(s *store) *Frame {
	f := q.frames.First().Of
	q.frames.Remove(&f.out)
	s.unseal(f)
	f.queued = false
	if !f.background {
		q.unsent--
	}
	return f
}

// begun reports whether part of the first frame has been written to the link.
func (q *queue) begun() bool { return !q.frames.Empty() && q.frames.First().Of.off > 0 }

// clear removes all frames from the queue, and releases those that are not kept until they are
// acknowledged.
func (q *queue) clear(s *store) {
	for !q.frames.Empty() {
		if f := q.pop(s); f.seq == 0 {
			s.release(f)
		}
	}
}

// drop removes all frames from the queue, and releases none of them.
func (q *queue) drop() { q.frames, q.unsent = list.List[*Frame]{}, 0 }

// purge removes the frames to a rank from the queue, whose link stays in use. A frame that has been
// written in part is replaced by a copy, because the link must get all of it.
func (q *queue) purge(s *store, rank int) {
	old := q.frames
	q.drop()
	for n := old.First(); n != nil; {
		f := n.Of
		n = n.Next()
		f.queued = false
		if f.to != rank {
			q.push(f)
			continue
		}
		if f.off > 0 {
			c := s.take(len(f.Buf))
			c.Buf, c.off, c.background = append(c.Buf, f.Buf...), f.off, true
			c.sealed, f.sealed = f.sealed, nil
			q.push(c)
		}
		s.unseal(f)
		if f.seq == 0 {
			s.release(f)
		}
	}
}

// retained holds a peer's sequenced frames that have been sent and not acknowledged, in order, so
// that they can be sent again after a loss.
type retained struct {
	frames list.List[*Frame] // frames by sequence number, lowest first
	bytes  int               // total length of the frames, in bytes
}

// add appends a sequenced frame, which is kept until the peer has acknowledged it.
func (r *retained) add(f *Frame) {
	r.frames.Push(&f.kept)
	r.bytes += len(f.Buf)
}

// release releases the kept frames up to sequence number ack, and returns their number. An error
// means that the peer has acknowledged a frame that was not sent.
func (r *retained) release(ack uint64, s *store) (n int, err error) {
	for first := r.frames.First(); first != nil && first.Of.seq <= ack; first = r.frames.First() {
		f := first.Of
		r.frames.Remove(first)
		n++
		r.bytes -= len(f.Buf)
		switch {
		case !f.queued:
			s.release(f)
		case f.replayed: // The first copy has arrived after all.
			f.seq = 0 // The frame is released once it has been written.
		default:
			return n, fault.New(fault.Link, "acknowledged frame %d before it was sent", f.seq)
		}
	}
	return n, nil
}

// Kept returns the total length, in bytes, of the frames that the peer has not acknowledged.
func (r *retained) Kept() int { return r.bytes }

// drop releases all kept frames, and returns their number. A frame in a rail's queue is released
// once it has been written.
func (r *retained) drop(s *store) (n int) {
	for first := r.frames.First(); first != nil; first = r.frames.First() {
		f := first.Of
		r.frames.Remove(first)
		n++
		if f.seq = 0; !f.queued { // A queued frame is released once it has been written.
			s.release(f)
		}
	}
	r.bytes = 0
	return n
}

// Pool keeps byte buffers by size class for reuse, so that steady traffic allocates nothing. It is
// not safe for concurrent use.
type Pool struct {
	free [poolClasses][][]byte // free buffers by size class
	kept int                   // total capacity of the buffers in free, in bytes
}

const (
	poolSmallest = 7  // size of the smallest buffers, as a power of two: 128 bytes
	poolClasses  = 15 // number of size classes, each twice as large as the one before
)

// poolClass returns the index of the smallest size class whose buffers hold n bytes.
func poolClass(n int) int {
	if n <= 1<<poolSmallest {
		return 0
	}
	return bits.Len(uint(n-1)) - poolSmallest
}

// Get returns a buffer of n bytes with arbitrary contents.
func (p *Pool) Get(n int) []byte {
	c := poolClass(n)
	if c >= poolClasses {
		return make([]byte, n)
	}
	if l := len(p.free[c]); l > 0 {
		b := p.free[c][l-1]
		p.free[c][l-1] = nil
		p.free[c] = p.free[c][:l-1]
		p.kept -= cap(b)
		return b[:n]
	}
	return make([]byte, n, 1<<(c+poolSmallest))
}

// Put releases for reuse a buffer that Get has returned. If the Pool is full, the buffer is
// dropped.
func (p *Pool) Put(b []byte) {
	c := poolClass(cap(b))
	if cap(b) == 0 || c >= poolClasses || cap(b) != 1<<(c+poolSmallest) || p.kept+cap(b) > poolKeep {
		return
	}
	p.kept += cap(b)
	p.free[c] = append(p.free[c], b[:0])
}
