package engine

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/wire"
)

// railNet is a job in one process whose ranks have several rails: to forwarders side by side, to
// rows of forwarders between clusters in a row, and direct ones. The test steps what is between
// them by hand.
type railNet struct {
	t        testing.TB
	log      func(format string, args ...any)
	engines  []*Engine
	natives  []*fakeNative
	clusters []wire.Cluster
	routes   [][][]int // by cluster: of each cluster the places of the rails that lead there, row by row
	strands  [][]*strand
	told     []string        // what engines have said since the last look
	cuts     map[[2]int]bool // pairs of ranks between which the way is cut
}

// strand is one rail of a rank. Direct ones come after those to forwarders, by the rank at the
// other end.
type strand struct {
	rank, rail int
	peer       int // direct: the other end; else -1
	up, down   []byte
	states     uint32 // RailStates that this link has brought
	eof        bool
	slow       bool // of what has come little is read at a time
	redial     chan transport.Link
}

// netOptions are how the ranks are linked.
type netOptions struct {
	rails  int      // forwarders side by side, one row each; 0: one
	hops   bool     // between neighbours of clusters in a row, in place of one for all
	direct [][2]int // pairs with a direct link, which the second dials

	change func(rank int, cfg *Config) // what engines start with; nil: as it is
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
		Limits: limits,
		Trace:  func(s string) { n.told = append(n.told, fmt.Sprintf("  rank %d: %s", rank, s)) },
		Warn:   func(s string) { n.told = append(n.told, fmt.Sprintf("  rank %d warns: %s", rank, s)) }}
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
	cfg.Redial = func(ctx context.Context, rail int) (transport.Link, error) { return await(ctx, mine[rail]) }
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

// comm makes context 1 of all ranks at one.
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

