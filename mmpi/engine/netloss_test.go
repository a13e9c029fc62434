package engine

import (
	"slices"
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// lose ends a rank's link to a forwarder, which informs the other ranks.
func (n *railNet) lose(s *strand) {
	s.eof = true
	s.up = nil
	n.tell(s, false)
}

// back opens a rank's link to a forwarder again. The forwarder reports the ranks that it cannot
// reach.
func (n *railNet) back(s *strand) {
	n.open(s)
	n.tell(s, true)
	for _, all := range n.strands {
		for _, o := range all {
			if o.peer < 0 && o.eof && n.clusterOf(o.rank) != n.clusterOf(s.rank) && n.otherEnd(o, s.rank) == s {
				s.applyState(wire.RailState{Rank: uint32(o.rank), Reason: "cut"})
			}
		}
	}
}

// cut cuts the way between the forwarders of two ranks, or repairs it. Both forwarders inform their
// ranks.
func (n *railNet) cut(a, b int, cut bool) {
	n.cuts[[2]int{min(a, b), max(a, b)}] = cut
	for _, s := range n.strands[a] {
		if s.peer < 0 && slices.Contains(n.routes[n.clusterOf(a)][n.clusterOf(b)], s.rail) {
			other := n.otherEnd(s, b)
			s.applyState(wire.RailState{Rank: uint32(b), Up: !cut, Cut: cut, Reason: "the trunk is cut"})
			other.applyState(wire.RailState{Rank: uint32(a), Up: !cut, Cut: cut, Reason: "the trunk is cut"})
		}
	}
}

func (n *railNet) isCut(a, b int) bool { return n.cuts[[2]int{min(a, b), max(a, b)}] }

// applyState sends the rank its forwarder's report on another rank.
func (s *strand) applyState(x wire.RailState) {
	s.states++
	x.Number = s.states
	s.down = wire.AppendFrame(s.down, wire.Header{Type: wire.TypeRailState, Src: wire.Nobody, Dst: wire.Nobody}, &x)
}

// tell sends the ranks of other clusters their forwarders' reports on a rank's link.
func (n *railNet) tell(s *strand, up bool) {
	for to := range n.engines {
		there := n.routes[n.clusterOf(s.rank)][n.clusterOf(to)]
		if n.clusterOf(to) == n.clusterOf(s.rank) || !slices.Contains(there, s.rail) {
			continue
		}
		if other := n.otherEnd(s, to); !other.eof {
			other.applyState(wire.RailState{Rank: uint32(s.rank), Up: up, Reason: "cut"})
		}
	}
}

// open gives a rank the link that it dials, and waits until it has taken it.
func (n *railNet) open(s *strand) {
	e := n.engines[s.rank]
	rail := func() string { return e.Rails()[s.rail].State }
	if rail() != "dialling" {
		n.t.Fatalf("rank %d: rail %d is %s", s.rank, s.rail, rail())
	}
	s.states = 0
	s.redial <- s.link()
	for end := time.Now().Add(20 * time.Second); rail() == "dialling"; time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			n.t.Fatal("the link is not taken")
		}
	}
}

// meet makes a direct link between two ranks; part ends it at both ends.
func (n *railNet) meet(a, b int) {
	n.open(n.direct(b, a))
	s := n.direct(a, b)
	if !n.engines[a].DirectUp(b, s.link()) {
		n.log("  rank %d does not want it", a)
	}
}

func (n *railNet) part(a, b int) {
	for _, s := range []*strand{n.direct(a, b), n.direct(b, a)} {
		s.eof = true
		s.up = nil
	}
}
