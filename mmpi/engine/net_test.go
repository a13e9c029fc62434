package engine

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
)

// railNet is a job in one process whose ranks have several rails: to forwarders side by side, to
// rows of forwarders between clusters in a row, and direct ones. The test moves frames between them
// by hand.
type railNet struct {
	t        testing.TB
	log      func(format string, args ...any)
	engines  []*Engine
	natives  []*fakeNative
	clusters []wire.Cluster
	routes   [][][]int       // the rails, row by row, from each cluster (first index) to each cluster
	strands  [][]*strand     // the rails of each rank
	lines    []string        // the traces and warnings of engines that say has not shown yet
	cuts     map[[2]int]bool // whether the way between a pair of ranks is cut
}

// strand is one rail of a rank. Direct ones come after those to forwarders, by the rank at the
// other end.
type strand struct {
	rank, rail int
	peer       int    // the rank at the other end of a direct rail; -1 of others
	up, down   []byte // the bytes from the rank and to it
	states     uint32 // the number of RailStates that this link has carried
	eof        bool
	redial     chan transport.Link
}

// netOptions describe the links of the ranks.
type netOptions struct {
	rails  int      // the number of forwarders side by side, one row each; 0: one
	hops   bool     // whether forwarders link neighbours of clusters in a row, rather than all clusters
	direct [][2]int // the pairs with a direct link, which the second dials

	change func(rank int, cfg *Config) // changes an engine's configuration; nil: no change
}

func newRailNet(t testing.TB, sizes []int, limits Limits, opt netOptions, log func(string, ...any)) *railNet {
	if limits.LongPath == 0 {
		limits.LongPath = -1
	}
	n := &railNet{t: t, log: log, cuts: map[[2]int]bool{}}
	for i, s := range sizes {
		n.clusters = append(n.clusters, wire.Cluster{Name: string(rune('a' + i)), Size: uint32(s)})
	}
	rows := max(1, opt.rails)
	for at := range sizes {
		routes := make([][]int, len(sizes))
		for to := range sizes {
			for row := range rows {
				rail := row
				if opt.hops && at > 0 && at < len(sizes)-1 { // two networks, so two rails in each row
					if rail = 2 * row; to > at {
						rail++
					}
				}
				routes[to] = append(routes[to], rail)
			}
		}
		n.routes = append(n.routes, routes)
	}
	rank := 0
	for at, s := range sizes {
		b := &board{}
		rails := 1 + slices.Max(slices.Concat(n.routes[at]...))
		for local := range s {
			n.join(rank, at, rails, limits, opt, &fakeNative{board: b, rank: local, first: rank - local})
			rank++
		}
	}
	for r := range n.engines {
		n.comm(r)
	}
	return n
}

