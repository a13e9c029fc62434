package relay

import (
	"fmt"

	"github.com/leidenzipper/zipper/internal/wire"
)

// Several connections may lead to the same forwarder: they form a trunk, for a path so long that
// one connection does not fill it. The tables of routes have the first, which carries small frames
// and the forwarders' own, so that these never wait behind large ones and keep their order. Frames
// with much payload (bulk) go over the others: over the first of them, whose window is open from
// the last burst, while less than a burst is queued for it; otherwise over the one with the least
// bytes queued.
//
// A frame may therefore be overtaken by any frame of another class, and a bulk frame by any other.
// Ranks that are several hops apart are prepared for that: sequenced frames are put in order by
// their numbers, a segment has its offset, and credit and acknowledgements are cumulative. Only
// ranks can retransmit the frames that a lost connection takes with it.

// trunk has the connections over which bulk frames go in place of the one that the route names.
type trunk struct {
	conns []*Conn // the connections; the first is preferred
	burst int64   // the number of bytes queued for the first connection from which the others are used
}

// Spread sends bulk for this connection over others: over the first of them while less than burst
// bytes are queued for it. Bulk goes over this connection again if over is empty. Spread may be
// called on any thread.
func (c *Conn) Spread(over []*Conn, burst int) {
	if len(over) == 0 {
		c.trunk.Store(nil)
		return
	}
	c.trunk.Store(&trunk{over, int64(burst)})
}

// pick returns the connection over which the next bulk frame (wire.Header.Bulk) is sent.
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

// spread sends the frames in b from rank src to rank dst: bulk frames over the connections that
// trunk t picks, all others over d, the connection that the route names. kept reports that owner,
// which holds b, now belongs to a queue.
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
