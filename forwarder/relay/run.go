package relay

import (
	"fmt"

	"github.com/leidenzipper/zipper/internal/wire"
)

// run is a sequence of frames in a read buffer that go from one rank to another: one write takes
// them all.
type run struct {
	c        *Conn
	route    *Route
	src, dst uint32
	from, to int // bytes in the read buffer; empty when equal
	count    tally
}

func (r *run) add(p []byte, h *wire.Header, off, end int) {
	if r.route == nil {
		r.route = r.c.route.Load()
	}
	if r.from != r.to && (r.dst != h.Dst || r.src != h.Src) {
		r.flush(p)
	}
	if r.from == r.to {
		r.from, r.to, r.src, r.dst = off, off, h.Src, h.Dst
	}
	r.to = end
	r.count.add(h)
}

func (r *run) flush(p []byte) {
	if r.from == r.to {
		return
	}
	b := p[r.from:r.to]
	r.from = r.to
	r.c.relay(r.route, r.src, r.dst, b, nil, &r.count)
	r.count = tally{}
}

// relay sends whole frames from src for dst on their way. kept reports that owner now belongs to a
// queue.
func (c *Conn) relay(r *Route, src, dst uint32, b []byte, owner *buffer, count *tally) (kept bool) {
	r.Counts.between(src, dst).add(count)
	if r.Classic != nil {
		r.Classic.relay(c, r, b)
		return false
	}
	d := r.Table[dst].Load()
	if d == nil {
		return false // has said Bye, or is dead and the job ends: late credit and acknowledgements
	}
	if t := d.trunk.Load(); t != nil {
		return c.spread(t, d, src, dst, b, owner)
	}
	kept, err := d.out.write(c.worker.one, &c.memory, src, b, owner)
	if err != nil {
		c.Bad(fmt.Sprintf("from rank %d for rank %d: %v", src, dst, err))
	}
	return kept
}

// relayOne handles the frame that fills buf and reports whether buf is kept.
func (c *Conn) relayOne(buf *buffer) (kept bool) {
	h := wire.ParsedHeader(buf.b)
	if !h.Type.BetweenRanks() {
		c.own(&h, buf.b, c.input.read-uint64(len(buf.b)))
		return false
	}
	var count tally
	count.add(&h)
	return c.relay(c.route.Load(), h.Src, h.Dst, buf.b, buf, &count)
}

// own handles a frame for the forwarder itself, which allowed has let through. at is how many bytes
// came over the link before it.
func (c *Conn) own(h *wire.Header, whole []byte, at uint64) {
	body, err := c.opened(h, whole)
	if err != nil {
		c.Bad(err.Error())
		return
	}
	if c.route.Load() != nil {
		switch h.Type {
		case wire.TypePing:
			if c.Send(frame(wire.TypePong)) != nil {
				c.Bad("pings, but does not read the answers")
				return
			}
			sendCount(c) // the other end may be too idle to ask for the next
			return
		case wire.TypePong:
			return
		case wire.TypeCount:
			if err := counts(c, body, at); err != nil {
				c.Bad(err.Error())
			}
			return
		}
	}
	c.ctl.Frame(*h, body)
}
