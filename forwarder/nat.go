package forwarder

import (
	"io"
	"net/netip"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder/nat"
	"github.com/leidenzipper/zipper/internal/wire"
)

// NAT lets the kernel forward connections: a *nat.Table. Ranks of different clusters then have
// direct links, each of which begins at a port of this host. Frames are relayed here only while
// such a link is missing.
type NAT interface {
	// OpenWays opens ways until the closer is closed, and returns where each begins. Both calls may
	// take as long as the kernel does: neither is made on an event loop, nor with a lock held.
	OpenWays(ways []nat.Way) ([]netip.AddrPort, io.Closer, error)
}

// inside returns the address at which a rank takes connections, if it can be trusted (nat.Inside),
// and this host's address on the rank's connection. Without such an address the kernel forwards no
// connections to the rank.
func (p *peer) inside(j *wire.Join) (at netip.AddrPort, here netip.Addr) {
	if p.f.cfg.NAT == nil {
		return at, here
	}
	at, here, err := nat.Inside(j.Inside, p.conn.Link())
	if err != nil {
		p.f.log.Warn("no connections are passed on to a rank", zap.String("job", j.Job),
			zap.String("cluster", j.Cluster), zap.Uint32("rank", j.Rank), zap.String("inside", j.Inside),
			zap.String("reason", err.Error()))
	}
	return at, here
}
