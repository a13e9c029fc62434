package engine

import (
	"context"
	"errors"
	"time"

	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/wire"
)

// rail is a link to a forwarder, or to one other process (direct.go), with what waits to go out and the frame that is coming in.
type rail struct {
	e       *Engine
	addr    string                          // forwarder: as the job names it; empty: unknown
	index   int                             // in Engine.forwarders and peer.lanes; the direct one is the last
	peer    *peer                           // direct: the process at the other end
	redial  func(ctx context.Context) error // opens the link and hands it over; nil: never, or the other end does
	failed  error                           // direct: why the last attempt to open it failed
	leaving bool                            // direct: the other process has said Bye
	told    bool                            // forwarder: the user knows that it is not in use
	link    transport.Link
	lender  transport.Lender // the link, if it has large pieces
	placer  transport.Placer // the link, if they need not be copied
	piper   transport.Piper  // the link, if it takes what is in
	pipe    *transport.Pipe  // which has pages of the segment at hand (give.go); nil: there is none yet
	gives   bool             // long segments go that way
	most    int              // bytes of payload in a segment,
	long    int              // in one of a fast flow,
	crumb   int              // and so few may be left for the last one to take too
	packet  int              // bytes; 0: unknown
	up      bool             // joined and not lost
	down    map[int]string   // virtual ranks to which the forwarder has no link, and why
	in      input

	queue   frameQueue // control and eager frames: they overtake segments, but do not interrupt one
	bulk    []*peer    // peers with segments to send, in turn
	seg     segment    // the Data frame that is being written
	unsent  int        // frames in queue that keep the engine busy
	blocked bool       // the link took nothing more
	iov     [][]byte

	fresh  bool          // something came since the last tick
	heard  time.Duration // tick at which something had come last
	pinged time.Duration // tick at which an unanswered ping was sent; 0: none
	bye    byeState
}

type byeState int

const (
	running  byeState = iota
	byeSent           // we are through; ByeAck is still to come
	byeAcked          // nothing more may be read or written
)

// segment is one Data frame on its way into the link.
type segment struct {
	active bool
	peer   *peer
	req    *Request // nil: the request no longer cares
	offset int64    // in the message
	first  bool     // not a replay: the request waits for it to be written
	buf    [wire.HeaderLen + wire.DataLen]byte
	head   []byte // what is left of buf
	given  bool   // it goes through the rail's pipe
	data   []byte // what is left of the payload, in the user's buffer
}

const (
	batch       = 16 // frames in one vectored write
	longSegment = wire.LongSegment
	turnSize    = 1 << 20 // bytes written or read before the other direction, or another rail, has its turn
)

// attach gives the rail its link, which may be nil.
func (r *rail) attach(l transport.Link) {
	r.link = l
	r.lender, _ = l.(transport.Lender)
	r.placer, _ = l.(transport.Placer)
	r.most, r.crumb, r.packet = r.e.limits.Segment, 0, 0
	r.long = min(longSegment*r.most, wire.MaxPayload, r.e.limits.DataWindow/2)
	if r.peer != nil { // nobody stores them on the way, and nobody else's messages wait
		r.most = r.long
	}
	if p, ok := l.(transport.Packeted); ok && r.lender == nil {
		r.packet = p.Packet()
		r.most = fullPackets(r.most, r.packet)
		r.crumb = min(r.most/8, wire.MaxPayload-r.most)
	}
	r.piper, r.gives = l.(transport.Piper)
}

// A segment is longer than usual if it takes no more than longFor, as fast as its flow is, since a forwarder stores it whole and nothing overtakes it, and if
// it is no more than one of longShare parts of what is left, since nothing goes out of the forwarder before the first is there.
const (
	longFor   = 100 * time.Microsecond
	longShare = 16
)

// take is how many of the bytes that are left of a message go into the next segment to a peer.
func (r *rail) take(p *peer, left int64) int {
	n := r.most
	if r.long > n && r.packet > 0 && !r.tracked() {
		n = max(n, fullPackets(min(r.long, int(p.backlog/longShare), int(p.pace.Rate()*longFor.Seconds())), r.packet))
	}
	if left <= int64(n+r.crumb) {
		return int(left)
	}
	return n
}

// fullPackets is how long segments of about n bytes are that leave no short packet behind.
func fullPackets(n, packet int) int {
	const head = wire.HeaderLen + wire.DataLen
	if packet <= head || packet > n+head {
		return n
	}
	return (n+head)/packet*packet - head
}

func (r *rail) push(f *frame) {
	f.queued = true
	if !f.background {
		r.unsent++
	}
	r.queue.push(f)
}

