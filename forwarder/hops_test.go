package forwarder

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/seal"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/memnet"
	"github.com/leidenzipper/zipper/internal/wire"
)

// chain is forwarders on one simulated network that join clusters in a tree.
type chain struct {
	t       *testing.T
	net     *memnet.Network
	layout  []wire.Cluster
	zippers []wire.Zipper
	benches []*bench
	rows    int // the number of rows that the job claims to have
}

// newChain starts a forwarder for each list of clusters, named z0, z1, …; without says which are
// not started.
func newChain(t *testing.T, layout []wire.Cluster, on [][]uint16, without ...int) *chain {
	return newChainOf(t, "", layout, on, without...)
}

// newChainOf does the same for forwarders with an operator's secret.
func newChainOf(t *testing.T, secret string, layout []wire.Cluster, on [][]uint16, without ...int) *chain {
	ch := &chain{t: t, net: memnet.New(memnet.Options{Partial: 5, Buffer: 64 << 10}), layout: layout}
	dial := func(ctx context.Context, addr string, failed func(error)) (transport.Link, error) {
		for {
			l, err := ch.net.Dial(ctx, addr)
			if err == nil || ctx.Err() != nil {
				return l, err
			}
			failed(err)
			select {
			case <-ctx.Done():
				return nil, err
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	for i, clusters := range on {
		var z wire.Zipper
		for _, c := range clusters {
			z.Ports = append(z.Ports, wire.Port{Network: c, Address: fmt.Sprintf("z%d", i)})
		}
		ch.zippers = append(ch.zippers, z)
	}
start:
	for i := range on {
		for _, w := range without {
			if w == i {
				ch.benches = append(ch.benches, nil)
				continue start
			}
		}
		ch.benches = append(ch.benches, start(t, network{
			listen: func(t *testing.T) transport.Listener {
				ln, err := ch.net.Listen(fmt.Sprintf("z%d", i))
				if err != nil {
					t.Fatal(err)
				}
				return ln
			},
			dial: func(transport.Listener) transport.Dialer { return ch.net },
		}, func(c *Config) { c.Dial, c.Secret = dial, secret }))
	}
	return ch
}

func (ch *chain) identity(job string, cluster, rank, zipper int) handshake.Identity {
	id := identity(job, ch.layout[cluster].Name, rank, ch.layout...)
	id.Zippers, id.Here, id.Rails = ch.zippers, zipper, ch.rows
	return id
}

// joinAll joins every rank at every forwarder on its network: links[virtual rank][zipper].
func (ch *chain) joinAll(job string) []map[int]*rank {
	ch.t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var links []map[int]*rank
	for c, cl := range ch.layout {
		for r := range int(cl.Size) {
			mine := map[int]*rank{}
			links = append(links, mine)
			for z := range ch.zippers {
				for _, p := range ch.zippers[z].Ports {
					if int(p.Network) != c {
						continue
					}
					wg.Go(func() {
						k, err := ch.benches[z].dial(ch.identity(job, c, r, z))
						if err != nil {
							ch.t.Error(err)
							return
						}
						mu.Lock()
						mine[z] = k
						mu.Unlock()
					})
				}
			}
		}
	}
	wg.Wait()
	if ch.t.Failed() {
		ch.t.FailNow()
	}
	return links
}

var threeInARow = []wire.Cluster{{Name: "a", Size: 2}, {Name: "b", Size: 1}, {Name: "c", Size: 2}}

// TestHops checks messages between all pairs of ranks two forwarders apart, in both directions at
// once, and to the ranks between them.
func TestHops(t *testing.T) {
	ch := newChain(t, threeInARow, [][]uint16{{0, 1}, {1, 2}})
	links := ch.joinAll("j")
	for v, l := range links {
		for z, r := range l {
			if int(r.Rank) != v || r.Ranks() != 5 || r.Namesake || r.Libraries[2] != "lib-c" {
				t.Fatalf("rank %d at forwarder %d: %+v", v, z, r.Layout)
			}
		}
	}
	a0, a1, b0, b1, c0, c1 := links[0][0], links[1][0], links[2][0], links[2][1], links[3][1], links[4][1]
	const n = 60
	var wg sync.WaitGroup
	run := func(f func() error) {
		wg.Go(func() {
			if err := f(); err != nil {
				t.Error(err)
			}
		})
	}
	run(func() error { return a0.stream(n, 3, 4, 2) })
	run(func() error { return a1.stream(n, 3, 4) })
	run(func() error { return c0.stream(n, 0, 1) })
	run(func() error { return c1.stream(n, 0, 1, 2) })
	for _, r := range []*rank{a0, a1, c0, c1} {
		run(func() error { return r.drain(2 * n) })
	}
	run(func() error { return b0.drain(n) })
	run(func() error { return b1.drain(n) })
	wg.Wait()
	// Leave in an order in which the middle is gone first.
	b0.bye()
	b1.bye()
	c0.bye()
	// The last ones still reach each other over two forwarders whose other ranks have left.
	c1.send(eager(4, 1, 1000, nil))
	a1.expect(wire.TypeEager)
	a1.send(eager(1, 4, 1000, nil))
	c1.expect(wire.TypeEager)
	c1.bye()
	a0.bye()
	a1.bye()
	for i, b := range ch.benches {
		s := b.ended()
		if !s.OK {
			t.Errorf("forwarder %d: %+v", i, s)
		}
		for _, tr := range s.Traffic {
			if tr.From == "a" && tr.To == "c" && tr.Frames != 4*n+1 {
				t.Errorf("forwarder %d: a to c %+v", i, tr)
			}
		}
	}
}

// TestHopsTree checks a star around one network with a chain behind it, and ranks three forwarders
// apart.
func TestHopsTree(t *testing.T) {
	layout := []wire.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: 1}, {Name: "c", Size: 1}, {Name: "d", Size: 1},
		{Name: "e", Size: 1}}
	ch := newChain(t, layout, [][]uint16{{3, 4}, {0, 1}, {1, 2}, {1, 3}})
	links := ch.joinAll("j")
	at := []*rank{links[0][1], links[1][1], links[2][2], links[3][3], links[4][0]}
	for i, from := range at {
		for k, to := range at {
			// those have several links; the way is another's matter
			if i == k || i == 1 || k == 1 || i == 3 && k == 4 || i == 4 && k == 3 {
				continue
			}
			from.send(eager(i, k, 1, pattern(100, i)))
			if h, _ := to.expect(wire.TypeEager); int(h.Src) != i {
				t.Fatalf("%d -> %d: from %d", i, k, h.Src)
			}
		}
	}
	for _, l := range links {
		for _, r := range l {
			r.bye()
		}
	}
	for _, b := range ch.benches {
		if s := b.ended(); !s.OK {
			t.Errorf("%+v", s)
		}
	}
}

// TestHopsDeath checks that the end of a rank, or of a forwarder, is reported two forwarders away,
// with its name.
func TestHopsDeath(t *testing.T) {
	t.Run("rank", func(t *testing.T) {
		links := newChain(t, threeInARow, [][]uint16{{0, 1}, {1, 2}}).joinAll("j")
		links[0][0].link.Close()
		_, body := links[4][1].expect(wire.TypeAbort)
		if a, err := wire.ParseAbort(body); err != nil || a.Rank != 0 ||
			!strings.Contains(a.Reason, "rank 0 of cluster a on host host-a") {
			t.Errorf("%+v %v", a, err)
		}
	})
	t.Run("abort", func(t *testing.T) {
		links := newChain(t, threeInARow, [][]uint16{{0, 1}, {1, 2}}).joinAll("j")
		links[3][1].send(abortFrame(7, 3, "enough"))
		_, body := links[1][0].expect(wire.TypeAbort)
		if a, err := wire.ParseAbort(body); err != nil || a.Rank != 3 || a.Code != 7 ||
			a.Reason != "enough, by virtual rank 3 (rank 0 of cluster c on host host-c) with code 7" {
			t.Errorf("%+v %v", a, err)
		}
	})
	t.Run("forwarder", func(t *testing.T) {
		ch := newChain(t, threeInARow, [][]uint16{{0, 1}, {1, 2}})
		links := ch.joinAll("j")
		ch.benches[1].f.mu.Lock()
		for p := range ch.benches[1].f.peers { // as if it were killed
			p.conn.Post(func() { p.conn.Link().Close() })
		}
		ch.benches[1].f.mu.Unlock()
		_, body := links[0][0].expect(wire.TypeAbort)
		if a, err := wire.ParseAbort(body); err != nil || a.Rank != wire.Nobody ||
			!strings.Contains(a.Reason, "the link to the forwarder z1 is lost") {
			t.Errorf("%+v %v", a, err)
		}
	})
}

// TestHopsRefused checks that impossible jobs are refused by the forwarder that detects it, and
// that all waiting ranks are told.
func TestHopsRefused(t *testing.T) {
	on := [][]uint16{{0, 1}, {1, 2}}
	t.Run("loop", func(t *testing.T) {
		ch := newChain(t, threeInARow, [][]uint16{{0, 1}, {1, 2}, {0, 2}}, 2)
		if _, err := ch.benches[0].dial(ch.identity("j", 0, 0, 0)); err == nil ||
			!strings.Contains(err.Error(), "closes a loop") {
			t.Error(err)
		}
	})
	t.Run("foreign cluster", func(t *testing.T) {
		ch := newChain(t, threeInARow, on)
		if _, err := ch.benches[0].dial(ch.identity("j", 2, 0, 0)); err == nil ||
			!strings.Contains(err.Error(), "does not reach this forwarder") {
			t.Error(err)
		}
	})
	t.Run("other forwarder missing", func(t *testing.T) {
		ch := newChain(t, threeInARow, on, 1)
		id := ch.identity("j", 0, 0, 0)
		id.TimeoutMS = 300
		if _, err := ch.benches[0].dial(id); err == nil || !strings.Contains(err.Error(), "z1") {
			t.Error(err)
		}
	})
	t.Run("rank missing", func(t *testing.T) {
		ch := newChain(t, threeInARow, on)
		errs := make(chan error, 2)
		for _, who := range [][2]int{{0, 0}, {2, 1}} {
			go func() {
				id := ch.identity("j", who[0], 0, who[1])
				id.TimeoutMS = 1000
				_, err := ch.benches[who[1]].dial(id)
				errs <- err
			}()
		}
		for range 2 {
			if err := <-errs; err == nil || !strings.Contains(err.Error(), "cluster b (1 rank)") {
				t.Error(err)
			}
		}
	})
	t.Run("rank leaves", func(t *testing.T) {
		ch := newChain(t, threeInARow, on)
		ctx, cancel := context.WithCancel(context.Background())
		errs := make(chan error, 1)
		go func() {
			_, err := ch.benches[1].dial(ch.identity("j", 2, 0, 1))
			errs <- err
		}()
		go ch.benches[0].dialContext(ctx, ch.identity("j", 0, 1, 0))
		for ch.benches[1].f.Status().Jobs == nil || len(ch.benches[1].f.Status().Jobs) == 0 ||
			ch.benches[1].f.Status().Jobs[0].Joined < 2 {
			time.Sleep(time.Millisecond)
		}
		cancel()
		if err := <-errs; err == nil || !strings.Contains(err.Error(), "rank 1 of cluster a left while") {
			t.Error(err)
		}
	})
}

// TestBridgeEndsWithForbiddenFrame checks that a forwarder that sends forbidden frames loses the
// bridge, and that the job ends with its name.
func TestBridgeEndsWithForbiddenFrame(t *testing.T) {
	for name, frame := range map[string][]byte{
		"source of the receiver":    eager(0, 1, 1, nil),
		"unknown source":            eager(9, 1, 1, nil),
		"destination of the sender": eager(3, 4, 1, nil),
		"unknown destination":       eager(3, 9, 1, nil),
		"Join in a running job": wire.AppendFrame(nil, wire.Header{Type: wire.TypeJoin},
			&wire.Join{Version: wire.Version}),
	} {
		t.Run(name, func(t *testing.T) {
			ch := newChain(t, threeInARow, [][]uint16{{0, 1}, {1, 2}})
			links := ch.joinAll("j")
			_ = ch.benches[1].f.named("j").first(0).conn.Send(frame)
			_, body := links[0][0].expect(wire.TypeAbort)
			if a, err := wire.ParseAbort(body); err != nil || !strings.Contains(a.Reason,
				"the forwarder z1 broke the protocol") {
				t.Errorf("%+v %v", a, err)
			}
		})
	}
}

// TestBridgeWithMalformedFrameEndsGathering checks that malformed frames from a forwarder end a
// gathering job at once, before and after the forwarders know each other.
func TestBridgeWithMalformedFrameEndsGathering(t *testing.T) {
	nonsense := bytes.Repeat([]byte{200}, wire.HeaderLen)
	wait := func(ch *chain) <-chan error {
		refused := make(chan error, 1)
		go func() {
			_, err := ch.benches[0].dial(ch.identity("j", 0, 0, 0))
			refused <- err
		}()
		return refused
	}
	check := func(t *testing.T, refused <-chan error, want string) {
		t.Helper()
		if err := <-refused; err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Error(err)
		}
	}
	t.Run("stranger", func(t *testing.T) {
		ch := newChain(t, threeInARow, [][]uint16{{0, 1}, {1, 2}}, 1)
		ln, err := ch.net.Listen("z1")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		refused := wait(ch)
		l, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		x := &rank{t: t, link: l}
		x.send(nonsense)
		// A stranger who has named that address does not learn what answers there.
		check(t, refused, errNoForwarder.Error())
		x.expectEOF()
	})
	t.Run("bridge", func(t *testing.T) {
		ch := newChain(t, threeInARow, [][]uint16{{0, 1}, {1, 2}})
		refused := wait(ch)
		liar := ch.benches[1].f
		for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
			if r := liar.named("j"); r != nil {
				if p := r.first(0); p != nil {
					_ = p.conn.Send(nonsense)
					break
				}
			}
			if time.Now().After(end) {
				t.Fatal("the forwarders do not meet")
			}
		}
		check(t, refused, "bad frame from the forwarder z1: wire: frame of 3368601800 bytes, at most 1052672 allowed")
	})
}

