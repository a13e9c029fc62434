package job

import (
	"net/netip"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/internal/wire"
)

// ways are the connections between ranks that the kernel forwards, or is asked to forward. Ranks of
// different clusters then have direct links, each of which begins at a port of this host. The
// forwarder relays frames only while such a link is not there.
type ways struct {
	*core
	// asked is the number of OpenWays requests to the kernel so far, which is the number N of the
	// last one.
	asked int
	// doors has the ports of the last OpenWays, without addresses; nil: no answer to it is awaited.
	doors []wire.Door
	open  int // open is the number of ports of this host whose connections the kernel forwards for the job.
}

// plan returns the ways that the kernel is to open for a complete job, and their doors in the
// layout: for each rank that ranks of other clusters dial, one on each of their networks. Ranks
// without such a door, or one of their own, are reached through this forwarder only.
func (w *ways) plan(g *gathering, r *ranks) (ways []Way, doors []wire.Door) {
	if !w.cfg.Ways || r.links.several() || w.cfg.Classic || w.gather.Rails() > 1 {
		return nil, nil
	}
	pairs, peers := 0, 0
	for _, c := range w.clusters {
		others := len(r.hosts) - int(c.Size)
		pairs += int(c.Size) * others
		peers = max(peers, others)
	}
	if pairs /= 2; pairs > maxPairs || peers > maxPeers {
		w.log(zapcore.InfoLevel, "too many ranks for connections that bypass the forwarder", zap.Int("pairs", pairs),
			zap.Int("at_most", maxPairs), zap.Int("peers", peers), zap.Int("peers_at_most", maxPeers))
		return nil, nil
	}
	here := homes(g, r)
	type door struct{ rank, cluster int }
	own := map[door]bool{} // own are the doors that ranks have themselves
	dual := map[door]int{} // dual counts, by cluster and other cluster, the ranks that have one of their own
	for _, d := range r.layout.Doors {
		own[door{int(d.Rank), int(d.Network)}] = true
		dual[door{r.clusterOf[d.Rank], int(d.Network)}]++
	}
	places := g.inOrder()
	for _, p := range places {
		for c := r.clusterOf[p.rank] + 1; c < len(w.clusters); c++ { // of each pair the higher rank dials
			// all ranks of the other cluster have doors of their own, so they are dialled instead
			all := dual[door{c, r.clusterOf[p.rank]}] == int(w.clusters[c].Size)
			// A way that begins on the loopback interface must end there, and no other may.
			possible := p.inside.IsValid() && here[c].IsValid() && here[c].IsLoopback() == p.inside.Addr().IsLoopback()
			if possible && !own[door{p.rank, c}] && !all {
				ways = append(ways, Way{At: here[c], To: p.inside})
				doors = append(doors, wire.Door{Rank: uint32(p.rank), Instance: p.instance,
					Port: wire.Port{Network: uint16(c)}})
			}
		}
	}
	return ways, doors
}

// homes returns, for each cluster, this host's address on the connections of the cluster's ranks;
// an address is invalid if unknown.
func homes(g *gathering, r *ranks) []netip.Addr {
	here := make([]netip.Addr, len(g.clusters))
	for _, p := range g.places {
		at := &here[r.clusterOf[p.rank]]
		if p.home.Is4() && (!at.IsValid() || better(p.home, *at)) {
			*at = p.home
		}
	}
	return here
}

// better reports whether a is preferred to b as the address of this host at which the ways from a
// cluster begin: an address that is not loopback is preferred to one that is, otherwise the lower
// address.
func better(a, b netip.Addr) bool {
	if a.IsLoopback() != b.IsLoopback() {
		return b.IsLoopback()
	}
	return a.Less(b)
}

// ask asks the kernel to forward connections between ranks. Its answer, the event Opened, must
// arrive within a time.
func (w *ways) ask(ways []Way, doors []wire.Door, within time.Duration) {
	w.asked++
	w.doors = doors
	w.arm(action.Timer{Kind: action.Opening}, within)
	w.do(OpenWays{N: w.asked, Ways: ways})
}

// awaited reports whether the kernel has not yet answered the last request to forward connections
// between ranks (OpenWays).
func (w *ways) awaited() bool { return w.doors != nil }

// forget stops waiting for the kernel's answer to the last OpenWays, and has the ways closed again
// if that answer still arrives.
func (w *ways) forget() {
	if w.awaited() {
		w.doors = nil
		w.disarm(action.Timer{Kind: action.Opening})
	}
}

// opened handles the kernel's answer to an OpenWays, and reports whether the job waited for it. The
// job did not if a rank has left meanwhile or the answer is late.
func (w *ways) opened(e *Opened, r *ranks) bool {
	switch {
	case e.N != w.asked || !w.awaited():
		if e.Err == nil {
			w.do(CloseWays{N: e.N})
		}
		return false
	case e.Err != nil:
		w.log(zapcore.WarnLevel, "the kernel passes no connections on for a job", zap.Error(e.Err))
	default:
		w.addDoors(e.N, e.At, r)
	}
	w.forget()
	return true
}

// addDoors adds the ports that the kernel has opened for OpenWays n, at the addresses at, to the
// layout that ranks get. If the layout has no room, it has the kernel close them.
func (w *ways) addDoors(n int, at []netip.AddrPort, r *ranks) {
	doors := w.doors
	for i := range doors {
		doors[i].Address = at[i].String()
	}
	if !r.addDoors(doors) {
		w.log(zapcore.InfoLevel, "no room in the layout for connections that bypass the forwarder")
		w.do(CloseWays{N: n})
		return
	}
	w.open = len(doors)
	w.log(zapcore.InfoLevel, "the kernel passes connections on", zap.Int("doors", len(doors)))
}
