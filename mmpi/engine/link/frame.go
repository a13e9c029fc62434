package link

import (
	"fmt"
	"time"

	"github.com/leidenzipper/zipper/internal/list"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Frame is an outgoing frame other than Data, in memory of its own. Sequenced ones are retained
// until acknowledged.
type Frame struct {
	Buf []byte // header, body, payload; pooled

	sealed     []byte            // at level sealed, what is being written in place of Buf; pooled
	off        int               // bytes written
	seq        uint64            // 0: not sequenced, or no longer retained
	peer       *Peer             // nil: for the forwarder
	rail       *rail             // that it was given to last; nil: none reached the peer
	replayed   bool              // given to a rail more than once
	queued     bool              // in the rail's queue
	background bool              // does not keep the engine busy: the program does not wait for it
	out        list.Node[*Frame] // in a rail's queue
	kept       list.Node[*Frame] // among a peer's retained frames
}

// NewFrame starts a frame to the peer: the header is written but for its sums, with room for body
// and payload, which the caller appends to Buf. Then Send has to be called with it, before another
// NewFrame to the peer.
func (p *Peer) NewFrame(t wire.Type, flags uint8, body, payload int) *Frame {
	return p.newFrame(t, flags, 1, body, payload)
}

func (p *Peer) newFrame(t wire.Type, flags uint8, epoch uint16, body, payload int) *Frame {
	s := p.set
	f := s.takeFrame(wire.HeaderLen + body + payload)
	h := wire.Header{Type: t, Flags: flags, Epoch: epoch, Length: uint32(body + payload),
		Src: uint32(s.world.Rank), Dst: uint32(p.Rank), Ack: p.order.Ack()}
	if t.Sequenced() {
		h.Seq = p.numbers.Next()
	}
	f.peer, f.seq, f.background = p, h.Seq, !t.Sequenced()
	f.Buf = h.AppendUnsummed(f.Buf)
	return f
}

// Send gives a frame to a rail that reaches the peer; Set.Flush puts it on the link. If there is
// none now, sequenced frames wait for one; what others say is said again then.
func (p *Peer) Send(f *Frame) {
	f.sum(p.set)
	if f.seq != 0 {
		p.retained.Push(&f.kept)
		p.set.unacked++
		p.kept += len(f.Buf)
	}
	r := p.rail()
	switch {
	case r != nil:
		f.rail = r
		r.push(f)
	case f.seq == 0:
		p.set.freeFrame(f)
	}
}

// sum puts the sums into a frame that is whole.
func (f *Frame) sum(s *Set) {
	if s.checked {
		wire.SumFrame(f.Buf)
	} else {
		wire.SumHeader(f.Buf)
	}
}

// newControl makes a frame for the other end of a link.
func (s *Set) newControl(t wire.Type, body wire.Body) *Frame {
	b := wire.AppendFrame(nil, wire.Control(t), body)
	f := s.takeFrame(len(b))
	f.background = true
	f.Buf = append(f.Buf, b...)
	return f
}

func (s *Set) takeFrame(n int) *Frame {
	var f *Frame
	if k := len(s.frames); k > 0 {
		f = s.frames[k-1]
		s.frames = s.frames[:k-1]
	} else {
		f = new(Frame)
	}
	f.out.Of, f.kept.Of = f, f
	f.Buf = s.Pool.Get(n)[:0]
	return f
}

// line is what goes on the rail's link for a frame that is queued there: at level sealed a
// transmission of its own, which is kept until it is written.
func (r *rail) line(f *Frame) ([]byte, error) {
	s := r.set
	if s.seal == nil {
		return f.Buf, nil
	}
	if f.sealed != nil {
		return f.sealed, nil
	}
	b := s.Pool.Get(len(f.Buf) + wire.SealLen)[:0]
	p := f.peer
	if p == nil {
		p = r.peer // a direct link has the keys of the two
	}
	var err error
	if p == nil {
		b, err = r.seal.Seal(b, f.Buf)
	} else if err = p.makePair(); err == nil {
		b, err = p.pair.Seal(b, f.Buf)
	}
	if err != nil {
		return nil, keyless{err}
	}
	f.sealed = b
	return b, nil
}

// lineLen is how long line's is.
func (f *Frame) lineLen() int {
	if f.sealed != nil {
		return len(f.sealed)
	}
	return len(f.Buf)
}

// unseal forgets a transmission that is written, or will not be.
func (f *Frame) unseal(s *Set) {
	if f.sealed != nil {
		s.Pool.Put(f.sealed)
		f.sealed = nil
	}
}

// keyless says that there is no way to seal for another process, or open what is said to be its:
// the job ends.
type keyless struct{ error }

// makePair has the keys of this process and the peer made, if they are not yet.
func (p *Peer) makePair() (err error) {
	if p.pair == nil {
		p.pair, err = p.set.seal.Pair(p.Rank, p.set.slots)
	}
	return err
}

// seal makes the segment at hand one that is sealed.
func (s *segment) seal(r *rail, h *wire.Header, d *wire.Data, data []byte) error {
	if err := s.peer.makePair(); err != nil {
		return keyless{err}
	}
	if n := wire.HeaderLen + int(h.Length) + wire.SealLen; cap(r.room) < n {
		r.room = make([]byte, n)
	}
	var err error
	if s.head, err = s.peer.pair.SealData(r.room[:0], *h, d, data); err != nil {
		return keyless{err}
	}
	s.data = nil
	return nil
}

func (s *Set) freeFrame(f *Frame) {
	f.unseal(s)
	s.Pool.Put(f.Buf)
	*f = Frame{}
	s.frames = append(s.frames, f)
}

// Each end of a link tells the other now and then how many bytes it has sent (frame Count). So what
// was left out on the way is noticed even if nothing follows it. The link is lost then, as by any
// other damage.

// counter is a rail's part of that, both ways, and of the order of RailStates; all of it is about
// the link at hand.
type counter struct {
	sent    uint64 // bytes that the link took
	counts  uint64 // Counts of these
	counted uint64 // sent, after the last of them
	at      time.Duration
	due     bool // the next frame is a Count
	came    wire.Counted
	states  wire.Ordered // RailStates that came
}

// tick sees that the other end is told.
func (c *counter) tick(now, every time.Duration) {
	if c.sent > c.counted && now-c.at >= every {
		c.due = true
	}
}

// sayCount queues a Count, if one is due and no frame is half written: it is the next to go.
func sayCount(r *rail) {
	c := &r.count
	if !c.due || r.link == nil || r.seg.active || !r.queue.Empty() && r.queue.First().Of.off > 0 {
		return
	}
	c.due, c.at = false, r.set.Now()
	c.counts++
	f := r.set.newControl(wire.TypeCount, &wire.Count{Number: c.counts, Bytes: c.sent})
	c.counted = c.sent + uint64(wire.HeaderLen+wire.CountLen)
	if r.set.seal != nil {
		c.counted += wire.SealLen
	}
	f.queued = true
	r.queue.PushFirst(&f.out)
}

// take checks a Count that came when at bytes had come.
func (c *counter) take(body []byte, at uint64) error {
	x, err := wire.ParseCount(body)
	if err == nil {
		err = c.came.Take(x, at)
	}
	if err != nil {
		return breach{fmt.Errorf("not what was sent has come: %w", err)}
	}
	return nil
}