// far gives the strand by which frames of s come to a rank.
func (n *railNet) far(s *strand, to int) *strand {
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
// how many.
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
		if h.Type == wire.TypeCount { // these come by themselves
			if s.peer >= 0 {
				far := n.far(s, s.peer)
				far.down = append(far.down, frame...)
			}
			continue
		}
		moved++
		answer := wire.Type(0)
		switch {
		case s.peer >= 0 && !h.Type.BetweenRanks():
			n.log("  %d>%d %v on the direct link", s.rank, s.peer, h.Type)
			far := n.far(s, s.peer)
			far.down = append(far.down, frame...)
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
			if far := n.far(s, int(h.Dst)); !far.eof && !n.isCut(s.rank, int(h.Dst)) {
				far.down = append(far.down, frame...)
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

// say shows what engines have said.
func (n *railNet) say() {
	for _, s := range n.told {
		n.log("%s", s)
	}
	n.told = nil
}

// lose ends a rank's link to a forwarder, which tells the others.
func (n *railNet) lose(s *strand) {
	s.eof = true
	s.up = nil
	n.tell(s, false)
}

// back opens it again. The forwarder says who is out of its reach meanwhile.
func (n *railNet) back(s *strand) {
	n.open(s)
	n.tell(s, true)
	for _, all := range n.strands {
		for _, o := range all {
			if o.peer < 0 && o.eof && n.clusterOf(o.rank) != n.clusterOf(s.rank) && n.far(o, s.rank) == s {
				s.hears(wire.RailState{Rank: uint32(o.rank), Reason: "cut"})
			}
		}
	}
}

// cut cuts what is between the forwarders of two ranks, or mends it: both hear of it from theirs.
func (n *railNet) cut(a, b int, cut bool) {
	n.cuts[[2]int{min(a, b), max(a, b)}] = cut
	for _, s := range n.strands[a] {
		if s.peer < 0 && slices.Contains(n.routes[n.clusterOf(a)][n.clusterOf(b)], s.rail) {
			far := n.far(s, b)
			s.hears(wire.RailState{Rank: uint32(b), Up: !cut, Cut: cut, Reason: "the trunk is cut"})
			far.hears(wire.RailState{Rank: uint32(a), Up: !cut, Cut: cut, Reason: "the trunk is cut"})
		}
	}
}

func (n *railNet) isCut(a, b int) bool { return n.cuts[[2]int{min(a, b), max(a, b)}] }

// hears has the rank's forwarder say something of another rank.
func (s *strand) hears(x wire.RailState) {
	s.states++
	x.Number = s.states
	s.down = wire.AppendFrame(s.down, wire.Header{Type: wire.TypeRailState, Src: wire.Nobody, Dst: wire.Nobody}, &x)
}

// tell has the forwarders tell the other clusters of a rank's link.
func (n *railNet) tell(s *strand, up bool) {
	for to := range n.engines {
		there := n.routes[n.clusterOf(s.rank)][n.clusterOf(to)]
		if n.clusterOf(to) == n.clusterOf(s.rank) || !slices.Contains(there, s.rail) {
			continue
		}
		if far := n.far(s, to); !far.eof {
			far.hears(wire.RailState{Rank: uint32(s.rank), Up: up, Reason: "cut"})
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

// meet makes a direct link; part ends it at both ends.
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

// TestNetRandom: rails and direct links are lost, in the middle of frames too, and come back, while
// messages of all sizes are on their way: all arrive whole and in order, and nothing is counted
// wrong. The same every time for a seed.
func TestNetRandom(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { netRandom(t, rand.New(rand.NewPCG(seed, 7))) })
	}
}

// progressPartly has an engine read some bytes only of what has come over each rail.
func (n *railNet) progressPartly(e *Engine, rank int, r *rand.Rand) {
	late := make([][]byte, len(n.strands[rank]))
	for i, s := range n.strands[rank] {
		k := len(s.down)
		switch {
		case s.slow:
			k = min(k, r.IntN(50))
		case r.IntN(2) == 0:
			k = r.IntN(k + 1)
		}
		s.down, late[i] = s.down[:k:k], s.down[k:]
	}
	e.Progress(0)
	for i, s := range n.strands[rank] {
		s.down = append(s.down, late[i]...)
	}
}

func netRandom(t *testing.T, r *rand.Rand) {
	var opt netOptions
	sizes := [][]int{{1, 1}, {2, 1}, {1, 1, 1}}[r.IntN(3)]
	opt.rails = 1 + r.IntN(3)
	opt.hops = len(sizes) == 3
	if r.IntN(2) == 0 && !opt.hops {
		opt.direct = [][2]int{{0, len(sizes) - 1 + sizes[0] - 1}}
	}
	limits := Limits{Eager: 500, EagerWindow: 3000, DataWindow: 4000, Segment: 400}
	n := newRailNet(t, sizes, limits, opt, func(string, ...any) {})
	lossy := r.IntN(opt.rails) // the row that has losses
	if opt.rails == 1 {
		lossy = -1
	}
	type message struct {
		cell      Cell
		want, buf []byte
	}
	received := map[[2]int][]*message{}
	sent := 0
	for range 400 {
		rank := r.IntN(len(n.engines))
		e, s := n.engines[rank], n.strands[rank][r.IntN(len(n.strands[rank]))]
		switch r.IntN(13) {
		case 12:
			s.slow = r.IntN(2) == 0
		case 0, 1, 2: // a message to another cluster, received there
			to := r.IntN(len(n.engines))
			if e.sameCluster(to) {
				continue
			}
			m := &message{want: pattern(sent, r.IntN(500*(1+4*r.IntN(2)))), buf: make([]byte, 2500)}
			sent++
			if err := e.Isend(e.p2p.CommOf(1), KindP2P, m.want, to, 1, r.IntN(4) == 0, new(Cell)); err != nil {
				t.Fatal(err)
			}
			far := n.engines[to]
			if err := far.Irecv(far.p2p.CommOf(1), KindP2P, m.buf, rank, 1, &m.cell); err != nil {
				t.Fatal(err)
			}
			received[[2]int{rank, to}] = append(received[[2]int{rank, to}], m)
		case 3: // a loss
			switch {
			case s.peer >= 0 && !s.eof && e.Rails()[s.rail].Up:
				n.part(rank, s.peer)
				s.down = s.down[:r.IntN(len(s.down)+1)]
			case s.peer < 0 && !opt.hops && s.rail == lossy && !s.eof:
				n.lose(s)
				s.down = s.down[:r.IntN(len(s.down)+1)]
			}
		case 4: // and the end of one
			switch st := e.Rails()[s.rail]; {
			case !s.eof && s.peer < 0 || st.State != "dialling":
			case s.peer < 0:
				n.back(s)
			case n.engines[s.peer].Rails()[n.direct(s.peer, rank).rail].State == "down":
				n.meet(s.peer, rank)
			}
		case 5, 6, 7, 8:
			n.relay(s, 1+r.IntN(3))
		default:
			n.progressPartly(e, rank, r)
		}
		for rank, e := range n.engines {
			if err := e.check(); err != nil {
				t.Fatalf("rank %d: %v", rank, err)
			}
		}
	}
	n.settle()
	for _, all := range n.strands {
		for _, s := range all {
			if s.peer < 0 && s.eof {
				n.back(s)
			}
		}
	}
	n.settle()
	for pair, all := range received {
		for i, m := range all {
			if !m.cell.Done() || m.cell.Err() != nil || !bytes.Equal(m.buf[:m.cell.Bytes], m.want) {
				t.Fatalf("%v, %+v: message %d of %d from %d to %d: done %v, %d of %d bytes", sizes, opt, i, len(all),
					pair[0], pair[1],
					m.cell.Done(), m.cell.Bytes, len(m.want))
			}
		}
	}
	for rank, e := range n.engines {
		if e.p2p.Busy() || n.natives[rank].failed != "" {
			t.Errorf("rank %d: busy %v, %q", rank, e.p2p.Busy(), n.natives[rank].failed)
		}
	}
}