// TestBridgeRefusedLeavesNoJob checks that a stranger whose link between forwarders is refused
// leaves no job behind, regardless of the time-out that it asks for.
func TestBridgeRefusedLeavesNoJob(t *testing.T) {
	ch := newChain(t, threeInARow, [][]uint16{{0, 1}, {1, 2}}, 1)
	b := ch.benches[0]
	for i := range 3 {
		id := ch.identity(name(i), 1, 0, 1)
		id.TimeoutMS = (1000 * time.Hour).Milliseconds()
		l, err := ch.net.Dial(context.Background(), "z0")
		if err != nil {
			t.Fatal(err)
		}
		x := &rank{t: t, link: l}
		h, challenge := x.expect(wire.TypeChallenge)
		// the other way round: z0 is the one to dial
		m := handshake.NewBridger(certificate(t, id), 0, 0, &handshake.Terms{Keys: linkKeys(t)}, handshake.Nonce())
		m.HandleMessage(h, challenge)
		e, _ := m.NextEvent()
		x.send(e.Frame)
		_, body := x.expect(wire.TypeRefuse)
		if r, err := wire.ParseRefuse(body); err != nil || r.Code != wire.RefuseLayout {
			t.Errorf("%+v, %v", r, err)
		}
		l.Close()
	}
	b.settled()
}

// certificate returns the certificate with which a forwarder proves that such a rank has joined it.
func certificate(t *testing.T, id handshake.Identity) handshake.Certificate {
	j, err := handshake.NewJoiner(id, handshake.Nonce())
	if err != nil {
		t.Fatal(err)
	}
	a := handshake.NewAcceptor([32]byte{1}, &handshake.Terms{Keys: linkKeys(t)})
	deliver := func(e handshake.Event, to func(wire.Header, []byte)) {
		h, err := wire.ParseHeader(e.Frame)
		if err != nil {
			t.Fatal(err)
		}
		to(h, e.Frame[wire.HeaderLen:])
	}
	e, _ := a.NextEvent()
	deliver(e, j.HandleMessage)
	e, _ = j.NextEvent()
	deliver(e, a.HandleMessage)
	if e, _ = a.NextEvent(); e.Kind != handshake.Verified {
		t.Fatalf("%+v", e)
	}
	return a.Certificate(e.Join)
}

func linkKeys(t *testing.T) *seal.Forwarder {
	f, err := seal.NewForwarder([seal.PublicLen]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	return f
}
