package engine

import (
	"bytes"
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
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/seeds"
	"github.com/leidenzipper/zipper/internal/wire"
)

const (
	// mangledCase is the environment variable that describes one job: its kind, its seed, the
	// number of planned events and the numbers of those that happen.
	mangledCase = "ZIPPER_MANGLED"
	// mangledMost is the time after which the long form of ZIPPER_LONG stops.
	mangledMost = 45 * time.Minute
	// mangledHang is the longest time for which a job may stand still.
	mangledHang = 40 * time.Second
	// mangledPing is the silence after which the links of these jobs are pinged.
	mangledPing = 200 * time.Millisecond
)

// mangledJobs returns the seeds of the jobs to run, and the number of events in each: one job of
// each kind of net with 12, as many as ZIPPER_LONG asks for with 50, or those of ZIPPER_SEEDS with
// 50.
func mangledJobs(t *testing.T) (from, to uint64, events int) {
	from, to, err := seeds.Asked()
	if err != nil {
		t.Fatal(err)
	}
	if to > 0 {
		return from, to, 50
	}
	switch n, err := strconv.ParseUint(os.Getenv("ZIPPER_LONG"), 10, 64); {
	case err != nil || n < 1:
		return 0, uint64(len(mangledNets)), 12
	case n == 1:
		return 0, 2000, 50
	default:
		return 0, n * 20, 50
	}
}

// startRailed returns a function that starts a job over n forwarders side by side.
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

// startTrunks returns a function that starts a job over rows of two forwarders, with several
// connections between these.
func startTrunks(rows int) func(t *testing.T, level string) ([]*Engine, []*proxy) {
	return func(t *testing.T, level string) ([]*Engine, []*proxy) {
		n := newTrunkNet(t, rows)
		n.job.Level = level
		proxies := n.proxies
		for i := range n.job.Zippers { // the ranks' links go through proxies as well
			port := &n.job.Zippers[i].Ports[0]
			p := newProxy(t, port.Address)
			port.Address = p.ln.Addr().String()
			proxies = append(proxies, p)
		}
		engines := joinJob(t, n.job, 2, 2)
		for row := range rows {
			n.waitWhole(t, row)
		}
		return engines, proxies
	}
}

// run runs a job with planned events and returns the outcome.
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
	var moved atomic.Int64 // rises with each round and each event
	over := make(chan struct{})
	var driver, watch sync.WaitGroup
	var stop atomic.Bool
	driver.Go(func() {
		defer stop.Store(true)
		for _, ev := range events {
			ev.Proxy %= len(proxies)
			proxies[ev.Proxy].arm(ev)
			if !until(over, 3*time.Second, ev.Happened.Load) {
				proxies[ev.Proxy].disarm(ev.Way)
			}
			if ev.Happened.Load() {
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

// until waits until so returns true, for up to limit, or until the job is over. It reports whether
// so returned true.
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

// TestOmittedBytesAreSentAgain checks that the omission of a whole frame, or of a piece of one, is
// detected even if no frame follows, over links of ranks and between forwarders: the link is made
// again and the frame is sent again.
func TestOmittedBytesAreSentAgain(t *testing.T) {
	half := uint64(0) // the seed with which more than half of a frame is dropped
	for ; ; half++ {
		if i, k := piece((&event{Seed: half}).rand(), make([]byte, 1000)); k-i > 500 && k < 900 {
			break
		}
	}
	for _, left := range []struct {
		harm string
		of   wire.Type
		size int // the size of the message in bytes
	}{{"drop frame", wire.TypeEager, 1}, {"drop", wire.TypeData, wire.MaxPayload + 1}} {
		for _, net := range mangledNets {
			t.Run(left.harm+", "+net.name, func(t *testing.T) {
				engines, proxies := net.start(t, net.level)
				for _, e := range engines {
					e.lock()
					e.links.Limit().Ping = mangledPing
					e.unlock()
				}
				ready(t, engines)
				first, last := engines[0], engines[len(engines)-1]
				there, here := spanAll(t, first), spanAll(t, last)
				met := 0
				for i := range 2 * len(proxies) { // the message does not pass some of these
					out, in := bytes.Repeat([]byte{byte(i + 1)}, left.size), make([]byte, left.size)
					var sent, got Cell
					if err := last.Irecv(here, KindP2P, in, 0, 1, &got); err != nil {
						t.Fatal(err)
					}
					ev := &event{Way: i % 2, Only: left.of, Seed: half,
						Harm: slices.IndexFunc(harms, func(h harm) bool { return h.name == left.harm })}
					proxies[i/2].arm(ev)
					begin := time.Now()
					if err := first.Isend(there, KindP2P, out, len(engines)-1, 1, false, &sent); err != nil {
						t.Fatal(err)
					}
					for !(got.Done() && sent.Done()) && time.Since(begin) < 10*time.Second {
						last.Progress(time.Millisecond)
						first.Progress(0)
					}
					proxies[i/2].disarm(ev.Way)
					if !got.Done() || got.Err() != nil || !bytes.Equal(in, out) {
						t.Fatalf("proxy %d, way %d: %v left out (%v): done %v after %v, %v", i/2, i%2, ev.Typ,
							ev.Happened.Load(), got.Done(), time.Since(begin), got.Err())
					}
					ready(t, engines)
					if ev.Happened.Load() {
						met++
						t.Logf("proxy %d, way %d: %v", i/2, i%2, time.Since(begin).Round(time.Millisecond))
					}
				}
				if met == 0 {
					t.Error("the message came by no proxy")
				}
			})
		}
	}
}
