package engine

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder"
)

// railed joins a job through n forwarders behind proxies.
func railed(t testing.TB, n int, sizes ...int) ([]*Engine, []*proxy, []*forwarder.Forwarder) {
	var proxies []*proxy
	var forwarders []*forwarder.Forwarder
	var addrs []string
	for range n {
		f, addr := serve(t)
		p := newProxy(t, addr)
		proxies, forwarders, addrs = append(proxies, p), append(forwarders, f), append(addrs, p.ln.Addr().String())
	}
	engines := joinAll(t, addrs, sizes...)
	for _, f := range forwarders {
		full(t, f, len(engines))
	}
	ready(t, engines) // only messages sent from then on are spread over all rails
	return engines, proxies, forwarders
}

// full waits until a forwarder has links to all ranks. The ranks may not know of these yet (ready).
func full(t testing.TB, f *forwarder.Forwarder, ranks int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		s := f.Status()
		if len(s.Jobs) == 1 && s.Jobs[0].State == "running" && s.Jobs[0].Joined == ranks {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("a forwarder does not get its ranks back: %+v", s.Jobs)
		}
	}
}

// ready waits until every engine sees every other rank over every rail.
func ready(t testing.TB, engines []*Engine) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		all := true
		for _, e := range engines {
			for _, r := range e.Rails() {
				all = all && r.Up && r.Unreachable == 0
			}
		}
		if all {
			return
		}
		if time.Now().After(end) {
			t.Fatal("not all rails come back")
		}
	}
}

// finishAll runs f and Finish in every engine.
func finishAll(t *testing.T, engines []*Engine, f func(e *Engine) error) {
	var wg sync.WaitGroup
	for _, e := range engines {
		wg.Go(func() {
			if err := f(e); err != nil {
				t.Errorf("rank %d: %v (%v, %q)", e.world.Rank, err, e.Err(), e.native.(*fakeNative).failed)
			}
			if err := e.Finish(); err != nil {
				t.Errorf("rank %d: %v", e.world.Rank, err)
			}
		})
	}
	wg.Wait()
}

// TestTrafficUsesAllRails checks that the traffic of TestTrafficArrivesInOrder uses all of two and
// three rails. The first cluster has as many ranks as there are rails, so every rail is home to the
// messages of some pair; the load of the home rail decides the share of large messages that the
// others take.
func TestTrafficUsesAllRails(t *testing.T) {
	for _, sizes := range [][]int{{2, 1, 2}, {3, 1, 2}} {
		n := sizes[0]
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			engines, proxies, _ := railed(t, n, sizes...)
			finishAll(t, engines, func(e *Engine) error {
				return exchangeAll(t, e, 30, rand.New(rand.NewPCG(1, uint64(e.world.Rank))))
			})
			for i, p := range proxies {
				if p.carried() < 1<<19 {
					t.Errorf("rail %d carried only %d bytes", i, p.carried())
				}
			}
		})
	}
}

// exchangeWhileCut runs rounds of exchangeAll while it calls cut, which ends a link somewhere,
// again and again. It returns the number of calls.
func exchangeWhileCut(t *testing.T, engines []*Engine, seed uint64, cut func(r *rand.Rand)) (cuts int) {
	t.Helper()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		r := rand.New(rand.NewPCG(seed, 99))
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(r.IntN(20)) * time.Millisecond):
			}
			cut(r)
			cuts++
		}
	})
	var sent sync.WaitGroup
	sent.Add(len(engines))
	finishAll(t, engines, func(e *Engine) error {
		err := exchangeAll(t, e, 60, rand.New(rand.NewPCG(seed, uint64(e.world.Rank))))
		sent.Done()
		if e.world.Rank == 0 {
			sent.Wait()
			close(stop)
			wg.Wait()
		}
		return err
	})
	if cuts < 3 {
		t.Errorf("only %d cuts: nothing was tested", cuts)
	}
	return cuts
}

