package relay

import (
	"fmt"

	"github.com/leidenzipper/zipper/internal/wire"
)

// run is a sequence of frames in a read buffer from one rank to another: one write takes all of
// them.
type run struct {
	c        *Conn
	route    *Route
	src, dst uint32
	from, to int // the range of the run's frames in the read buffer, which one write relays; empty if equal
	count    tally
}

// add adds the frame at p[off:end], whose header is h, to the run. If the frame has another source
// or destination, add relays the present run first.
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

// flush relays the frames of the run, which are in p, to their destination. The run is empty then.
func (r *run) flush(p []byte) {
	if r.from == r.to {
		return
	}
	b := p[r.from:r.to]
	r.from = r.to
	r.c.relay(r.route, r.src, r.dst, b, nil, &r.count)
	r.count = tally{}
}

// relay forwards the whole frames in b from rank src to rank dst, and adds their counts. owner, if
// not nil, holds b; kept reports that owner now belongs to a queue.
func (c *Conn) relay(r *Route, src, dst uint32, b []byte, owner *buffer, count *tally) (kept bool) {
	r.Counts.between(src, dst).add(count)
	if r.Classic != nil {
		r.Classic.relay(c, r, b)
		return false
	}
	d := r.Table[dst].Load()
	if d == nil {
		// departed, or dead while the job ends: late credit and acknowledgements are dropped
		return false
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

// relayOne handles the frame that fills buf: it relays the frame to a rank, or handles a frame for
// the forwarder itself. kept reports that a queue keeps buf.
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

// own handles a frame for the forwarder itself that allowed has accepted. at is the number of bytes
// of the link before it.
func (c *Conn) own(h *wire.Header, whole []byte, at uint64) {
	body, err := c.opened(h, whole)
	if err != nil {
		c.Bad(err.Error())
		return
	}
	if c.route.Load() != nil {
		switch h.Type {
		case wire.TypePing:
			if c.send(&c.memory, frame(wire.TypePong)) != nil {
				c.Bad("pings, but does not read the answers")
				return
			}
			sendCount(c) // the peer may be too idle to request the next Count
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
