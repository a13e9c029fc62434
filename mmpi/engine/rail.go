package engine

import (
	"context"
	"errors"
	"fmt"
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
	most    int              // bytes of payload in a segment,
	crumb   int              // and so few may be left for the last one to take too
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
	data   []byte // what is left of the payload, in the user's buffer
}

const (
	batch    = 16      // frames in one vectored write
	turnSize = 1 << 20 // bytes written or read before the other direction, or another rail, has its turn
)

// attach gives the rail its link, which may be nil.
func (r *rail) attach(l transport.Link) {
	r.link = l
	r.lender, _ = l.(transport.Lender)
	r.placer, _ = l.(transport.Placer)
	r.most, r.crumb = r.e.limits.Segment, 0
	if p, ok := l.(transport.Packeted); ok && r.lender == nil {
		r.most = fullPackets(r.most, p.Packet())
		r.crumb = min(r.most/8, wire.MaxPayload-r.most)
	}
}

// take is how many of the bytes that are left of a message go into the next segment.
func (r *rail) take(left int64) int {
	if left <= int64(r.most+r.crumb) {
		return int(left)
	}
	return r.most
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
		n, err := r.link.TryWrite(iov...)
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
	s.active, s.peer, s.req, s.data = false, nil, nil, nil
}

// enroll gives a peer a place in the bulk ring if it has something to send; credit is seen to at its turn.
func (r *rail) enroll(p *peer) {
	l := &p.lanes[r.index]
	if (p.bulkHead != nil || len(p.replay) > 0) && !l.enrolled && r.carries(p) && !(r.seg.active && r.seg.peer == p) {
		l.enrolled = true
		r.bulk = append(r.bulk, p)
	}
}

// input is what has been read and not handled.
type input struct {
	buf  []byte
	r, w int // unread bytes are buf[r:w]

	busy bool    // a payload is coming
	dst  []byte  // its destination, the part not filled yet
	skip int     // bytes after that to throw away
	land landing // what to do when it is there
	bulk bool    // segments are coming: read headers by themselves, so that payload is never copied
}

const inputSize = 64 << 10

// read handles what the link has, without blocking, and returns how many bytes it took.
func (r *rail) read() (moved int, err error) {
	in := &r.in
	dry := false // the last read took all there was
	fill := func(p []byte) (int, error) {
		n, err := r.link.TryRead(p)
		switch {
		case errors.Is(err, transport.ErrAgain):
			dry = true
			return 0, nil
		case err != nil:
			return 0, err
		}
		dry = n < len(p)
		r.fresh = true
		moved += n
		return n, nil
	}
	for r.e.err == nil {
		if in.busy {
			if in.r < in.w {
				k := copy(in.dst, in.buf[in.r:in.w])
				in.dst = in.dst[k:]
				in.r += k
				k = min(in.skip, in.w-in.r)
				in.skip -= k
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
				in.busy, in.dst = false, nil
				land := in.land
				in.land = landing{}
				if err := r.e.landed(land); err != nil {
					return moved, breach{err}
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
		if dry || moved > turnSize || r.bye == byeAcked {
			return moved, nil
		}
		if in.r > 0 {
			copy(in.buf, in.buf[in.r:in.w])
			in.r, in.w = 0, in.w-in.r
		}
		room := in.buf[in.w:]
		if want := wire.HeaderLen + wire.DataLen; in.bulk && in.w < want {
			room = in.buf[in.w:want]
		}
		if n, err = fill(room); err != nil {
			return moved, err
		}
		in.w += n
	}
	return moved, nil
}

// frame handles the next frame but for its payload, if its head is there, and returns the bytes used.
func (r *rail) frame() (int, error) {
	in := &r.in
	b := in.buf[in.r:in.w]
	if len(b) < wire.HeaderLen {
		return 0, nil
	}
	h, err := wire.ParseHeader(b)
	if err != nil {
		return 0, breach{err}
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
	if !h.Type.BetweenRanks() {
		return head, r.control(h, body)
	}
	dst, land, err := r.e.begin(r, h, body, payload)
	if err != nil {
		return 0, breach{fmt.Errorf("%v frame from rank %d: %w", h.Type, h.Src, err)}
	}
	if payload > 0 || land.some() {
		in.busy, in.dst, in.skip, in.land = true, dst, payload-len(dst), land
	}
	return head, nil
}

// control handles a frame of the forwarder.
func (r *rail) control(h wire.Header, body []byte) error {
	if r.peer != nil && h.Type == wire.TypeBye { // the process at the other end is through, and we with it
		r.leaving = true
		r.push(r.e.newControl(wire.TypeByeAck, nil))
		return nil
	}
	switch h.Type {
	case wire.TypePing:
		r.push(r.e.newControl(wire.TypePong, nil))
	case wire.TypePong:
	case wire.TypeByeAck:
		if r.bye != byeSent {
			return breach{errors.New("the forwarder said good-bye unasked")}
		}
		r.bye = byeAcked
	case wire.TypeRailState:
		s, err := wire.ParseRailState(body)
		if err != nil {
			return breach{err}
		}
		return r.e.railState(r, s)
	case wire.TypeBye: // the forwarder shuts down: without another one the job is lost
		return errors.New("the forwarder is shutting down")
	case wire.TypeAbort:
		a, err := wire.ParseAbort(body)
		if err != nil {
			return breach{err}
		}
		r.e.giveWay(int(a.Rank))
		r.e.fatal(ErrAborted, int(a.Code), abortReason(a))
	default:
		return breach{fmt.Errorf("unexpected %v frame", h.Type)}
	}
	return nil
}

// giveWay lets the cluster's own launcher end this process when the cause is a rank of the same cluster.
func (e *Engine) giveWay(cause int) {
	if cause != e.world.Rank && e.sameCluster(cause) {
		time.Sleep(e.limits.Grace)
	}
}

func abortReason(a wire.Abort) string {
	if a.Rank == wire.Nobody {
		return fmt.Sprintf("job ended by the forwarder: %s", a.Reason)
	}
	return fmt.Sprintf("job ended by rank %d (exit status %d): %s", a.Rank, a.Code, a.Reason)
}

// breach is a fault of what came over a link rather than of the link.
type breach struct{ error }

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