// pending reports whether there is something to write.
func (r *rail) pending() bool {
	return r.up && (r.queue.head != nil || r.seg.active || len(r.bulk) > 0)
}

// write puts on the link what it takes, without blocking.
func (r *rail) write() (moved int, err error) {
	r.blocked = false
	full := false // no room for a large piece
	for turn := r.e.turn; moved < turn; {
		iov := r.iov[:0]
		if !r.seg.active && r.queue.head == nil {
			r.nextSegment()
		}
		whole := r.whole()
		if whole && !full && (r.queue.head == nil || r.queue.head.off == 0) {
			switch err := r.piece(); {
			case err == nil:
				n := len(r.seg.head) + len(r.seg.data)
				moved += n
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
		for f := r.queue.head; f != nil && len(iov) < batch; f = f.nextOut {
			iov = append(iov, f.buf[f.off:])
		}
		r.iov = iov
		if len(iov) == 0 {
			r.blocked = full
			return moved, nil
		}
		var n int
		if !whole && r.giving() {
			n, err = r.give()
		} else {
			n, err = r.link.TryWrite(iov...)
		}
		clear(iov)
		if errors.Is(err, transport.ErrAgain) {
			r.blocked = true
			return moved, nil
		}
		if err != nil {
			return moved, err
		}
		moved += n
		if whole {
			r.framesWrote(n)
		} else {
			r.wrote(n)
		}
	}
	return moved, nil
}

// whole reports whether the segment at hand goes out as one piece. While there is no room for it frames overtake it.
func (r *rail) whole() bool {
	s := &r.seg
	return s.active && r.lender != nil && len(s.head) == wire.HeaderLen+wire.DataLen && len(s.head)+len(s.data) <= r.lender.MaxPiece()
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
		r.segmentWritten()
	}
	r.framesWrote(n)
}

func (r *rail) framesWrote(n int) {
	for n > 0 {
		f := r.queue.head
		k := min(n, len(f.buf)-f.off)
		f.off += k
		n -= k
		if f.off < len(f.buf) {
			return
		}
		r.queue.pop()
		f.queued = false
		if !f.background {
			r.unsent--
		}
		if f.seq == 0 {
			r.e.freeFrame(f)
		}
	}
}

// nextSegment takes the next peer's turn, if one has bytes to send and this rail may carry them.
func (r *rail) nextSegment() {
	for len(r.bulk) > 0 {
		p := r.bulk[0]
		copy(r.bulk, r.bulk[1:])
		r.bulk = r.bulk[:len(r.bulk)-1]
		p.lanes[r.index].enrolled = false
		if !r.carries(p) {
			continue
		}
		q, what, first := r.e.nextPiece(r, p)
		if q == nil {
			continue // Credit, Landed or another request brings it back
		}
		h := wire.Header{Type: wire.TypeData, Epoch: p.lanes[r.index].out.Epoch(), Length: uint32(wire.DataLen + what.Bytes),
			Src: uint32(r.e.world.Rank), Dst: uint32(p.rank), Ack: p.order.Ack()}
		d := wire.Data{Receiver: q.remote, Offset: uint64(what.Offset)}
		s := &r.seg
		s.active, s.peer, s.req, s.offset, s.first = true, p, q, what.Offset, first
		s.head = d.Append(h.Append(s.buf[:0]))
		s.data = q.buf[what.Offset : what.Offset+int64(what.Bytes)]
		return
	}
}

func (r *rail) segmentWritten() {
	p := r.seg.peer
	r.dropSegment()
	r.enroll(p)
}

// dropSegment forgets the segment that is, or need not be, written.
func (r *rail) dropSegment() {
	s := &r.seg
	if q := s.req; q != nil && s.first {
		q.writing--
		r.e.checkSent(q)
	}
	s.active, s.given, s.peer, s.req, s.data = false, false, nil, nil, nil
}

// enroll gives a peer a place in the bulk ring if it has something to send; credit is seen to at its turn.
func (r *rail) enroll(p *peer) {
	l := &p.lanes[r.index]
	if (p.bulkHead != nil || len(p.replay) > 0) && !l.enrolled && r.carries(p) && !(r.seg.active && r.seg.peer == p) {
		l.enrolled = true
		r.bulk = append(r.bulk, p)
	}
}

// step reads and writes once.
func (r *rail) step() (moved int) {
	if !r.up {
		return 0
	}
	n, err := r.read()
	if err == nil && r.pending() {
		var m int
		m, err = r.write()
		n += m
	}
	if err != nil && r.bye != byeAcked && r.e.err == nil {
		r.e.lost(r, err)
	}
	return n
}
