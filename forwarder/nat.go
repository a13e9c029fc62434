package forwarder

import (
	"fmt"
	"io"
	"net/netip"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder/nat"
	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/wire"
)

// NAT has the kernel pass connections on: a *nat.Table. Ranks of different clusters then have
// direct links, each of which begins at a port of this host. Frames are relayed here only while
// such a link is not there.
type NAT interface {
	// OpenWays opens ways until the closer is closed, and returns where each begins. Both calls may
	// take as long as the kernel does: neither is made on an event loop, nor with a lock held.
	OpenWays(ways []nat.Way) ([]netip.AddrPort, io.Closer, error)
}

// inside is where a rank takes connections, if that may be believed: nobody opens a way to another
// host than the one that the rank is on, nor to a system's service. A rank elsewhere only takes
// part in the job through this forwarder.
func (p *peer) inside(j *wire.Join) netip.AddrPort {
	if p.f.cfg.NAT == nil || j.Inside == "" {
		return netip.AddrPort{}
	}
	a, err := netip.ParseAddrPort(j.Inside)
	home, ok := p.conn.Link().(transport.Homed)
	why := ""
	switch {
	case err != nil:
		why = err.Error()
	case !ok:
		why = "the link is not one over TCP"
	case !a.Addr().Is4():
		why = "only IPv4 is passed on"
	case a.Port() < lowestPort:
		why = fmt.Sprintf("ports below %d are not for ranks", lowestPort)
	default:
		if _, there := home.Home(); there != a.Addr() {
			why = fmt.Sprintf("its link comes from %v", there)
		}
	}
	if why != "" {
		p.f.log.Warn("no connections are passed on to a rank", zap.String("job", j.Job),
			zap.String("cluster", j.Cluster), zap.Uint32("rank", j.Rank), zap.String("inside",
				j.Inside), zap.String("reason", why))
		return netip.AddrPort{}
	}
	return a
}

// ways are what the kernel is to open for a job that is complete, and the doors in the layout that
// go with them: for each rank that ranks of other clusters dial, one on each of their networks.
// None: all goes through this forwarder. With f.mu.
func (f *Forwarder) ways(b *job) (ways []nat.Way, doors []wire.Door) {
	if f.cfg.NAT == nil || b.hops != nil || f.cfg.Protocol == Classic || b.gather.Rails() > 1 {
		return nil, nil
	}
	pairs, peers := 0, 0
	for _, c := range b.clusters {
		others := len(b.hosts) - int(c.Size)
		pairs += int(c.Size) * others
		peers = max(peers, others)
	}
	if pairs /= 2; pairs > maxPairs || peers > maxPeers {
		f.log.Info("too many ranks for connections of their own", zap.String("job", b.id),
			zap.Int("pairs", pairs), zap.Int("at_most", maxPairs), zap.Int("peers",
				peers), zap.Int("peers_at_most", maxPeers))
		return nil, nil
	}
	here := make([]netip.Addr, len(b.clusters)) // on each cluster's network
	ranks := make([]*waiting, len(b.hosts))
	for p, w := range b.waiting {
		ranks[w.rank] = w
		home, ok := p.conn.Link().(transport.Homed)
		if !ok {
			continue
		}
		at := &here[b.clusterOf[w.rank]]
		if a, _ := home.Home(); a.Is4() && (!at.IsValid() || better(a, *at)) {
			*at = a
		}
	}
	type door struct{ rank, cluster int }
	own := map[door]bool{}   // without our help
	home := map[[2]int]int{} // ranks of a cluster that have one for another
	for _, d := range b.layout.Doors {
		own[door{int(d.Rank), int(d.Network)}] = true
		home[[2]int{b.clusterOf[d.Rank], int(d.Network)}]++
	}
	for r, w := range ranks {
		for c := b.clusterOf[r] + 1; c < len(b.clusters); c++ { // of each pair the higher rank dials
			dual := home[[2]int{c, b.clusterOf[r]}] == int(b.clusters[c].Size) // all of them are dialled by us instead
			// What begins on the loopback interface stays there, and nothing else may lead to it.
			possible := w.inside.IsValid() && here[c].IsValid() && here[c].IsLoopback() == w.inside.Addr().IsLoopback()
			if possible && !own[door{r, c}] && !dual {
				ways = append(ways, nat.Way{At: here[c], To: w.inside})
				doors = append(doors, wire.Door{Rank: uint32(r), Instance: w.instance,
					Port: wire.Port{Network: uint16(c)}})
			}
		}
	}
	return ways, doors
}

// better says which of two addresses of this host on a network ways begin at: the first that is not
// loopback.
func better(a, b netip.Addr) bool {
	if a.IsLoopback() != b.IsLoopback() {
		return b.IsLoopback()
	}
	return a.Less(b)
}

// opening is what the kernel is asked to open for a job.
type opening struct {
	doors  []wire.Door      // without their addresses
	at     []netip.AddrPort // those
	closer io.Closer
	err    error
	timer  timer // the job starts without
}

// addDoors puts what the kernel has opened into the layout, if there is room. With f.mu.
func (f *Forwarder) addDoors(b *job, o *opening) {
	for i := range o.doors {
		o.doors[i].Address = o.at[i].String()
	}
	with := b.layout
	with.Doors = append(with.Doors[:len(with.Doors):len(with.Doors)], o.doors...)
	if len(with.Append(nil)) > wire.MaxLength {
		f.log.Info("no room in the layout for connections of their own", zap.String("job", b.id))
		f.aside(func() { b.closeWays(o.closer) }, nil)
		return
	}
	b.layout, b.ways, b.doors = with, o.closer, len(o.doors)
	f.log.Info("the kernel passes connections on", zap.String("job", b.id), zap.Int("doors", len(o.doors)))
}

// closeWays has the kernel take back what it has opened for a job. It may block.
func (j *job) closeWays(ways io.Closer) {
	if err := ways.Close(); err != nil {
		j.log.Warn("what the kernel passed on for a job is not all taken back; it ends with this forwarder",
			zap.String("job", j.id), zap.Error(err))
	}
}
