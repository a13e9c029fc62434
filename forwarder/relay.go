package forwarder

import (
	"fmt"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/wire"
)

// run is a sequence of frames in a read buffer that go from one rank to another: one write takes them all.
type run struct {
	c        *conn
	m        *member
	src, dst uint32
	from, to int // bytes in the read buffer; empty when equal
	count    tally
}

func (r *run) add(p []byte, h *wire.Header, off, end int) {
	if r.m == nil {
		r.m = r.c.member.Load()
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
	r.c.relay(r.m, r.src, r.dst, b, nil, &r.count)
	r.count = tally{}
}

// relay sends whole frames from src for dst on their way. kept reports that owner now belongs to a queue.
func (c *conn) relay(m *member, src, dst uint32, b []byte, owner *buffer, count *tally) (kept bool) {
	m.job.traffic(m.job.clusterOf[src], int(dst)).add(count)
	if s := m.job.classic; s != nil {
		s.relay(c, m, b)
		return false
	}
	d := m.job.table[dst].Load()
	if d == nil {
		return false // has said Bye, or is dead and the job ends: late credit and acknowledgements
	}
	kept, err := d.out.write(c.loop.one, src, b, owner)
	if err != nil {
		c.bad(fmt.Sprintf("from rank %d for rank %d: %v", src, dst, err))
	}
	return kept
}

// relayOne handles the frame that fills buf and reports whether buf is kept.
func (c *conn) relayOne(buf *buffer) (kept bool) {
	h, err := wire.ParseHeader(buf.b)
	if err != nil {
		c.bad(err.Error())
		return false
	}
	if !h.Type.BetweenRanks() {
		c.control(&h, buf.b[wire.HeaderLen:])
		return false
	}
	var count tally
	count.add(&h)
	return c.relay(c.member.Load(), h.Src, h.Dst, buf.b, buf, &count)
}

// control handles a frame for the forwarder itself. allowed has let it through.
func (c *conn) control(h *wire.Header, body []byte) {
	m := c.member.Load()
	if m == nil {
		c.f.join(c, *h, body)
		return
	}
	if m.bridge != nil && h.Type != wire.TypePing {
		c.bridgeControl(m.bridge, h, body)
		return
	}
	switch h.Type {
	case wire.TypePing:
		if _, err := c.out.write(c.loop.one, wire.Nobody, frame(wire.TypePong), nil); err != nil {
			c.bad("pings, but does not read the answers")
		}
	case wire.TypePong:
	case wire.TypeBye:
		c.depart(m)
	case wire.TypeAbort:
		a, err := wire.ParseAbort(body)
		if err != nil {
			c.bad(err.Error())
			return
		}
		c.log.Warn("rank aborts the job", zap.Object("peer", c), zap.Int32("code", a.Code), zap.String("reason", a.Reason))
		c.f.abort(m.job, a.Code, m.rank, m.abortedBy(&a))
	}
}

// depart answers Bye: what is queued for the rank goes out first, then ByeAck.
func (c *conn) depart(m *member) {
	c.departed = true
	m.job.table[m.rank].Store(nil)
	c.out.lastly(c.loop.one, frame(wire.TypeByeAck))
	c.settle()
	if m.job.hops != nil {
		c.f.departed(m.job)
	}
}
