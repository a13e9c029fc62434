package link

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/memnet"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/link/demand"
	"github.com/leidenzipper/zipper/mmpi/engine/link/failover"
)

// wayNet is a job whose forwarders offer ways. The test opens the links that they name.
type wayNet struct {
	*testNet
	dialled  chan wire.Way       // the Ways at which ranks dial
	links    chan transport.Link // the results of dialling; nil: it fails
	handles  uint64              // number of large messages that stream has sent
	warnings []string            // texts for the user
}

func newWayNet(t *testing.T, rows int, sizes ...uint32) *wayNet {
	return newWayNetWith(t, netOptions{rows: rows}, func(*Config) {}, sizes...)
}

func newWayNetWith(t *testing.T, opt netOptions, edit func(*Config), sizes ...uint32) *wayNet {
	w := &wayNet{dialled: make(chan wire.Way, 256), links: make(chan transport.Link)}
	w.testNet = newTestNet(t, sizes, opt, 1, func(c *Config) {
		edit(c)
		c.Warn = func(text string) { w.warnings = append(w.warnings, text) }
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

// until waits until done returns true.
func (w *wayNet) until(what string, done func() bool) {
	w.t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			w.t.Fatalf("not in time: %s", what)
		}
	}
}

// demands makes a rank find that it has sent much to another one.
func (w *wayNet) demands(from, to int) {
	r := w.ranks[from]
	r.locked(func() {
		s := r.set
		s.Demands.relayed(s.Peer(to), s.forwarders[0], 1<<30)
	})
}

// dialling returns how many attempts to open direct links a rank has in progress.
func (w *wayNet) dialling(rank int) (n int) {
	r := w.ranks[rank]
	r.locked(func() {
		for _, p := range r.set.peers.All() {
			if p != nil && p.direct != nil && p.direct.State() == failover.Dialing {
				n++
			}
		}
	})
	return n
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
		}
		w.until("the attempt ends", func() bool {
			state := ""
			w.ranks[1].locked(func() { state = w.ranks[1].set.Peer(0).direct.State().String() })
			return state != "dialling" && (len(w.directs(1)) > 0) == works
		})
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
		if up := w.state(w.ranks[0].rails[0]).Up; up == c.ends || w.dialling(0) > 0 {
			t.Errorf("%s: the link is up: %v, and %d are dialled", name, up, w.dialling(0))
		}
	}
	w := newWayNet(t, 1, 1, 1)
	for range 10000 {
		w.ranks[0].rails[0].out = wire.AppendFrame(w.ranks[0].rails[0].out, wire.Control(wire.TypeWay),
			&wire.Way{Rank: 1, Address: "z:1"})
	}
	w.settle()
	w.ranks[0].locked(func() {
		if n := len(w.ranks[0].set.Demands.ways); n > 64 {
			t.Errorf("%d Ways are kept", n)
		}
	})
}

// tickQuietly lets a rank tick once.
func (w *wayNet) tickQuietly(rank int) {
	w.ranks[rank].locked(func() { w.ranks[rank].set.Tick(time.Second) })
}

// TestPlacesLimitDiallers checks that a rank that dials all its peers asks for no more links than
// it may have, makes no more attempts, and has no more links afterwards.
func TestPlacesLimitDiallers(t *testing.T) {
	const peers = demand.MaxLinks + 36
	w := newWayNet(t, 1, peers, 1)
	s := w.ranks[peers].rails[0]
	w.control(s, wire.TypeOffer, nil)
	for v := range peers {
		w.demands(peers, v)
	}
	if got := w.tick(peers, time.Second); len(got) != demand.MaxLinks {
		t.Errorf("asked for %d links", len(got))
	}
	for v := range peers { // also for those that have asked themselves
		w.control(s, wire.TypeWay, &wire.Way{Rank: uint32(peers - 1 - v), Address: "z:1"})
		w.tick(peers, time.Second+demand.ClaimTime)
	}
	if got := w.dialling(peers); got != demand.MaxLinks {
		t.Errorf("%d attempts", got)
	}
	for range demand.MaxLinks {
		<-w.dialled
		_, there := must(memnet.Pipe(memnet.Options{}))
		w.links <- there
	}
	w.until("all links are up", func() bool { return len(w.directs(peers)) == demand.MaxLinks })
}

