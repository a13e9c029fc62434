package link

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/memnet"
	"github.com/leidenzipper/zipper/internal/wire"
)

// testNet is a job in one process: Sets over links in memory, and forwarders between them that the
// test steps. A rank has a rail to each of several parallel forwarders, or, if clusters are in a
// row, one in each direction for each row of forwarders. It may also have direct rails.
type testNet struct {
	t      *testing.T  // test that uses the job
	ranks  []*testRank // processes by virtual rank
	routes [][][]int   // by cluster: for each cluster, the rails that lead there, row by row
	seed   uint64      // seed of the sizes of partial reads and writes
	buffer int         // size of the buffer of a link in bytes
}

type testRank struct {
	*testProcess
	cluster int         // index of the rank's cluster
	rails   []*testRail // rails to forwarders, then the direct ones
}

// testRail is one rail of a rank.
type testRail struct {
	rank, rail int
	peer       int           // rank at the other end of a direct rail; -1: the rail leads to a forwarder
	there      *memnet.Link  // the forwarder's end of the link, or this end of a direct link; nil: there is no link
	in         []byte        // bytes that the forwarder has read and not relayed
	out        []byte        // bytes that the forwarder must write to the rank
	states     uint32        // number of RailStates that were sent over the current link
	dialed     chan *testEnd // links that the test hands to the rank's attempts to open one
	losts      []wire.Lost   // Losts that the rank has sent
}

// testEnd is a link that is opened for a rank.
type testEnd struct{ transport.Link }

// netOptions describes how the ranks are linked.
type netOptions struct {
	rows   int      // number of rows of forwarders; at least 1
	hops   bool     // Forwarders link neighbours of clusters in a row, in place of one forwarder for all.
	direct [][2]int // pairs of ranks with a direct link, which the second one dials
	buffer int      // size of the buffer of a link in bytes; 0: 1 MiB
}

