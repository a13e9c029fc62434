package relay

import (
	"fmt"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
)

// forwardBlock relays the frame that a link which supports blocks has received into block b,
// without a copy.
func (c *Conn) forwardBlock(b transport.Block) {
	if !c.heeded() {
		b.Release()
		return
	}
	p := c.shared.zerocopy()
	p.block = b
	n := len(b.Bytes())
	copy(p.head[:], b.Bytes())
	r := c.route.Load()
	h, err := wire.ParseHeader(p.head[:])
	if err == nil && (h.Type != wire.TypeData || wire.HeaderLen+int(h.Length) != n) {
		err = fmt.Errorf("%v frame of %d bytes in a block with %d", h.Type, wire.HeaderLen+int(h.Length), n)
	}
	if err == nil {
		err = c.allowed(&h, r)
	}
	if err != nil {
		p.end()
		c.Bad(err.Error())
		return
	}
	if r == nil {
		r = c.route.Load()
	}
	p.bytes = h.Rest()
	c.forward(p, &h, r)
}

// forward relays the frame p, which is in a block or a pipe, to the rank in its header h. The
// header has been checked.
func (c *Conn) forward(p *zerocopy, h *wire.Header, r *Route) {
	d := r.Table[h.Dst].Load()
	if d != nil {
		if t := d.trunk.Load(); t != nil {
			d = t.pick()
		}
	}
	if d == nil || r.Classic != nil || !p.fits(d) {
		buf, err := p.copy(&c.shared.pool)
		if err != nil {
			c.Bad(err.Error())
			return
		}
		if !c.relayOne(buf) {
			c.shared.pool.put(buf)
		}
		return
	}
	if p.pipe != nil {
		c.worker.Loop.Moved(p.bytes)
	}
	var count tally
	count.add(h)
	p.count = r.Counts.between(h.Src, h.Dst)
	p.count.add(&count)
	if err := d.out.forward(&c.memory, h.Src, p); err != nil {
		c.Bad(fmt.Sprintf("from rank %d for rank %d: %v", h.Src, h.Dst, err))
	}
}
