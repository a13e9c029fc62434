package engine

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/jobenv"
	"github.com/leidenzipper/zipper/wire"
)

const (
	// mangledCase is the environment's variable for one job: its kind, its seed, how many events
	// were planned and which of them happen.
	mangledCase = "ZIPPER_MANGLED"
	// mangledMost is when the long form stops.
	mangledMost = 45 * time.Minute
	// mangledHang is how long a job may stand still.
	mangledHang = 40 * time.Second
	// mangledPing is after how much silence the links of these jobs are pinged.
	mangledPing = 200 * time.Millisecond
)

// mangledLong is how many thousand events are asked for; 0: the short form.
func mangledLong() int {
	switch n, err := strconv.Atoi(os.Getenv("ZIPPER_LONG")); {
	case err != nil || n < 1:
		return 0
	case n == 1:
		return 100
	default:
		return n
	}
}

// startRailed is a job over n forwarders side by side.
func startRailed(n int) func(t *testing.T, level string) ([]*Engine, []*proxy) {
	return func(t *testing.T, level string) ([]*Engine, []*proxy) {
		job := jobenv.Job{ID: "test", Secret: "s", Level: level, Timeout: 20 * time.Second}
		var proxies []*proxy
		for range n {
			_, addr := serve(t, func(c *forwarder.Config) { c.PingInterval = mangledPing })
			proxies = append(proxies, newProxy(t, addr))
			job.Forwarders = append(job.Forwarders, proxies[len(proxies)-1].ln.Addr().String())
		}
		return joinJob(t, job, 2, 1, 2), proxies
	}
}

// startTrunks is a job over rows of two forwarders, with several connections between these.
func startTrunks(rows int) func(t *testing.T, level string) ([]*Engine, []*proxy) {
	return func(t *testing.T, level string) ([]*Engine, []*proxy) {
		n := newTrunkNet(t, rows)
		n.job.Level = level
		proxies := n.proxies
		for i := range n.job.Zippers { // and the ranks' links are harmed as well
			port := &n.job.Zippers[i].Ports[0]
			p := newProxy(t, port.Address)
			port.Address = p.ln.Addr().String()
			proxies = append(proxies, p)
		}
		engines := joinJob(t, n.job, 2, 2)
		for row := range rows {
			n.whole(t, row)
		}
		return engines, proxies
	}
}

// run runs a job while its network does what is planned.
func (n *mangledNet) run(t *testing.T, seed uint64, events []*event) (o outcome) {
	engines, proxies := n.start(t, n.level)
	for _, e := range engines {
		e.lock()
		e.links.Limit().Ping = mangledPing
		e.links.Limit().Silence = 10 * mangledPing
		e.unlock()
	}
	ready(t, engines)
	before := 0
	for _, p := range proxies {
		before += p.links()
	}
	var moved atomic.Int64 // rises with whatever goes on
	over := make(chan struct{})
	var driver, watch sync.WaitGroup
	var stop atomic.Bool
	driver.Go(func() {
		defer stop.Store(true)
		for _, ev := range events {
			ev.Proxy %= len(proxies)
			proxies[ev.Proxy].arm(ev)
			if !until(over, 3*time.Second, ev.Met.Load) {
				proxies[ev.Proxy].disarm(ev.Way)
			}
			if ev.Met.Load() {
				moved.Add(1)
				o.met = append(o.met, ev)
			}
			if !until(over, mangledHang, func() bool { return allUp(engines) }) {
				return
			}
		}
	})
	watch.Go(func() {
		for last := int64(-1); ; {
			select {
			case <-over:
				return
			case <-time.After(mangledHang):
			}
			if now := moved.Load(); now != last {
				last = now
				continue
			}
			for _, e := range engines {
				e.lock()
				e.fatal(ErrLink, 1, "the test: it hangs")
				e.unlock()
			}
			return
		}
	})
	errs := make([]error, len(engines))
	var ranks sync.WaitGroup
	for _, e := range engines {
		ranks.Go(func() {
			w, err := newWorker(t, e, seed)
			for round := 0; err == nil; round++ {
				var last bool
				if last, err = w.round(uint64(round), e.world.Rank == 0 && stop.Load()); last {
					break
				}
				moved.Add(1)
				if e.world.Rank == 0 {
					o.rounds++
				}
			}
			if err == nil {
				err = e.Finish()
			}
			if err != nil {
				e.lock()
				e.fatal(ErrLink, 1, "the test: "+err.Error()) // the others need not wait
				e.unlock()
				errs[e.world.Rank] = fmt.Errorf("rank %d: %w (%v, %q)", e.world.Rank, err, e.Err(),
					e.native.(*fakeNative).failed)
			}
		})
	}
	ranks.Wait()
	close(over)
	driver.Wait()
	watch.Wait()
	for _, p := range proxies {
		o.losses += p.links()
	}
	o.losses -= before
	o.err = errors.Join(errs...)
	return o
}

// until waits until something is so, or the job is over.
func until(over chan struct{}, limit time.Duration, so func() bool) bool {
	for end := time.Now().Add(limit); !so(); {
		select {
		case <-over:
			return false
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// allUp reports whether every engine sees every other rank over every rail.
func allUp(engines []*Engine) bool {
	for _, e := range engines {
		for _, r := range e.Rails() {
			if !r.Up || r.Unreachable > 0 {
				return false
			}
		}
	}
	return true
}

// TestLeftOut: a whole frame that is left out, and nothing follows it, is noticed, over links of
// ranks and between forwarders: the link is made again and the frame is sent again.
func TestLeftOut(t *testing.T) {
	for _, net := range mangledNets {
		t.Run(net.name, func(t *testing.T) {
			engines, proxies := net.start(t, net.level)
			ready(t, engines)
			first, last := engines[0], engines[len(engines)-1]
			there, here := spanAll(t, first), spanAll(t, last)
			drop := slices.IndexFunc(harms, func(h harm) bool { return h.name == "drop frame" })
			met := 0
			for i := range 2 * len(proxies) { // some of which the message does not come by
				out, in := []byte{byte(i + 1)}, make([]byte, 1)
				var sent, got Cell
				if err := last.Irecv(here, KindP2P, in, 0, 1, &got); err != nil {
					t.Fatal(err)
				}
				ev := &event{Way: i % 2, Harm: drop, Only: wire.TypeEager}
				proxies[i/2].arm(ev)
				begin := time.Now()
				if err := first.Isend(there, KindP2P, out, len(engines)-1, 1, false, &sent); err != nil {
					t.Fatal(err)
				}
				for !got.Done() && time.Since(begin) < 10*time.Second {
					last.Progress(time.Millisecond)
					first.Progress(0)
				}
				proxies[i/2].disarm(ev.Way)
				if !got.Done() || got.Err() != nil || in[0] != out[0] {
					t.Fatalf("proxy %d, way %d: %v left out (%v): done %v after %v, %v", i/2, i%2, ev.Typ,
						ev.Met.Load(), got.Done(), time.Since(begin), got.Err())
				}
				ready(t, engines)
				if ev.Met.Load() {
					met++
					t.Logf("proxy %d, way %d: %v", i/2, i%2, time.Since(begin).Round(time.Millisecond))
				}
			}
			if met < 2 { // to the forwarder, and from it
				t.Errorf("the message was left out %d times", met)
			}
		})
	}
}