// TestNoRoomCostsNoPause checks that a pair for which there is no room asks as soon as there is.
func TestNoRoomCostsNoPause(t *testing.T) {
	w := newWayNet(t, 1, demand.MaxLinks+1, 1)
	const rank = demand.MaxLinks + 1
	w.control(w.ranks[rank].rails[0], wire.TypeOffer, nil)
	for v := range demand.MaxLinks {
		w.demands(rank, v)
	}
	w.tick(rank, time.Second)
	for range 3 {
		w.demands(rank, demand.MaxLinks)
		if got := w.tick(rank, time.Second); len(got) > 0 {
			t.Fatalf("asked %q without room", got)
		}
	}
	w.demands(rank, demand.MaxLinks)
	if got := w.tick(rank, time.Second+demand.ClaimTime); len(got) != 1 {
		t.Errorf("asked %q once there is room", got)
	}
}

// TestNewLinkReplacesLostOne checks that a rank takes another link of a peer that has noticed the
// loss of the last one first.
func TestNewLinkReplacesLostOne(t *testing.T) {
	w := newWayNet(t, 1, 1, 1)
	_, old := must(memnet.Pipe(memnet.Options{}))
	_, replacing := must(memnet.Pipe(memnet.Options{}))
	for i, l := range []transport.Link{old, replacing} {
		if !w.ranks[0].set.DirectUp(1, l) {
			t.Fatalf("link %d is not taken", i)
		}
		if got := w.directs(0); !slices.Equal(got, []int{1}) {
			t.Errorf("direct links %v", got)
		}
	}
	w.ranks[0].locked(func() {
		if w.ranks[0].set.Peer(1).direct.link != replacing {
			t.Error("the old link is in use")
		}
	})
}

// TestUserHearsOfFailures checks that the first rank of a cluster warns the user once that links
// cannot be opened.
func TestUserHearsOfFailures(t *testing.T) {
	w := newWayNet(t, 1, 1, 1)
	for i := range 2 * maxFailures {
		if want := min(i/maxFailures, 1); len(w.warnings) != want {
			t.Errorf("after %d failures: %q", i, w.warnings)
		}
		w.control(w.ranks[1].rails[0], wire.TypeWay, &wire.Way{Rank: 0, Address: "z:1"})
		w.tick(1, time.Second)
		<-w.dialled
		w.links <- nil
		w.until("the attempt ends", func() bool { return w.dialling(1) == 0 })
	}
	if len(w.warnings) != 1 || !strings.Contains(w.warnings[0], "no direct link to rank 0: unreachable; messages go through the forwarder") {
		t.Errorf("warnings %q", w.warnings)
	}
}

// deafLink is a link whose network says for how long the other host has not acknowledged anything.
type deafLink struct {
	transport.Link
	unheard time.Duration
}

func (l *deafLink) Unheard() (time.Duration, bool) { return l.unheard, true }

// TestCutOffLinkIsGivenUp checks that a direct link on demand is given up when the other host does
// not acknowledge what was sent, but not when it only sends nothing because the process is stopped.
func TestCutOffLinkIsGivenUp(t *testing.T) {
	w := newWayNet(t, 1, 1, 1)
	w.ranks[0].set.Limit().Ping = time.Second
	_, there := must(memnet.Pipe(memnet.Options{}))
	l := &deafLink{Link: there}
	if !w.ranks[0].set.DirectUp(1, l) {
		t.Fatal("the link is not taken")
	}
	begin := w.ranks[0].set.Now()
	for i, step := range []struct {
		at, unheard time.Duration
		up          bool
	}{{0, 0, true}, {2 * directUnheard, 0, true}, {3 * directUnheard, directUnheard, true}, {10 * time.Second, 0, true},
		{20 * time.Second, 0, true}, {20*time.Second + 2*directUnheard, directUnheard + 1, false}} {
		l.unheard = step.unheard
		w.tick(0, begin+step.at)
		w.settle() // The forwarder answers a Ping.
		if up := len(w.directs(0)) > 0; up != step.up {
			t.Errorf("step %d: the link is up: %v", i, up)
		}
	}
}