// TestCutLinksLoseNothing checks that no message is lost, doubled or put out of order while links
// are cut again and again, one at a time, with one forwarder and with two.
func TestCutLinksLoseNothing(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			n := 1 + int(seed%2)
			engines, proxies, _ := railed(t, n, 2, 1, 2)
			cuts := exchangeWhileCut(t, engines, seed, func(r *rand.Rand) {
				proxies[r.IntN(n)].cut(r)
				ready(t, engines)
			})
			t.Logf("%d cuts", cuts)
		})
	}
}

// stream sends large messages both ways between the first ranks of two clusters and checks every
// byte. It calls each after every message.
func stream(e *Engine, c *Comm, messages, size int, each func(i int)) error {
	for i := range messages {
		if err := swap(e, c, 1-e.world.Rank, i, size); err != nil {
			return err
		}
		each(i)
	}
	return nil
}

// swap sends message i, of size bytes, to another rank, receives one from it and checks every byte.
func swap(e *Engine, c *Comm, other, i, size int) error {
	out, in := make([]byte, size), make([]byte, size)
	fill(out, i, e.world.Rank)
	var s, r Cell
	if err := e.Irecv(c, KindP2P, in, other, 1, &r); err != nil {
		return err
	}
	if err := e.Isend(c, KindP2P, out, other, 1, false, &s); err != nil {
		return err
	}
	await(e, &s)
	await(e, &r)
	if err := s.Err(); err != nil {
		return err
	}
	if err := r.Err(); err != nil {
		return err
	}
	want := make([]byte, size)
	if fill(want, i, other); string(in) != string(want) {
		return fmt.Errorf("rank %d: message %d from rank %d is damaged", e.world.Rank, i, other)
	}
	clear(in) // late segments would show up in other memory
	return nil
}

func fill(b []byte, i, rank int) {
	x := uint32(i*2654435761 + rank + 1)
	for k := range b {
		x = x*1664525 + 1013904223
		b[k] = byte(x >> 24)
	}
}

// TestReturnedForwarderCarriesItsShare checks that a stream goes on at once when one of two
// forwarders dies, and that the forwarder carries its share again once it is back.
func TestReturnedForwarderCarriesItsShare(t *testing.T) {
	engines, proxies, forwarders := railed(t, 2, 1, 1)
	var worst time.Duration
	var back int64
	finishAll(t, engines, func(e *Engine) error {
		last := time.Now()
		return stream(e, spanAll(t, e), 40, 3<<20, func(i int) {
			if e.world.Rank != 0 {
				return
			}
			worst = max(worst, time.Since(last))
			switch i {
			case 10:
				go proxies[0].kill()
			case 20:
				proxies[0].revive()
				full(t, forwarders[0], 2)
				ready(t, engines)
				back = proxies[0].carried()
			}
			last = time.Now()
		})
	})
	back = proxies[0].carried() - back
	t.Logf("longest message %v; %d bytes over the forwarder after its return", worst, back)
	if back < 10<<20 {
		t.Errorf("only %d bytes over the forwarder after its return", back)
	}
}

// TestDeadRankEndsTheJob checks that all ranks end with an error that names a rank that every
// forwarder has lost.
func TestDeadRankEndsTheJob(t *testing.T) {
	engines, _, _ := railed(t, 2, 1, 2)
	ready(t, engines)
	engines[2].close() // as the kernel does when a process dies
	for _, e := range engines[:2] {
		var cell Cell
		if err := e.Irecv(spanAll(t, e), KindP2P, nil, 2-2*e.world.Rank, 1, &cell); err != nil && e.Err() == nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(5 * time.Second); e.Err() == nil && time.Now().Before(end); {
			e.Progress(time.Millisecond)
		}
		if n := e.native.(*fakeNative); !strings.Contains(n.failed, "virtual rank 2") || n.code == 0 {
			t.Errorf("rank %d: %d, %q", e.world.Rank, n.code, n.failed)
		}
	}
}

// TestImpossibleFrameEndsOnlyTheLink checks that a frame that no rank can have sent ends the link
// over which it arrived and not the job, and that it is not used.
func TestImpossibleFrameEndsOnlyTheLink(t *testing.T) {
	for _, n := range []int{1, 2} {
		engines, proxies, _ := railed(t, n, 1, 1)
		for range 3 {
			before := proxies[0].links()
			proxies[0].spoil(t)
			for end := time.Now().Add(10 * time.Second); proxies[0].links() == before; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("with %d forwarders: the link is not made again", n)
				}
			}
			ready(t, engines)
		}
		randomTraffic(t, engines, 1)
	}
}

