package link

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/memnet"
	"github.com/leidenzipper/zipper/internal/wire"
)

// wayNet is a job whose forwarders offer ways. The test opens the links that they name.
type wayNet struct {
	*testNet
	dialled chan wire.Way       // the Ways at which ranks dial
	links   chan transport.Link // the results of dialling; nil: it fails
}

func newWayNet(t *testing.T, rows int, sizes ...uint32) *wayNet {
	w := &wayNet{dialled: make(chan wire.Way, 8), links: make(chan transport.Link)}
	w.testNet = newTestNet(t, sizes, netOptions{rows: rows}, 1, func(c *Config) {
		c.OpenWay = func(_ context.Context, x wire.Way) (transport.Link, error) {
			w.dialled <- x
			if l := <-w.links; l != nil {
				return l, nil
			}
			return nil, errors.New("unreachable")
		}
	})
	return w
}

// control sends a rank a frame of its forwarder.
func (w *wayNet) control(s *testRail, t wire.Type, body wire.Body) {
	s.out = wire.AppendFrame(s.out, wire.Control(t), body)
	w.settle()
}

// tick lets a rank tick at a time after its start, and returns the ranks for which it then asks, by
// rail.
func (w *wayNet) tick(rank int, at time.Duration) (asked []string) {
	w.t.Helper()
	r := w.ranks[rank]
	r.locked(func() { r.set.Tick(at) })
	for _, s := range r.rails {
		for {
			var b [4096]byte
			k, err := s.there.TryRead(b[:])
			if err != nil {
				break
			}
			s.in = append(s.in, b[:k]...)
		}
		for whole(s.in) {
			h, _ := wire.ParseHeader(s.in)
			size := wire.HeaderLen + int(h.Length)
			if h.Type == wire.TypeAsk {
				a, err := wire.ParseAsk(s.in[wire.HeaderLen:size])
				if err != nil {
					w.t.Fatal(err)
				}
				asked = append(asked, fmt.Sprintf("%d over %d", a.Rank, s.rail))
			} else {
				w.pass(s, h, s.in[:size:size])
			}
			s.in = s.in[size:]
		}
	}
	return asked
}

// much lets a rank send another one more than a pair needs for a request.
func (w *wayNet) much(from, to int) {
	for range 300 {
		w.ranks[from].locked(func() { w.ranks[from].sendEager(to, []byte("x")) })
		w.settle()
	}
}

// directs returns the peers to which a rank has direct links.
func (w *wayNet) directs(rank int) (peers []int) {
	r := w.ranks[rank]
	r.locked(func() {
		for _, s := range r.set.Status() {
			if s.Peer >= 0 && s.Up {
				peers = append(peers, s.Peer)
			}
		}
	})
	return peers
}

// TestRequestsGoWhereWaysAreOffered checks that a rank asks only a forwarder that has offered ways,
// preferably the one over which the pair's frames go, and not again at once.
func TestRequestsGoWhereWaysAreOffered(t *testing.T) {
	w := newWayNet(t, 2, 2, 2)
	w.much(0, 2)
	if got := w.tick(0, time.Second); len(got) > 0 {
		t.Errorf("asked before an offer: %q", got)
	}
	w.control(w.ranks[0].rails[1], wire.TypeOffer, nil)
	w.much(0, 2) // its frames take rail 0
	if got := w.tick(0, 2*time.Second); !slices.Equal(got, []string{"2 over 1"}) {
		t.Errorf("asked %q, want the only forwarder that offers", got)
	}
	w.control(w.ranks[0].rails[0], wire.TypeOffer, nil)
	w.much(0, 2)
	if got := w.tick(0, 2*time.Second); len(got) > 0 {
		t.Errorf("asked %q within the pause", got)
	}
	for _, s := range w.ranks[1].rails {
		w.control(s, wire.TypeOffer, nil)
	}
	for from, want := range []string{"2 over 0", "2 over 1"} {
		w.much(from, 2)
		if got := w.tick(from, time.Minute); !slices.Equal(got, []string{want}) {
			t.Errorf("rank %d asked %q, want %q: the rails of the pairs", from, got, want)
		}
	}
}