// TestEachForwarderIsToldOfTraffic checks that a forwarder learns that ranks use ways, although
// another one is told of all the traffic, and that it is told once.
func TestEachForwarderIsToldOfTraffic(t *testing.T) {
	w := newWayNet(t, 2, 1, 1)
	for _, s := range w.ranks[0].rails {
		w.control(s, wire.TypeOffer, nil)
	}
	d, now := &w.ranks[0].set.Demands, time.Second
	report := func() (all [2]bool) {
		w.ranks[0].locked(func() {
			now += reportEvery
			w.ranks[0].set.Tick(now)
			all = [2]bool{d.shares[0].informed, d.shares[1].informed}
		})
		return all
	}
	if got := report(); got != [2]bool{} {
		t.Errorf("without traffic: told %v", got)
	}
	w.ranks[0].locked(func() { d.traffic = wire.Moved{Messages: 3, Bytes: 30} })
	if got := report(); got != [2]bool{true, true} {
		t.Errorf("told %v", got)
	}
	if d.shares[0].Moved != d.traffic || d.shares[1].Moved != (wire.Moved{}) {
		t.Errorf("told %+v", d.shares)
	}
	w.control(w.ranks[0].rails[1], wire.TypeOffer, nil) // another forwarder, which knows nothing
	if got := [2]bool{d.shares[0].informed, d.shares[1].informed}; got != [2]bool{true, false} {
		t.Errorf("after an Offer: told %v", got)
	}
}

// TestForwardersShareReports checks that each of several forwarders is told only that traffic over
// direct links of which no other one was told.
func TestForwardersShareReports(t *testing.T) {
	w := newWayNet(t, 2, 1, 1)
	for _, s := range w.ranks[0].rails {
		w.control(s, wire.TypeOffer, nil)
	}
	d, now := &w.ranks[0].set.Demands, time.Second
	var shares []share
	for i, moved := range []wire.Moved{{Messages: 3, Bytes: 30}, {Messages: 4, Bytes: 70}, {Messages: 9, Bytes: 90}} {
		w.ranks[0].locked(func() {
			d.offer(0, i != 1) // the first forwarder is lost for a while
			d.traffic = moved
			now += reportEvery
			w.ranks[0].set.Tick(now)
			shares = slices.Clone(d.shares)
		})
	}
	if want := []share{{wire.Moved{Messages: 8, Bytes: 50}, true}, {wire.Moved{Messages: 1, Bytes: 40}, true}}; !slices.Equal(shares, want) {
		t.Errorf("reported %+v, want %+v", shares, want)
	}
}

// TestForgottenLinkIsClosed checks that a link without use is closed after minutes, and that the
// pair goes on through the forwarder.
func TestForgottenLinkIsClosed(t *testing.T) {
	w := newWayNet(t, 1, 1, 1)
	_, there := must(memnet.Pipe(memnet.Options{}))
	if !w.ranks[0].set.DirectUp(1, &deafLink{Link: there}) {
		t.Fatal("the link is not taken")
	}
	begin := w.ranks[0].set.Now()
	for _, c := range []struct {
		after time.Duration
		links int
	}{{time.Minute, 1}, {time.Hour, 0}} {
		w.ranks[0].locked(func() { w.ranks[0].set.Demands.tick(begin + c.after) })
		if got := w.directs(0); len(got) != c.links {
			t.Errorf("after %v: direct links %v", c.after, got)
		}
	}
	w.ranks[0].locked(func() { w.ranks[0].sendEager(1, []byte("x")) })
	w.settle()
	if got := len(w.ranks[1].got[0]); got != 1 {
		t.Errorf("%d messages have arrived", got)
	}
}
