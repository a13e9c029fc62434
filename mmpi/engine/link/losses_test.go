package link

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/leidenzipper/zipper/mmpi/engine/link/failover"
)

// lossesRun is one run of TestLossesRandom.
type lossesRun struct {
	*testNet
	r     *rand.Rand // random choices, from the seed of the run
	lossy int        // index of the row of forwarders that has losses
	hops  bool       // The clusters are in a row, and no links are lost.
	// only says that there is one row. Its links are lost once, because six losses in a row end the
	// job.
	only  bool
	small map[[2]int][][]byte // payloads of frames by sender and receiver, in order
	large []*largeMessage     // large messages that were sent
}

// largeMessage is a large message of TestLossesRandom.
type largeMessage struct {
	from   int    // virtual rank of the sender
	to     int    // virtual rank of the receiver
	handle uint64 // handle of both Source and Sink
	sent   []byte // buffer of the sender
	got    []byte // buffer of the receiver
}

// lossesRandom performs one run of TestLossesRandom.
func lossesRandom(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	sizes := [][]uint32{{1, 1}, {2, 1}, {1, 1, 1}}[r.IntN(3)]
	opt := netOptions{rows: 1 + r.IntN(3), hops: len(sizes) == 3}
	if r.IntN(2) == 0 && !opt.hops {
		opt.direct = [][2]int{{0, int(sizes[0])}}
	}
	n := newTestNet(t, sizes, opt, 1+seed<<16, func(c *Config) {
		c.Limits.DataWindow, c.Limits.Segment, c.Limits.EagerWindow = 4000, 400, 1<<20
	})
	run := &lossesRun{testNet: n, r: r, lossy: r.IntN(opt.rows), hops: opt.hops, only: opt.rows == 1,
		small: map[[2]int][][]byte{}}
	for range 400 {
		run.event(r.IntN(len(n.ranks)))
		n.check()
	}
	n.settle()
	for _, rank := range n.ranks {
		for _, s := range rank.rails {
			if s.peer < 0 && s.there == nil {
				n.back(s)
			}
		}
	}
	n.settle()
	run.compare()
}

// event makes an event happen at a rank.
func (x *lossesRun) event(rank int) {
	u := x.ranks[rank]
	s := u.rails[x.r.IntN(len(u.rails))]
	switch x.r.IntN(12) {
	case 0, 1, 2: // a message to another cluster
		to := x.r.IntN(len(x.ranks))
		if x.ranks[to].cluster != u.cluster {
			x.send(rank, to)
		}
	case 3:
		switch {
		case s.there == nil:
		case s.peer >= 0 && x.state(s).Up && x.state(x.direct(s.peer, rank)).Up:
			x.part(rank, s.peer)
		case s.peer < 0 && !x.hops && s.rail == x.lossy && (!x.only || x.state(s).Losses == 0):
			x.lose(s)
		}
	case 4: // the end of a loss
		switch {
		case s.there != nil || x.state(s).State != failover.Dialing.String():
		case s.peer < 0:
			x.back(s)
		case x.state(x.direct(s.peer, rank)).State == failover.Down.String():
			x.meet(s.peer, rank)
		}
	case 5, 6, 7, 8:
		x.relay(s, 1+x.r.IntN(3))
	default:
		u.step()
	}
}

// send sends a frame or a large message.
func (x *lossesRun) send(rank, to int) {
	from, dst := x.ranks[rank], x.ranks[to]
	pair := [2]int{rank, to}
	if x.r.IntN(2) == 0 {
		b := pattern(len(x.small[pair]), x.r.IntN(500))
		x.small[pair] = append(x.small[pair], b)
		from.locked(func() {
			from.sendEager(to, b)
			from.set.Flush()
		})
		return
	}
	m := &largeMessage{from: rank, to: to, handle: uint64(len(x.large) + 1)}
	m.sent = pattern(len(x.large), 1+x.r.IntN(2500))
	m.got = make([]byte, len(m.sent))
	x.large = append(x.large, m)
	dst.locked(func() {
		k := &Sink{Handle: m.handle, Buf: m.got}
		dst.sinks[m.handle] = k
		dst.set.Peer(rank).Open(k)
	})
	from.locked(func() {
		src := &Source{Handle: m.handle, Receiver: m.handle, Buf: m.sent}
		from.sources[m.handle] = src
		from.set.Peer(to).Bulk(src)
		from.set.Flush()
	})
}

// compare checks that everything has arrived as it was sent, and that nothing is left.
func (x *lossesRun) compare() {
	for pair, sent := range x.small {
		got := x.ranks[pair[1]].got[pair[0]]
		if len(got) != len(sent) {
			x.t.Fatalf("%d of %d frames from %d to %d have arrived", len(got), len(sent), pair[0], pair[1])
		}
		for i := range sent {
			if !bytes.Equal(got[i], sent[i]) {
				x.t.Errorf("frame %d of %d from %d to %d has %d of %d bytes, or others", i, len(sent), pair[0], pair[1],
					len(got[i]), len(sent[i]))
			}
		}
	}
	for i, m := range x.large {
		if !x.ranks[m.to].filled[m.handle] || !x.ranks[m.from].written[m.handle] || !bytes.Equal(m.got, m.sent) {
			x.t.Errorf("large message %d of %d from %d to %d: filled %v, written %v", i, len(x.large), m.from, m.to,
				x.ranks[m.to].filled[m.handle], x.ranks[m.from].written[m.handle])
		}
	}
	for rank, r := range x.ranks {
		if r.set.Unacked() != 0 || r.set.Unsent() != 0 {
			x.t.Errorf("rank %d: %d frames are not acknowledged, %d not sent", rank, r.set.Unacked(), r.set.Unsent())
		}
	}
}
