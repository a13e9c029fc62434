package engine

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/jobenv"
)

// hopNet is a net of clusters in a row with several forwarders between neighbours, each behind a
// proxy through which ranks and other forwarders reach it.
type hopNet struct {
	job        jobenv.Job
	sizes      []int
	proxies    []*proxy // stage by stage
	forwarders []*forwarder.Forwarder
}

func newHopNet(t testing.TB, stages []int, sizes ...int) *hopNet {
	n := &hopNet{job: jobenv.Job{ID: "test", Secret: "s", Timeout: 20 * time.Second}, sizes: sizes}
	for s, width := range stages {
		for range width {
			f, addr := serve(t, func(c *forwarder.Config) { c.Dial = dial.Open })
			p := newProxy(t, addr)
			a := p.ln.Addr().String()
			n.proxies, n.forwarders = append(n.proxies, p), append(n.forwarders, f)
			n.job.Zippers = append(n.job.Zippers,
				jobenv.Zipper{Ports: []jobenv.Port{{Network: string(rune('a' + s)), Address: a},
					{Network: string(rune('b' + s)), Address: a}}})
		}
	}
	return n
}

func (n *hopNet) join(t testing.TB) []*Engine {
	engines := joinJob(t, n.job, n.sizes...)
	ready(t, engines)
	return engines
}

// TestTrafficUsesAllRows checks that the traffic of TestTrafficArrivesInOrder uses all forwarders,
// with two side by side in one stage and in all, and that all their jobs succeed.
func TestTrafficUsesAllRows(t *testing.T) {
	for _, c := range []struct{ stages, jobs []int }{{[]int{2, 1}, []int{1, 1, 2}}, {[]int{2, 2}, []int{1, 1, 1, 1}},
		{[]int{1, 3}, []int{3, 1, 1, 1}}} {
		n := newHopNet(t, c.stages, 2, 1, 2)
		randomTraffic(t, n.join(t), 1)
		for i, p := range n.proxies {
			// The processors decide which rail takes a segment. Control frames alone have fewer
			// bytes.
			if p.carried() < 1<<16 {
				t.Errorf("stages %v: forwarder %d carried only %d bytes", c.stages, i, p.carried())
			}
			end := time.Now().Add(10 * time.Second)
			for len(n.forwarders[i].Status().Past) < c.jobs[i] && time.Now().Before(end) {
				time.Sleep(time.Millisecond)
			}
			past := n.forwarders[i].Status().Past
			if len(past) != c.jobs[i] {
				t.Errorf("stages %v: forwarder %d served %d rows, want %d", c.stages, i, len(past), c.jobs[i])
			}
			for _, s := range past {
				if !s.OK {
					t.Errorf("stages %v: forwarder %d: %+v", c.stages, i, s)
				}
			}
		}
	}
}

// TestRowsSurviveDeathOfAForwarder checks that no message is lost, doubled or put out of order if
// any one of the forwarders that stand side by side dies.
func TestRowsSurviveDeathOfAForwarder(t *testing.T) {
	for which, name := range []string{"a-b first", "a-b second", "b-c first", "b-c second"} {
		t.Run(name, func(t *testing.T) {
			n := newHopNet(t, []int{2, 2}, 2, 1, 2)
			engines := n.join(t)
			p := n.proxies[which]
			from, killed := p.carried(), make(chan bool, 1)
			go func() {
				end := time.Now().Add(20 * time.Second)
				for p.carried() < from+1<<18 && time.Now().Before(end) {
					time.Sleep(100 * time.Microsecond)
				}
				killed <- time.Now().Before(end)
				p.kill()
			}()
			finishAll(t, engines, func(e *Engine) error {
				err := exchangeAll(t, e, 60, rand.New(rand.NewPCG(uint64(which), uint64(e.world.Rank))))
				if e.world.Rank == 0 && !<-killed {
					t.Error("the forwarder was not in use")
				}
				return err
			})
		})
	}
}

// allFail waits until all engines have failed, with a reason that contains one of some words.
func allFail(t *testing.T, engines []*Engine, words ...string) {
	t.Helper()
	for _, e := range engines {
		begin := time.Now()
		for e.Err() == nil && time.Since(begin) < 8*time.Second {
			e.Progress(time.Millisecond)
		}
		failed, found := e.native.(*fakeNative).failed, false
		for _, w := range words {
			found = found || strings.Contains(failed, w)
		}
		if !found {
			t.Errorf("rank %d: %q, want one of %q", e.world.Rank, failed, words)
		}
	}
}

// TestLossOfAllRowsEndsTheJob checks that all ranks end within seconds, with an error that says
// why, if no whole row is left between two clusters, though some forwarders are.
func TestLossOfAllRowsEndsTheJob(t *testing.T) {
	for name, dead := range map[string][]int{"a stage": {0, 1}, "one of each row": {0, 3}} {
		t.Run(name, func(t *testing.T) {
			n := newHopNet(t, []int{2, 2}, 1, 1, 1)
			engines := n.join(t)
			for _, e := range engines {
				e.lock()
				e.links.Limit().NoRail = 3 * time.Second // no wait for a forwarder that may be started again
				e.unlock()
			}
			for _, i := range dead {
				n.proxies[i].kill()
			}
			allFail(t, engines, "no forwarder could be reached", "no forwarder could reach rank")
		})
	}
}

// TestDeadRankIsReportedOverHops checks that all ranks, also those two forwarders away, learn of a
// dead rank, which no row reaches any more.
func TestDeadRankIsReportedOverHops(t *testing.T) {
	n := newHopNet(t, []int{2, 1}, 2, 1, 1)
	engines := n.join(t)
	engines[0].close() // as the kernel does when a process dies
	allFail(t, engines[1:], "virtual rank 0")
}

// TestLateRowIsUsed checks that a row that is not complete at first is used once it is.
func TestLateRowIsUsed(t *testing.T) {
	// With two ranks in the first cluster each row is home to the messages of some pair. It takes
	// others only while their home is busy, which on a crowded machine means almost none.
	n := newHopNet(t, []int{2, 1}, 2, 1, 1)
	n.proxies[1].kill()
	engines := joinJob(t, n.job, n.sizes...)
	n.proxies[1].revive()
	ready(t, engines)
	before := n.proxies[1].carried()
	randomTraffic(t, engines, 3)
	if c := n.proxies[1].carried() - before; c < 1<<18 {
		t.Errorf("only %d bytes over the row that came late", c)
	}
}