func newTestNet(t *testing.T, sizes []uint32, opt netOptions, seed uint64, edit func(*Config)) *testNet {
	n := &testNet{t: t, seed: seed, buffer: opt.buffer}
	if n.buffer == 0 {
		n.buffer = 1 << 20
	}
	for at := range sizes {
		routes := make([][]int, len(sizes))
		for to := range sizes {
			for row := range opt.rows {
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
	for cluster, size := range sizes {
		for range size {
			n.join(cluster, sizes, opt, edit)
		}
	}
	return n
}

func (n *testNet) join(cluster int, sizes []uint32, opt netOptions, edit func(*Config)) {
	rank := len(n.ranks)
	r := &testRank{cluster: cluster}
	n.ranks = append(n.ranks, r)
	r.testProcess = newProcess(n.t, rank, sizes, func(c *Config) {
		for rail := range 1 + slices.Max(slices.Concat(n.routes[cluster]...)) {
			s := &testRail{rank: rank, rail: rail, peer: -1, dialed: make(chan *testEnd)}
			r.rails = append(r.rails, s)
			c.Links = append(c.Links, n.open(s))
		}
		if opt.hops {
			c.Routes = n.routes[cluster]
		}
		c.Redial = func(ctx context.Context, rail int, _ Attempt) (transport.Link, error) {
			return r.rails[rail].await(ctx)
		}
		c.Direct = map[int]Opener{}
		for _, pair := range opt.direct {
			if k := slices.Index(pair[:], rank); k >= 0 {
				s := &testRail{rank: rank, rail: len(r.rails), peer: pair[1-k], dialed: make(chan *testEnd)}
				r.rails = append(r.rails, s)
				c.Direct[s.peer] = nil
				if k == 1 {
					c.Direct[s.peer] = s.await
				}
			}
		}
		edit(c)
	})
	r.locked(r.set.Start)
}

func (s *testRail) await(ctx context.Context) (transport.Link, error) {
	select {
	case l := <-s.dialed:
		return l.Link, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// open makes a new link for a rail to a forwarder, and returns the rank's end.
func (n *testNet) open(s *testRail) transport.Link {
	n.seed++
	here, there := memnet.Pipe(memnet.Options{Partial: n.seed, Buffer: n.buffer})
	s.there, s.in, s.out, s.states = there, nil, nil, 0
	return here
}

// locked calls f with the process's lock.
func (u *testProcess) locked(f func()) {
	u.lock.Lock()
	defer u.lock.Unlock()
	f()
}

func (n *testNet) state(s *testRail) (x Status) {
	r := n.ranks[s.rank]
	r.locked(func() { x = r.set.Status()[s.rail] })
	return x
}

// receivingRail returns the rail over which frames from rail s arrive at a rank.
func (n *testNet) receivingRail(s *testRail, to int) *testRail {
	from, dst := n.ranks[s.rank], n.ranks[to]
	row := slices.Index(n.routes[from.cluster][dst.cluster], s.rail)
	return dst.rails[n.routes[dst.cluster][from.cluster][row]]
}

func (n *testNet) direct(rank, peer int) *testRail {
	all := n.ranks[rank].rails
	return all[slices.IndexFunc(all, func(s *testRail) bool { return s.peer == peer })]
}

// relay makes the forwarder of a rail pass on at most most whole frames (0: all), and returns how
// many bytes and frames have moved.
func (n *testNet) relay(s *testRail, most int) (moved int) {
	if s.peer >= 0 || s.there == nil {
		return 0
	}
	for frames := 0; most == 0 || frames < most; frames++ {
		for !whole(s.in) {
			var b [4096]byte
			k, err := s.there.TryRead(b[:])
			if err != nil {
				return moved + n.put(s)
			}
			s.in = append(s.in, b[:k]...)
			moved += k
		}
		h, _ := wire.ParseHeader(s.in)
		size := wire.HeaderLen + int(h.Length)
		n.pass(s, h, s.in[:size:size])
		s.in = s.in[size:]
		moved++
	}
	return moved + n.put(s)
}

// whole reports whether b begins with a whole frame.
func whole(b []byte) bool {
	h, err := wire.ParseHeader(b)
	return err == nil && len(b) >= wire.HeaderLen+int(h.Length)
}

// pass delivers a frame to its receiver, or answers it as a forwarder does.
func (n *testNet) pass(s *testRail, h wire.Header, frame []byte) {
	switch {
	case h.Type == wire.TypePing:
		s.out = wire.AppendFrame(s.out, wire.Control(wire.TypePong), nil)
	case h.Type == wire.TypeBye:
		s.out = wire.AppendFrame(s.out, wire.Control(wire.TypeByeAck), nil)
	case h.Type == wire.TypeLost:
		l, err := wire.ParseLost(frame[wire.HeaderLen:])
		if err != nil {
			n.t.Error(err)
		}
		s.losts = append(s.losts, l)
	case h.Type == wire.TypeAbort:
		a, _ := wire.ParseAbort(frame[wire.HeaderLen:])
		n.t.Errorf("rank %d aborts: %s", s.rank, a.Reason)
	case h.Type.BetweenRanks():
		if other := n.receivingRail(s, int(h.Dst)); other.there != nil {
			other.out = append(other.out, frame...)
			n.put(other)
		}
	}
}

// put writes as many bytes as a rank's link takes, and returns how many.
func (n *testNet) put(s *testRail) (moved int) {
	for len(s.out) > 0 {
		k, err := s.there.TryWrite(s.out)
		if err != nil {
			return moved
		}
		s.out = s.out[k:]
		moved += k
	}
	return moved
}

// lose cuts a rank's link to a forwarder, which reports the loss to the other ranks. Frames in
// flight are lost.
func (n *testNet) lose(s *testRail) {
	s.there.Cut()
	s.there = nil
	n.tell(s, false)
}

// back opens a rank's link again. The forwarder tells the rank which other ranks it does not reach.
func (n *testNet) back(s *testRail) {
	n.give(s, n.open(s))
	n.tell(s, true)
	for _, r := range n.ranks {
		for _, o := range r.rails {
			if o.peer < 0 && o.there == nil && r.cluster != n.ranks[s.rank].cluster && n.receivingRail(o, s.rank) == s {
				s.applyState(wire.RailState{Rank: uint32(o.rank), Reason: "cut"})
			}
		}
	}
}

// give hands a link to the rank that dials, and waits until the rank has taken it.
func (n *testNet) give(s *testRail, l transport.Link) {
	s.dialed <- &testEnd{l}
	for end := time.Now().Add(20 * time.Second); n.state(s).State == "dialling"; time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			n.t.Fatal("the link is not taken")
		}
	}
}

// meet opens a direct link.
func (n *testNet) meet(a, b int) {
	n.seed++
	here, there := memnet.Pipe(memnet.Options{Partial: n.seed, Buffer: n.buffer})
	n.direct(a, b).there, n.direct(b, a).there = here, there
	n.give(n.direct(b, a), there)
	if !n.ranks[a].set.DirectUp(b, here) {
		n.t.Errorf("rank %d does not want the link", a)
	}
}

// part cuts a direct link.
func (n *testNet) part(a, b int) {
	n.direct(a, b).there.Cut()
	n.direct(a, b).there, n.direct(b, a).there = nil, nil
}

// applyState sends the rank a report of its forwarder about another rank.
func (s *testRail) applyState(x wire.RailState) {
	s.states++
	x.Number = s.states
	s.out = wire.AppendFrame(s.out, wire.Control(wire.TypeRailState), &x)
}

// tell makes forwarders report on a rank's link to the other clusters.
func (n *testNet) tell(s *testRail, up bool) {
	from := n.ranks[s.rank].cluster
	for to, r := range n.ranks {
		if r.cluster == from || !slices.Contains(n.routes[from][r.cluster], s.rail) {
			continue
		}
		if other := n.receivingRail(s, to); other.there != nil {
			other.applyState(wire.RailState{Rank: uint32(s.rank), Up: up, Reason: "cut"})
		}
	}
}

// step makes a rank read and write once.
func (r *testRank) step() (moved int) {
	r.locked(func() {
		moved = r.set.Step()
		r.set.Flush()
	})
	return moved
}

// check compares the counters of all ranks.
func (n *testNet) check() {
	n.t.Helper()
	for rank, r := range n.ranks {
		var err error
		r.locked(func() { err = r.set.Check() })
		if err != nil || r.failed != "" {
			n.t.Fatalf("rank %d: %v, failed %q", rank, err, r.failed)
		}
	}
}

// settle runs everything until nothing moves and no acknowledgement is owed.
func (n *testNet) settle() {
	n.t.Helper()
	for range 3 { // acknowledgements of acknowledgements are not acknowledged
		for moved := 1; moved > 0; {
			moved = 0
			for _, r := range n.ranks {
				moved += r.step()
				for _, s := range r.rails {
					moved += n.relay(s, 0)
				}
			}
			n.check()
		}
		for _, r := range n.ranks {
			r.locked(r.set.FlushAcks)
		}
	}
}

// TestStatesInOrder checks that reports of a forwarder on other ranks' links are accepted only in
// the order of their numbers. If one is missing, the link is given up.
func TestStatesInOrder(t *testing.T) {
	n := newTestNet(t, []uint32{1, 1}, netOptions{rows: 2}, 0, func(*Config) {})
	s := n.ranks[0].rails[0]
	s.applyState(wire.RailState{Rank: 1, Up: true})
	n.settle()
	if x := n.state(s); !x.Up {
		t.Fatalf("after the first state the rail is %s", x.State)
	}
	s.states++ // A RailState is missing.
	s.applyState(wire.RailState{Rank: 1, Reason: "cut"})
	n.settle()
	if n.state(s).Up {
		t.Error("a state that is not the next one was believed")
	}
}

// TestLossesRandom loses rails and direct links, in the middle of frames too, and opens them again,
// while messages of all sizes are in flight: all arrive whole and in order, and all counters fit.
func TestLossesRandom(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { lossesRandom(t, seed) })
	}
}