// TestFailedAttemptLeavesPairWithForwarder checks that an attempt that fails is the only one, and
// that a later one carries the pair's frames.
func TestFailedAttemptLeavesPairWithForwarder(t *testing.T) {
	w := newWayNet(t, 1, 1, 1)
	way := wire.Way{Rank: 0, Instance: 7, Address: "z:1"}
	for _, works := range []bool{false, false, true} {
		w.control(w.ranks[1].rails[0], wire.TypeWay, &way)
		w.tick(1, time.Second)
		if got := <-w.dialled; got != way {
			t.Errorf("dialled %+v", got)
		}
		w.control(w.ranks[1].rails[0], wire.TypeWay, &way) // during the attempt it has no effect
		w.tick(1, time.Second)
		var here *memnet.Link
		var there transport.Link
		if works {
			here, there = must(memnet.Pipe(memnet.Options{}))
		}
		w.links <- there
		if works {
			if !w.ranks[0].set.DirectUp(1, here) {
				t.Error("the link is not taken")
			}
			if w.ranks[0].set.DirectUp(1, here) {
				t.Error("a second link is taken")
			}
			for len(w.directs(1)) == 0 {
				time.Sleep(100 * time.Microsecond)
			}
		} else {
			for dialling := true; dialling; time.Sleep(100 * time.Microsecond) {
				w.ranks[1].locked(func() { dialling = w.ranks[1].set.Peer(0).direct.State().String() == "dialling" })
			}
		}
		w.ranks[1].locked(func() { w.ranks[1].sendEager(0, []byte("x")) })
		w.settle()
	}
	if got := len(w.ranks[0].got[1]); got != 3 {
		t.Errorf("%d of 3 messages", got)
	}
	if a, b := w.directs(0), w.directs(1); len(a) != 1 || len(b) != 1 {
		t.Errorf("direct links %v, %v", a, b)
	}
	// The link is lost: the pair goes on over the forwarder, and takes a third link.
	w.ranks[0].locked(func() { w.ranks[0].set.Peer(1).direct.link.(*memnet.Link).Cut() })
	for _, u := range []int{0, 1} {
		w.ranks[u].locked(func() { w.ranks[u].sendEager(1-u, []byte("x")) })
	}
	w.settle()
	if a, b := w.directs(0), w.directs(1); len(a)+len(b) != 0 || len(w.ranks[0].got[1]) != 4 {
		t.Errorf("after the loss: direct links %v, %v, %d messages", a, b, len(w.ranks[0].got[1]))
	}
	w.ranks[0].locked(func() {
		if n := len(w.ranks[0].set.rails); n != 1 {
			t.Errorf("%d rails are in use", n)
		}
		if b := w.ranks[0].set.Peer(1).direct.in.buf; b != nil {
			t.Errorf("a lost link keeps %d bytes", len(b))
		}
	})
}

// must returns a pair of links as an end of the test's and one for a rank.
func must(a, b *memnet.Link) (*memnet.Link, transport.Link) { return a, b }

// TestStrangeWaysAreRefused checks that Ways that no honest forwarder sends end the link or have no
// effect, and that very many have a bounded effect.
func TestStrangeWaysAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		way  wire.Way
		ends bool
	}{
		"no such rank": {wire.Way{Rank: 9, Address: "z:1"}, true},
		"nobody":       {wire.Way{Rank: wire.Nobody, Address: "z:1"}, true},
		"itself":       {wire.Way{Rank: 0, Address: "z:1"}, true},
		"own cluster":  {wire.Way{Rank: 1, Address: "z:1"}, false},
	} {
		w := newWayNet(t, 1, 2, 1)
		w.control(w.ranks[0].rails[0], wire.TypeWay, &c.way)
		w.tickQuietly(0)
		if up := w.state(w.ranks[0].rails[0]).Up; up == c.ends || len(w.dialled) > 0 {
			t.Errorf("%s: the link is up: %v, and %d were dialled", name, up, len(w.dialled))
		}
	}
	w := newWayNet(t, 1, 1, 1)
	for range 10000 {
		w.ranks[0].rails[0].out = wire.AppendFrame(w.ranks[0].rails[0].out, wire.Control(wire.TypeWay),
			&wire.Way{Rank: 1, Address: "z:1"})
	}
	w.settle()
	w.ranks[0].locked(func() {
		if n := len(w.ranks[0].set.Demands.named); n > 64 {
			t.Errorf("%d Ways are kept", n)
		}
	})
}

// tickQuietly lets a rank tick once.
func (w *wayNet) tickQuietly(rank int) {
	w.ranks[rank].locked(func() { w.ranks[rank].set.Tick(time.Second) })
}
