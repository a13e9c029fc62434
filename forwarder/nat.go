package forwarder

import (
	"net/netip"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder/nat"
	"github.com/leidenzipper/zipper/internal/wire"
)

// ends returns the address at which a rank takes connections, if it can be trusted (nat.Inside),
// and the addresses of this host and of the other one on the rank's connection. Without the first
// the kernel forwards no connections to the rank. The second is invalid if no ways can begin there.
func (p *peer) ends(j *wire.Join) (at netip.AddrPort, here, there netip.Addr) {
	if p.f.cfg.NAT == nil {
		return at, here, there
	}
	at, here, there, err := nat.Inside(j.Inside, p.conn.Link())
	if err != nil {
		p.f.log.Info("no connections are passed on to a rank", zap.String("job", j.Job),
			zap.String("cluster", j.Cluster), zap.Uint32("rank", j.Rank), zap.String("inside", j.Inside),
			zap.String("reason", err.Error()))
	}
	if !p.f.cfg.NAT.Forwards(here) {
		here = netip.Addr{}
	}
	return at, here, there
}