func (n *railNet) join(rank, cluster, rails int, limits Limits, opt netOptions, native *fakeNative) {
	cfg := Config{World: World{Rank: rank, Clusters: n.clusters, TagUB: 1 << 20}, Native: native, Quiet: true,
		Limits: limits, Wiring: Wiring{
			Trace: func(s string) { n.lines = append(n.lines, fmt.Sprintf("  rank %d: %s", rank, s)) },
			Warn:  func(s string) { n.lines = append(n.lines, fmt.Sprintf("  rank %d warns: %s", rank, s)) }}}
	if opt.hops {
		cfg.Routes = n.routes[cluster]
	}
	var mine []*strand
	for rail := range rails {
		s := &strand{rank: rank, rail: rail, peer: -1, redial: make(chan transport.Link)}
		mine = append(mine, s)
		cfg.Links = append(cfg.Links, s.link())
		cfg.Addresses = append(cfg.Addresses, fmt.Sprintf("f%d", rail))
	}
	await := func(ctx context.Context, s *strand) (transport.Link, error) {
		select {
		case l := <-s.redial:
			return l, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	cfg.Redial = func(ctx context.Context, rail int, _ Attempt) (transport.Link, error) { return await(ctx, mine[rail]) }
	for _, pair := range opt.direct {
		k := slices.Index(pair[:], rank)
		if k < 0 {
			continue
		}
		s := &strand{rank: rank, rail: len(mine), peer: pair[1-k], redial: make(chan transport.Link)}
		mine = append(mine, s)
		if cfg.Direct == nil {
			cfg.Direct = map[int]Opener{}
		}
		cfg.Direct[s.peer] = nil
		if k == 1 {
			cfg.Direct[s.peer] = func(ctx context.Context) (transport.Link, error) { return await(ctx, s) }
		}
	}
	if opt.change != nil {
		opt.change(rank, &cfg)
	}
	e, err := New(cfg)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(e.close)
	n.engines, n.natives, n.strands = append(n.engines, e), append(n.natives, native), append(n.strands, mine)
}

// comm adds a communicator of all ranks, with context 1, at one rank.
func (n *railNet) comm(at int) {
	f := &fabric{t: n.t, engines: n.engines}
	f.comm(at, 1, nil)
}

func (s *strand) link() *memLink {
	s.up, s.down, s.eof = nil, nil, false
	return &memLink{in: &s.down, out: &s.up, eof: &s.eof}
}

func (n *railNet) clusterOf(rank int) int {
	c, _ := n.engines[rank].Place(rank)
	return c
}

// otherEnd returns the strand over which frames of s arrive at a rank.
func (n *railNet) otherEnd(s *strand, to int) *strand {
	if s.peer >= 0 {
		return n.direct(s.peer, s.rank)
	}
	row := slices.Index(n.routes[n.clusterOf(s.rank)][n.clusterOf(to)], s.rail)
	return n.strands[to][n.routes[n.clusterOf(to)][n.clusterOf(s.rank)][row]]
}

func (n *railNet) direct(rank, peer int) *strand {
	i := slices.IndexFunc(n.strands[rank], func(s *strand) bool { return s.peer == peer })
	if i < 0 {
		n.t.Fatalf("ranks %d and %d have no direct link", rank, peer)
	}
	return n.strands[rank][i]
}

// relay moves whole frames that a rank has written to a rail, at most most (0: all), and returns
// their number.
func (n *railNet) relay(s *strand, most int) (moved int) {
	if s.eof {
		s.up = nil
	}
	for most == 0 || moved < most {
		if len(s.up) < wire.HeaderLen {
			return moved
		}
		h, err := wire.ParseHeader(s.up)
		if err != nil {
			n.t.Fatalf("rank %d wrote a bad frame: %v", s.rank, err)
		}
		size := wire.HeaderLen + int(h.Length)
		if len(s.up) < size {
			return moved
		}
		frame := s.up[:size:size]
		s.up = s.up[size:]
		if h.Type == wire.TypeCount { // Counts do not count as moved frames
			if s.peer >= 0 {
				other := n.otherEnd(s, s.peer)
				other.down = append(other.down, frame...)
			}
			continue
		}
		moved++
		answer := wire.Type(0)
		switch {
		case s.peer >= 0 && !h.Type.BetweenRanks():
			n.log("  %d>%d %v on the direct link", s.rank, s.peer, h.Type)
			other := n.otherEnd(s, s.peer)
			other.down = append(other.down, frame...)
		case h.Type == wire.TypePing:
			answer = wire.TypePong
		case h.Type == wire.TypeBye:
			answer = wire.TypeByeAck
		case h.Type == wire.TypeAbort:
			a, _ := wire.ParseAbort(frame[wire.HeaderLen:])
			n.log("  %d Abort on rail %d: %s", s.rank, s.rail, a.Reason)
		case h.Type.BetweenRanks():
			on := fmt.Sprintf("on rail %d", s.rail)
			if s.peer >= 0 {
				on = "on the direct link"
			}
			n.log("  %s %s", describe(h, frame), on)
			if other := n.otherEnd(s, int(h.Dst)); !other.eof && !n.isCut(s.rank, int(h.Dst)) {
				other.down = append(other.down, frame...)
			}
		}
		if answer != 0 {
			s.down = wire.AppendFrame(s.down, wire.Header{Type: answer, Src: wire.Nobody, Dst: wire.Nobody}, nil)
		}
	}
	return moved
}

// settle runs everything until nothing moves.
func (n *railNet) settle() {
	for moved := 1; moved > 0; {
		moved = 0
		for r, e := range n.engines {
			moved += e.Progress(0)
			for _, s := range n.strands[r] {
				moved += n.relay(s, 0)
			}
			if err := e.check(); err != nil {
				n.t.Fatalf("rank %d: %v", r, err)
			}
			n.say()
		}
	}
}

// say logs the traces and warnings of engines since the last call.
func (n *railNet) say() {
	for _, s := range n.lines {
		n.log("%s", s)
	}
	n.lines = nil
}
