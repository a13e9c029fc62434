package link

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/wire"
)

// lostRun is one run of TestClusterLossRandom.
type lostRun struct {
	*testNet
	r      *rand.Rand
	gone   int             // index of the cluster that is lost; -1: none yet
	words  []*testRail     // rails over which the word of the loss is not sent yet
	small  map[[2]int]int  // number of frames sent, by sender and receiver
	large  []*largeMessage // large messages that were sent
	before map[[2]int]int  // number of frames that had arrived when the loss was known
}

func (x *lostRun) isGone(rank int) bool { return x.ranks[rank].cluster == x.gone }

// event does something random.
func (x *lostRun) event() {
	n := len(x.ranks)
	from, to := x.r.IntN(n), x.r.IntN(n)
	u, v := x.ranks[from], x.ranks[to]
	switch {
	case x.isGone(from):
	case x.r.IntN(10) == 0 && u.cluster != v.cluster && len(u.lost) == 0:
		k := [2]int{from, to}
		u.locked(func() { u.sendEager(to, fmt.Appendf(nil, "%d:%s", x.small[k], strings.Repeat(".", x.r.IntN(900)))) })
		x.small[k]++
	case x.r.IntN(15) == 0 && u.cluster != v.cluster && !x.isGone(to) && len(u.lost)+len(v.lost) == 0:
		m := &largeMessage{from, to, uint64(len(x.large) + 1), bytes.Repeat([]byte{byte(len(x.large))}, 100+x.r.IntN(9000)), nil}
		m.got = make([]byte, len(m.sent))
		v.lock.Lock()
		u.locked(func() { u.send(v.testProcess, m.handle, m.sent, m.got) })
		v.lock.Unlock()
		x.large = append(x.large, m)
	case x.r.IntN(20) == 0 && x.gone >= 0: // another process says so
		u.locked(func() { u.set.Losses.Lose(x.gone, "test") })
		x.known(from)
	case x.r.IntN(20) == 0 && len(x.words) > 0:
		x.word(x.r.IntN(len(x.words)))
	default:
		u.step()
		x.relay(u.rails[x.r.IntN(len(u.rails))], 1+x.r.IntN(3))
		x.known(from)
	}
}

// word sends the word of the loss over a rail.
func (x *lostRun) word(i int) {
	s := x.words[i]
	x.words = slices.Delete(x.words, i, i+1)
	s.states++
	s.out = wire.AppendFrame(s.out, wire.Control(wire.TypeLost), &wire.Lost{Number: s.states, Cluster: uint16(x.gone), Epoch: 1,
		Reason: "test"})
	x.put(s)
}

// known uses the memory of messages with the lost cluster for something else once a rank knows of
// the loss, as the layers above do.
func (x *lostRun) known(rank int) {
	u := x.ranks[rank]
	if len(u.lost) == 0 {
		return
	}
	for _, m := range x.large {
		switch {
		case m.from == rank && x.isGone(m.to) && u.sources[m.handle] != nil:
			delete(u.sources, m.handle)
			clear(m.sent)
			m.sent = m.sent[:0]
		case m.to == rank && x.isGone(m.from) && u.sinks[m.handle] != nil:
			delete(u.sinks, m.handle)
			for i := range m.got {
				m.got[i] = 0xEE
			}
		}
	}
	for from := range x.ranks {
		if k := [2]int{from, rank}; x.isGone(from) && x.before[k] == 0 {
			x.before[k] = 1 + len(u.got[from])
		}
	}
}

// lose ends the processes of a cluster.
func (x *lostRun) lose(cluster int) {
	x.gone = cluster
	for rank, u := range x.ranks {
		for _, s := range u.rails {
			switch {
			case s.peer < 0 && u.cluster == cluster:
				if s.there != nil {
					s.there.Cut()
				}
				s.there = nil
			case s.peer < 0:
				x.words = append(x.words, s)
			case u.cluster == cluster && s.there != nil:
				x.part(rank, s.peer)
			}
		}
	}
}

func (x *lostRun) settleLiving() {
	for range 3 {
		for moved := 1; moved > 0; {
			moved = 0
			for rank, u := range x.ranks {
				if x.isGone(rank) {
					continue
				}
				moved += u.step()
				for _, s := range u.rails {
					moved += x.relay(s, 0)
				}
				x.known(rank)
			}
			x.check()
		}
		for rank, u := range x.ranks {
			if !x.isGone(rank) {
				u.locked(u.set.FlushAcks)
			}
		}
	}
}

// TestClusterLossRandom loses a cluster in the middle of frames and large messages, over forwarders
// side by side and in rows, and over direct links. The words of the loss arrive at different times.
// The other ranks' messages arrive, none of the lost cluster's is handled once the loss is known,
// and nothing uses the memory of those under way.
func TestClusterLossRandom(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { clusterLossRandom(t, seed) })
	}
}

