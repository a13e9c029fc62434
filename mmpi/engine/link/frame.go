package link

import (
	"math/bits"

	"github.com/leidenzipper/zipper/internal/list"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
)

// Frame is an outgoing frame other than Data, in memory of its own. A sequenced frame is retained
// until it has been acknowledged.
type Frame struct {
	Buf []byte // header, body and payload; pooled

	sealed     []byte            // what is written in place of Buf at level sealed; pooled
	off        int               // bytes that have been written
	seq        uint64            // sequence number; 0: not sequenced, or no longer retained
	to         int               // virtual rank; nobody: the other end of the link
	lane       int               // rail that had the frame last, as an index of Peer.lanes; nobody: none
	replayed   bool              // The frame has been given to a rail more than once.
	queued     bool              // The frame is in a rail's queue.
	background bool              // The program does not wait for the frame, so it does not keep the engine busy.
	out        list.Node[*Frame] // in a rail's queue
	kept       list.Node[*Frame] // among a peer's retained frames
}

// nobody is no rank, and no rail.
const nobody = -1

// sum writes the checksums into a complete frame; checked: those of body and payload too.
func (f *Frame) sum(checked bool) {
	if checked {
		wire.SumFrame(f.Buf)
	} else {
		wire.SumHeader(f.Buf)
	}
}

// lineLen returns the length of what is written for the frame.
func (f *Frame) lineLen() int {
	if f.sealed != nil {
		return len(f.sealed)
	}
	return len(f.Buf)
}

// seal sets what is written in place of Buf.
func (f *Frame) seal(b []byte) { f.sealed = b }

// wrote counts bytes that the link took, and reports whether the frame is complete.
func (f *Frame) wrote(n int) bool {
	f.off += n
	return f.off == f.lineLen()
}

// over notes the rail that the frame is given to.
func (f *Frame) over(lane int) { f.lane = lane }

// again prepares the frame to be sent over another rail.
func (f *Frame) again(lane int) { f.off, f.lane, f.replayed = 0, lane, true }

// store has free memory for frames.
type store struct {
	// Pool has buffers for the steady path, of the upper layers too.
	Pool Pool
	free []*Frame
}

// take returns a frame with room for n bytes.
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

// takeTo returns a frame to a rank with the header written but for its sums.
func (s *store) takeTo(h *wire.Header) *Frame {
	f := s.take(wire.HeaderLen + int(h.Length))
	f.to, f.seq, f.background = int(h.Dst), h.Seq, !h.Type.Sequenced()
	f.Buf = h.AppendUnsummed(f.Buf)
	return f
}

// takeControl returns a complete frame for the other end of a link.
func (s *store) takeControl(t wire.Type, body wire.Body) *Frame {
	b := wire.AppendFrame(nil, wire.Control(t), body)
	f := s.take(len(b))
	f.background = true
	f.Buf = append(f.Buf, b...)
	return f
}

// release takes back a frame that nothing refers to.
func (s *store) release(f *Frame) {
	s.unseal(f)
	s.Pool.Put(f.Buf)
	*f = Frame{}
	s.free = append(s.free, f)
}

// unseal discards the sealed form of a frame.
func (s *store) unseal(f *Frame) {
	if f.sealed != nil {
		s.Pool.Put(f.sealed)
		f.sealed = nil
	}
}

// queue has the frames that wait for a rail's link, in order.
type queue struct {
	frames list.List[*Frame]
	unsent int // number of frames that keep the engine busy
}

func (q *queue) push(f *Frame) {
	f.queued = true
	if !f.background {
		q.unsent++
	}
	q.frames.Push(&f.out)
}

// pushFirst queues a background frame before all others.
func (q *queue) pushFirst(f *Frame) {
	f.queued = true
	q.frames.PushFirst(&f.out)
}

// pop takes out the first frame.
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

// begun reports whether part of the first frame has been written.
func (q *queue) begun() bool { return !q.frames.Empty() && q.frames.First().Of.off > 0 }

// clear takes out all frames. Those that are retained stay so.
func (q *queue) clear(s *store) {
	for !q.frames.Empty() {
		if f := q.pop(s); f.seq == 0 {
			s.release(f)
		}
	}
}

// drop forgets all frames. Those that are retained stay so.
func (q *queue) drop() { q.frames, q.unsent = list.List[*Frame]{}, 0 }

// purge takes out the frames for a rank while the link goes on. A frame that has been written in
// part is replaced by a copy, because the link must get all of it.
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

// retained has a peer's sequenced frames that have been sent and not acknowledged, in order. They
// are kept for replay.
type retained struct {
	frames list.List[*Frame]
	bytes  int
}

func (r *retained) add(f *Frame) {
	r.frames.Push(&f.kept)
	r.bytes += len(f.Buf)
}

// release releases the frames up to a sequence number, and returns how many they were.
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

// Kept returns how many bytes of frames are kept for replay because the peer has not acknowledged
// them.
func (r *retained) Kept() int { return r.bytes }

// drop releases all frames, and returns how many they were.
func (r *retained) drop(s *store) (n int) {
	for first := r.frames.First(); first != nil; first = r.frames.First() {
		f := first.Of
		r.frames.Remove(first)
		n++
		if f.seq = 0; !f.queued { // otherwise it is released once it has been written
			s.release(f)
		}
	}
	r.bytes = 0
	return n
}

// Pool keeps byte buffers by size class, so that the steady path allocates nothing. It is not safe
// for concurrent use.
type Pool struct {
	free [poolClasses][][]byte
	kept int // bytes in free
}

const (
	poolSmallest = 7 // 128 bytes
	poolClasses  = 15
)

func poolClass(n int) int {
	if n <= 1<<poolSmallest {
		return 0
	}
	return bits.Len(uint(n-1)) - poolSmallest
}

// Get returns n bytes with arbitrary contents.
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

// Put takes back what Get has returned.
func (p *Pool) Put(b []byte) {
	c := poolClass(cap(b))
	if cap(b) == 0 || c >= poolClasses || cap(b) != 1<<(c+poolSmallest) || p.kept+cap(b) > poolKeep {
		return
	}
	p.kept += cap(b)
	p.free[c] = append(p.free[c], b[:0])
}
