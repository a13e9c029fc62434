package relay

import (
	"fmt"

	"github.com/leidenzipper/zipper/internal/wire"
)

// Several connections may lead to the same forwarder: a trunk, for a path so long that one
// connection does not fill it. The routes' tables have the first, which carries small frames and
// the forwarders' own, so that these never wait behind large ones and keep their order. Frames of
// much payload (bulk) go over the others: over the first of them, whose window is open from the
// last burst, as long as less than a burst waits for it; else over the one for which least does.
//
// So a frame may be overtaken by any of another class, and a large one by any other. Ranks that are
// several hops apart are ready for that: what is sequenced is put in order by its number, a segment
// says its place, and credit and acknowledgements are cumulative. What a connection that is lost
// takes with it, only ranks can send again.

// trunk is what carries bulk in place of the connection that has it.
type trunk struct {
	conns []*Conn
	burst int64 // may wait for the first before the others are used
}

// Spread has bulk for this connection go over others, over the first of them as long as less than a
// burst of bytes waits for it; none: over itself again. Any thread.
func (c *Conn) Spread(over []*Conn, burst int) {
	if len(over) == 0 {
		c.trunk.Store(nil)
		return
	}
	c.trunk.Store(&trunk{over, int64(burst)})
}

// pick chooses the connection for a frame of bulk.
func (t *trunk) pick() *Conn {
	best := t.conns[0]
	least := best.out.depth.Load()
	if least < t.burst {
		return best
	}
	for _, c := range t.conns[1:] {
		if d := c.out.depth.Load(); d < least {
			best, least = c, d
		}
	}
	return best
}

// spread is relay for a destination behind a trunk.
func (c *Conn) spread(t *trunk, d *Conn, src, dst uint32, b []byte, owner *buffer) (kept bool) {
	for len(b) > 0 {
		n, to := 0, d
		for n < len(b) {
			h := wire.ParsedHeader(b[n:])
			if h.Bulk() {
				if n == 0 {
					n, to = wire.HeaderLen+int(h.Length), t.pick()
				}
				break
			}
			n += wire.HeaderLen + int(h.Length)
		}
		taken, err := to.out.write(c.worker.one, &c.memory, src, b[:n], owner)
		kept = kept || taken
		if err != nil {
			c.Bad(fmt.Sprintf("from rank %d for rank %d: %v", src, dst, err))
			return kept
		}
		b = b[n:]
	}
	return kept
}
