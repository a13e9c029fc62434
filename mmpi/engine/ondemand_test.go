package engine

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/forwarder/nat"
	"github.com/leidenzipper/zipper/forwarder/report"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/mmpi/engine/link"
	"github.com/leidenzipper/zipper/mmpi/engine/link/demand"
)

// straight is a kernel whose ways begin where they lead to, so that closing one has no effect.
type straight struct {
	mu     sync.Mutex
	opened int
	open   map[netip.AddrPort]bool
}

func (k *straight) Forwards(netip.Addr) bool { return true }

func (k *straight) OpenWays(ways []nat.Way) (at []netip.AddrPort, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range ways {
		if k.open == nil {
			k.open = map[netip.AddrPort]bool{}
		}
		k.open[w.To] = true
		k.opened++
		at = append(at, w.To)
	}
	return at, nil
}

func (k *straight) CloseWays(at []netip.AddrPort) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, a := range at {
		delete(k.open, a)
	}
	return nil
}

// openings returns the number of ways that were opened.
func (k *straight) openings() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.opened
}

// onDemand joins a job at n forwarders that open ways.
func onDemand(t testing.TB, n int, job jobenv.Job, sizes ...int) ([]*Engine, []*forwarder.Forwarder, *straight) {
	t.Helper()
	kernel := &straight{}
	job.ID, job.Secret, job.Timeout, job.DirectAllow = "test", "s", 20*time.Second, "127.0.0.1"
	var all []*forwarder.Forwarder
	for range n {
		f, addr := serve(t, func(c *forwarder.Config) { c.NAT = kernel })
		all, job.Forwarders = append(all, f), append(job.Forwarders, addr)
	}
	engines := joinJob(t, job, sizes...)
	for _, f := range all {
		full(t, f, len(engines))
	}
	return engines, all, kernel
}

// directTo reports whether an engine has a direct link to a rank.
func directTo(e *Engine, rank int) bool {
	return slices.ContainsFunc(e.Rails(), func(s link.Status) bool { return s.Peer == rank && s.Up })
}

// untilDirect lets ranks 0 and 1, the only ones of a job, exchange streams until they have a direct
// link.
func untilDirect(t *testing.T, engines []*Engine, comms []*Comm) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !directTo(engines[0], 1) || !directTo(engines[1], 0); {
		if time.Now().After(end) {
			t.Fatalf("no direct link: %+v, %+v", engines[0].Rails(), engines[1].Rails())
		}
		streams(t, engines, comms)
	}
}

// streams lets ranks 0 and 1 exchange some messages of 1 MiB, and of a few bytes.
func streams(t *testing.T, engines []*Engine, comms []*Comm) {
	t.Helper()
	var both sync.WaitGroup
	for i, e := range engines {
		both.Go(func() {
			for _, size := range []int{8, 1 << 20} {
				if err := stream(e, comms[i], 10, size, func(int) {}); err != nil {
					t.Errorf("rank %d: %v", i, err)
				}
			}
		})
	}
	both.Wait()
}

// payload returns the payload, in bytes, that forwarders have carried so far in their only job.
func payload(all []*forwarder.Forwarder) (n uint64) {
	for _, f := range all {
		for _, d := range f.Status().Jobs[0].Traffic {
			n += d.PayloadBytes
		}
	}
	return n
}

// moved waits until forwarders have seen the end of their only job, and returns the traffic over
// direct links that its ranks have reported to them.
func moved(all []*forwarder.Forwarder) (sum report.KernelTraffic) {
	for _, f := range all {
		for end := time.Now().Add(20 * time.Second); len(f.Status().Past) == 0 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		k := f.Status().Totals.Kernel
		sum.Messages, sum.PayloadBytes = sum.Messages+k.Messages, sum.PayloadBytes+k.PayloadBytes
	}
	return sum
}

// TestPairWithMuchTrafficGoesDirect checks that a pair gets a direct link once it has exchanged
// much, at each level, over one forwarder and several, and that the forwarders carry nothing from
// then on.
func TestPairWithMuchTrafficGoesDirect(t *testing.T) {
	for _, n := range []int{1, 2} {
		for _, level := range []string{"plain", "checked", "sealed"} {
			t.Run(fmt.Sprint(n, level), func(t *testing.T) {
				engines, all, kernel := onDemand(t, n, jobenv.Job{Level: level}, 1, 1)
				comms := []*Comm{spanAll(t, engines[0]), spanAll(t, engines[1])}
				if directTo(engines[0], 1) || kernel.openings() > 0 {
					t.Error("a direct link is there from the start")
				}
				untilDirect(t, engines, comms)
				before := payload(all)
				if before == 0 {
					t.Error("nothing went through the forwarders at first")
				}
				streams(t, engines, comms)
				if now := payload(all); now != before {
					t.Errorf("%d bytes through the forwarders after that", now-before)
				}
				finishAll(t, engines, func(e *Engine) error {
					e.lock()
					defer e.unlock()
					return e.check()
				})
				if n, least := moved(all).PayloadBytes, uint64(20*(1<<20+8)); n < least {
					t.Errorf("%d bytes past the forwarders are reported, want at least the %d of the last streams", n, least)
				}
			})
		}
	}
}