func clusterLossRandom(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 11))
	sizes := [][]uint32{{1, 1}, {2, 1, 1}, {1, 2, 1}}[r.IntN(3)]
	opt := netOptions{rows: 1 + r.IntN(3), buffer: 300 + r.IntN(3000)}
	opt.hops = len(sizes) == 3 && r.IntN(2) == 0
	if !opt.hops && r.IntN(2) == 0 {
		opt.direct = [][2]int{{0, int(sizes[0])}}
	}
	n := newTestNet(t, sizes, opt, 1+seed<<16, func(c *Config) {
		c.OnLoss = true
		c.Limits.DataWindow, c.Limits.Segment, c.Limits.EagerWindow = 4000, 400, 1<<20
	})
	x := &lostRun{testNet: n, r: r, gone: -1, small: map[[2]int]int{}, before: map[[2]int]int{}}
	if len(opt.direct) > 0 {
		n.meet(opt.direct[0][0], opt.direct[0][1])
	}
	for range 500 + r.IntN(500) {
		x.event()
		x.check()
	}
	x.lose(r.IntN(len(sizes)))
	for range 300 {
		x.event()
		x.check()
	}
	for len(x.words) > 0 {
		x.word(0)
	}
	x.settleLiving()
	x.compare(sizes)
}

func (x *lostRun) compare(sizes []uint32) {
	for rank, u := range x.ranks {
		if x.isGone(rank) {
			continue
		}
		if !slices.Equal(u.lost, []int{x.gone}) {
			x.t.Errorf("rank %d has lost the clusters %v, want %d", rank, u.lost, x.gone)
		}
		u.locked(func() {
			if k := u.set.Unacked(); k > 0 {
				x.t.Errorf("rank %d keeps %d frames", rank, k)
			}
		})
		for from := range x.ranks {
			k := [2]int{from, rank}
			if x.isGone(from) && len(u.got[from])+1 != x.before[k] {
				x.t.Errorf("rank %d has handled frames of rank %d after its loss", rank, from)
			}
			for i, b := range u.got[from] {
				if !x.isGone(from) && !bytes.HasPrefix(b, fmt.Appendf(nil, "%d:", i)) {
					x.t.Fatalf("frame %d from rank %d at %d: %q", i, from, rank, b)
				}
			}
			if !x.isGone(from) && len(u.got[from]) != x.small[k] {
				x.t.Errorf("%d of %d frames from rank %d have arrived at %d", len(u.got[from]), x.small[k], from, rank)
			}
		}
	}
	for i, m := range x.large {
		switch {
		case x.isGone(m.to):
		case x.isGone(m.from):
			if !x.ranks[m.to].filled[m.handle] && slices.ContainsFunc(m.got, func(b byte) bool { return b != 0xEE }) {
				x.t.Errorf("the memory of message %d was used after the loss", i)
			}
		case !x.ranks[m.to].filled[m.handle] || !bytes.Equal(m.sent, m.got):
			x.t.Errorf("message %d has not arrived as it was sent", i)
		}
	}
}

// TestLossIsReportedToOtherForwarders checks that a process that treats a cluster as lost reports
// that once to each forwarder that has not reported it, because the cluster's processes may still
// have links there.
func TestLossIsReportedToOtherForwarders(t *testing.T) {
	for said := range 3 { // the number of forwarders that have reported the loss before
		n := newTestNet(t, []uint32{1, 1, 1}, netOptions{rows: 3, buffer: 4000}, 1, func(c *Config) { c.OnLoss = true })
		x := &lostRun{testNet: n, gone: 1}
		u := n.ranks[0]
		for range said {
			x.words = append(x.words, u.rails[len(x.words)])
		}
		for len(x.words) > 0 {
			x.word(0)
		}
		for u.step() > 0 {
		}
		for range 2 {
			u.locked(func() { u.set.Losses.Lose(1, "test") })
		}
		for u.step() > 0 {
		}
		for i, s := range u.rails {
			x.relay(s, 0)
			if want := i >= said; len(s.losts) != map[bool]int{true: 1}[want] {
				t.Errorf("%d have reported the loss; forwarder %d gets %v", said, i, s.losts)
			}
			for _, l := range s.losts {
				if l != (wire.Lost{Number: 1, Cluster: 1, Epoch: 1, Reason: "test"}) {
					t.Errorf("forwarder %d gets %v", i, l)
				}
			}
		}
	}
}

// TestForwarderThatLostClusterIsAvoided checks that messages to a cluster that one forwarder has
// lost go over the other forwarder, which still reaches it.
func TestForwarderThatLostClusterIsAvoided(t *testing.T) {
	n := newTestNet(t, []uint32{1, 1, 1}, netOptions{rows: 2, buffer: 4000}, 1, func(c *Config) { c.OnLoss = true })
	x := &lostRun{testNet: n, gone: 1, small: map[[2]int]int{}}
	u, v := n.ranks[0], n.ranks[1]
	send := func() { u.locked(func() { u.sendEager(1, []byte("x")) }) }
	send()
	v.rails[0].there.Cut()
	v.rails[0].there = nil
	send()
	x.words = append(x.words, u.rails[0])
	x.word(0)
	x.gone = -1
	x.settleLiving()
	send()
	x.settleLiving()
	if len(v.got[0]) != 3 || len(u.lost) > 0 {
		t.Errorf("%d of 3 messages have arrived, lost %v", len(v.got[0]), u.lost)
	}
}
