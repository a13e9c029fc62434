package job

import (
	"net/netip"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/internal/wire"
)

// ways is what the kernel has opened between ranks of a job, or is asked to open. Ranks of
// different clusters then have direct links, each of which begins at a port of this host. Frames
// are relayed by the forwarder only while such a link is not there.
type ways struct {
	*core
	asked int         // asked counts the OpenWays so far; the last one has that number.
	doors []wire.Door // doors are those of the last one, without their addresses; nil: no answer is awaited.
	open  int         // open counts the doors that the kernel has open; 0: none.
}

// plan returns what the kernel is to open for a job that is complete, and the doors in the layout
// that go with them: for each rank that ranks of other clusters dial, one on each of their
// networks. None: all goes through this forwarder.
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
		w.log(zapcore.InfoLevel, "too many ranks for connections of their own", zap.Int("pairs", pairs),
			zap.Int("at_most", maxPairs), zap.Int("peers", peers), zap.Int("peers_at_most", maxPeers))
		return nil, nil
	}
	here := homes(g, r)
	type door struct{ rank, cluster int }
	own := map[door]bool{} // own are those without our help
	dual := map[door]int{} // dual counts, by cluster and other cluster, the ranks that have one of their own
	for _, d := range r.layout.Doors {
		own[door{int(d.Rank), int(d.Network)}] = true
		dual[door{r.clusterOf[d.Rank], int(d.Network)}]++
	}
	places := g.inOrder()
	for _, p := range places {
		for c := r.clusterOf[p.rank] + 1; c < len(w.clusters); c++ { // of each pair the higher rank dials
			// all of them are dialled by us instead
			all := dual[door{c, r.clusterOf[p.rank]}] == int(w.clusters[c].Size)
			// What begins on the loopback interface stays there, and nothing else may lead to it.
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

// homes returns this host's address on each cluster's network; invalid: unknown.
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

// better says which of two addresses of this host on a network ways begin at: the first that is not
// loopback.
func better(a, b netip.Addr) bool {
	if a.IsLoopback() != b.IsLoopback() {
		return b.IsLoopback()
	}
	return a.Less(b)
}

// ask asks the kernel to open ways, within a time.
func (w *ways) ask(ways []Way, doors []wire.Door, within time.Duration) {
	w.asked++
	w.doors = doors
	w.arm(action.Timer{Kind: action.Opening}, within)
	w.do(OpenWays{N: w.asked, Ways: ways})
}

// awaited reports whether the kernel's answer is awaited.
func (w *ways) awaited() bool { return w.doors != nil }

// forget has the kernel's answer not be used.
func (w *ways) forget() {
	if w.awaited() {
		w.doors = nil
		w.disarm(action.Timer{Kind: action.Opening})
	}
}

// opened takes the kernel's answer, and reports whether it was awaited: a rank may have left
// meanwhile, or it took too long.
func (w *ways) opened(e *Opened, r *ranks) bool {
	switch {
	case e.N != w.asked || !w.awaited():
		if e.Err == nil {
			w.do(CloseWays{N: e.N})
		}
		return false
	case e.Err != nil:
		w.log(zapcore.WarnLevel, "the kernel passes nothing on for a job", zap.Error(e.Err))
	default:
		w.addDoors(e.N, e.At, r)
	}
	w.forget()
	return true
}

// addDoors puts what the kernel has opened into the layout, if there is room.
func (w *ways) addDoors(n int, at []netip.AddrPort, r *ranks) {
	doors := w.doors
	for i := range doors {
		doors[i].Address = at[i].String()
	}
	if !r.addDoors(doors) {
		w.log(zapcore.InfoLevel, "no room in the layout for connections of their own")
		w.do(CloseWays{N: n})
		return
	}
	w.open = len(doors)
	w.log(zapcore.InfoLevel, "the kernel passes connections on", zap.Int("doors", len(doors)))
}