// TestLostLinkOnDemandComesBack checks that a pair whose direct link is cut goes on through the
// forwarder, and gets another link.
func TestLostLinkOnDemandComesBack(t *testing.T) {
	engines, all, _ := onDemand(t, 1, jobenv.Job{}, 1, 1)
	comms := []*Comm{spanAll(t, engines[0]), spanAll(t, engines[1])}
	for range 3 {
		untilDirect(t, engines, comms)
		before := payload(all)
		sever(engines[0], rand.New(rand.NewPCG(1, 1)))
		for end := time.Now().Add(20 * time.Second); payload(all) == before; {
			if time.Now().After(end) {
				t.Fatal("nothing goes through the forwarder after the loss")
			}
			streams(t, engines, comms)
		}
	}
	finishAll(t, engines, func(*Engine) error { return nil })
}

// TestCutLinksOnDemandLoseNothing checks that no message is lost, doubled or put out of order while
// direct links are opened on demand and cut again and again: over one forwarder or several, and in
// jobs that end with a link to the forwarder, or outlive clusters.
func TestCutLinksOnDemandLoseNothing(t *testing.T) {
	for name, c := range map[string]struct {
		forwarders int
		job        jobenv.Job
	}{
		"one": {1, jobenv.Job{}}, "two": {2, jobenv.Job{}}, "impatient": {1, jobenv.Job{Patience: "0s"}},
		"outlives": {2, jobenv.Job{OnLoss: jobenv.LossContinues}},
	} {
		t.Run(name, func(t *testing.T) {
			engines, all, kernel := onDemand(t, c.forwarders, c.job, 2, 2, 1)
			comms := make([]*Comm, len(engines))
			for i, e := range engines {
				comms[i] = spanAll(t, e)
			}
			goDirect(t, engines, comms, 0, 2)
			swapBoth(t, engines, comms, 0, 2)
			for i, e := range engines { // the exchange makes its own
				must(t, e.DropComm(comms[i]))
			}
			before := kernel.openings()
			exchangeWhileCut(t, engines, uint64(c.forwarders), func(r *rand.Rand) { sever(engines[r.IntN(len(engines))], r) })
			if kernel.openings() == before {
				t.Error("no direct link was opened during the exchange")
			}
			if n := moved(all).Messages; n < 2 {
				t.Errorf("%d messages past the forwarders are reported", n)
			}
		})
	}
}

// TestIdleLinkMakesRoom checks that a process with as many direct links as it may have opens one
// more, and closes one that is idle for it.
func TestIdleLinkMakesRoom(t *testing.T) {
	engines, _, _ := onDemand(t, 1, jobenv.Job{}, 1, demand.MaxLinks+1)
	comms := make([]*Comm, len(engines))
	for i, e := range engines {
		comms[i] = spanAll(t, e)
	}
	links := func() (n int) {
		for _, r := range engines[0].Rails() {
			if r.Peer >= 0 {
				n++
			}
		}
		return n
	}
	for v := 1; v < len(engines); v++ {
		goDirect(t, engines, comms, 0, v)
		if n := links(); n > demand.MaxLinks {
			t.Fatalf("%d direct links", n)
		}
	}
	if n := links(); n != demand.MaxLinks {
		t.Errorf("%d direct links, want %d", n, demand.MaxLinks)
	}
	finishAll(t, engines, func(e *Engine) error {
		e.lock()
		defer e.unlock()
		return e.check()
	})
}

// goDirect lets two ranks exchange messages until they have a direct link.
func goDirect(t *testing.T, engines []*Engine, comms []*Comm, a, b int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !directTo(engines[a], b) || !directTo(engines[b], a); {
		if time.Now().After(end) {
			t.Fatalf("no direct link of rank %d to rank %d", a, b)
		}
		swapBoth(t, engines, comms, a, b)
	}
}

// swapBoth lets two ranks send each other a message of 1 MiB.
func swapBoth(t *testing.T, engines []*Engine, comms []*Comm, a, b int) {
	t.Helper()
	var both sync.WaitGroup
	for _, pair := range [][2]int{{a, b}, {b, a}} {
		both.Go(func() {
			if err := swap(engines[pair[0]], comms[pair[0]], pair[1], 1, 1<<20); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
}