// TestLinkThatIsAlwaysBadEndsTheJob checks that a link that carries only impossible frames ends the
// job with an error that has the link's name and the reason.
func TestLinkThatIsAlwaysBadEndsTheJob(t *testing.T) {
	engines, proxies, _ := railed(t, 1, 1, 1)
	begin := time.Now()
	for engines[0].Err() == nil || engines[1].Err() == nil {
		up := true
		for _, e := range engines {
			e.Progress(time.Millisecond)
			up = up && e.Rails()[0].Up
		}
		if up {
			proxies[0].spoil(t)
		}
		if time.Since(begin) > 10*time.Second {
			t.Fatal("not within 10 s")
		}
	}
	bad := 0
	for _, e := range engines {
		n := e.native.(*fakeNative)
		if strings.Contains(n.failed, "frame type 0") && strings.Contains(n.failed, "times in a row") {
			bad++
		}
		if !strings.Contains(n.failed, "link") || n.code == 0 {
			t.Errorf("rank %d: %d, %q", e.world.Rank, n.code, n.failed)
		}
	}
	if bad == 0 {
		t.Error("no rank names the fault")
	}
}

// TestLossOfAllForwardersEndsTheJob checks that all ranks end after the limit, with an error that
// names the link, if no forwarder is left.
func TestLossOfAllForwardersEndsTheJob(t *testing.T) {
	engines, proxies, _ := railed(t, 2, 1, 1)
	for _, e := range engines {
		e.lock()
		e.links.Limit().NoRail = 300 * time.Millisecond
		e.unlock()
	}
	proxies[0].kill()
	proxies[1].kill()
	for _, e := range engines {
		begin := time.Now()
		for e.Err() == nil && time.Since(begin) < 10*time.Second {
			e.Progress(time.Millisecond)
		}
		if n := e.native.(*fakeNative); !strings.Contains(n.failed, "no forwarder could be reached") ||
			!strings.Contains(n.failed, "link rank") {
			t.Errorf("rank %d: %q", e.world.Rank, n.failed)
		}
	}
}

// TestLossOfAllForwardersAtTheEndIsIgnored checks that, once all ranks have reached the end, it is
// no error if no forwarder reaches other ranks, which may have left, or if these have not
// acknowledged all frames.
func TestLossOfAllForwardersAtTheEndIsIgnored(t *testing.T) {
	engines, proxies, _ := railed(t, 2, 1, 1)
	e := engines[0]
	e.lock()
	e.links.Limit().NoRail = 50 * time.Millisecond
	e.links.Finished()
	e.unlock()
	var cell Cell
	if err := e.Isend(spanAll(t, e), KindP2P, []byte{1}, 1, 0, false, &cell); err != nil {
		t.Fatal(err)
	}
	proxies[0].kill()
	proxies[1].kill()
	if err := e.await(byeTimeout/2, "end", func() bool { return e.links.FinishFailed() }); err != nil {
		t.Error(err)
	}
	if err := e.ignoreTimeout(failure(ErrLink, "no answer")); err != nil {
		t.Error(err)
	}
	if n := e.native.(*fakeNative); e.Err() != nil || n.failed != "" {
		t.Errorf("%v, %q", e.Err(), n.failed)
	}
}

// TestAbortAtTheEndIsIgnored checks that, once all ranks have reached the end, an Abort is no
// error.
func TestAbortAtTheEndIsIgnored(t *testing.T) {
	engines, _, _ := railed(t, 1, 1, 1)
	e := engines[0]
	e.lock()
	e.links.Finished()
	e.unlock()
	engines[1].Abort(3, "too late")
	gone := func() bool { return e.links.FinishFailed() }
	if err := e.await(10*time.Second, "end of the job", gone); err != nil {
		t.Error(err)
	}
	if n := e.native.(*fakeNative); e.Err() != nil || n.failed != "" {
		t.Errorf("%v, %q", e.Err(), n.failed)
	}
}
