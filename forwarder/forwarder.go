// Package forwarder relays frames between the ranks of a job that share no network.
//
// Its parts, each of which knows only those below it:
//
//	forwarder   jobs: how a rank comes into one (join.go, gather.go, layout.go), what several hops
//	            add (hops.go, bridge.go, trunk.go) and several forwarders (rails.go), how it ends
//	            (end.go), what launchers say of their halves (half.go), what an administrator
//	            does to it (operate.go)
//	relay       bytes from one connection to another
//	budget      how much they may keep meanwhile
//	loop        the event loops
//	nat         the kernel's table of connections that it passes on
//	loglimit    how much is logged
//	reach       whom it dials
//	trunk       how many connections there are to be between two forwarders
//	strangers   how much those who connect may have
//	halves      which halves have ended without their job
//
// The way of a frame is in package relay. Nothing on an event loop blocks: dialling other
// forwarders and asking the kernel are done aside (aside), and their completion is posted to a
// loop.
//
// Locks: Forwarder.mu (joining and ending, never on a frame's way), then those of package relay.
package forwarder

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder/budget"
	"github.com/leidenzipper/zipper/forwarder/halves"
	"github.com/leidenzipper/zipper/forwarder/loop"
	"github.com/leidenzipper/zipper/forwarder/relay"
	"github.com/leidenzipper/zipper/forwarder/strangers"
	"github.com/leidenzipper/zipper/seal"
	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/wire"
)

const stopReason = "the forwarder is shutting down"

// releaseReason is why a released job is over for this forwarder.
const releaseReason = "the forwarder was stopped; the job may go on over another one, or over the next one"

// Forwarder relays for any number of jobs at once.
type Forwarder struct {
	cfg     Config
	policy  atomic.Pointer[policy] // what of it may change (operate.go)
	keys    *seal.Forwarder
	log     *zap.Logger
	memory  *budget.Budget // what all jobs and links may keep
	relay   *relay.Relay
	joining relay.Route // of those who join
	workers workers
	works   chan struct{} // closed when the workers are there
	asides  sync.WaitGroup
	born    time.Time

	mu        sync.Mutex
	peers     map[*peer]int        // numbered as they came
	jobs      jobs                 // all that have not ended
	past      []Summary            // last ended jobs, oldest first
	totals    Totals               // without what the jobs that are there will add
	halves    halves.Record        // those that ended without their job
	next      int                  // links so far
	strangers *strangers.Strangers // those who connect
	drain     drain
	illegal   func(j *job, next jobState) // handles an illegal transition of a job, with mu
	released  chan struct{}               // closed by Release
	stopping  bool
	empty     chan struct{} // closed when stopping and the last link is gone
}

// New checks the configuration. Serve does the work.
func New(cfg Config) (*Forwarder, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	var random [seal.PublicLen]byte
	_, _ = rand.Read(random[:]) // never fails
	keys, err := seal.NewForwarder(random)
	if err != nil {
		return nil, err
	}
	memory := budget.New(cfg.Memory)
	f := &Forwarder{cfg: cfg, keys: keys, log: cfg.Log, memory: memory,
		relay: relay.New(cfg.relay(memory)), born: cfg.clock.Now(),
		peers: map[*peer]int{}, jobs: jobs{}, totals: newTotals(), strangers: strangers.New(cfg.strangers()),
		joining: relay.Route{Rank: wire.Nobody, Allowed: mayJoin},
		works:   make(chan struct{}), drain: drain{over: make(chan struct{})},
		released: make(chan struct{}), empty: make(chan struct{})}
	f.policy.Store(&policy{Config: cfg, terms: cfg.terms(keys)})
	f.illegal = func(j *job, next jobState) { j.broken(f, next) }
	return f, nil
}

// Serve takes links in and relays until ctx ends, Release is called, or the drained forwarder has
// no job left; then it closes everything and returns nil (shutdown says what becomes of jobs). Any
// other error means that it could not start. Call it once.
func (f *Forwarder) Serve(ctx context.Context) error {
	if err := f.makeLoops(); err != nil {
		return err
	}
	close(f.works)
	ctx, end := context.WithCancel(ctx)
	defer end()
	var loops, accepts sync.WaitGroup
	for _, w := range f.workers {
		loops.Go(w.Loop.Run)
	}
	for _, ln := range f.cfg.Listeners {
		accepts.Go(func() { f.accept(ctx, ln) })
		f.log.Info("listening", zap.String("address", ln.Addr()))
	}
	resume := false
	select {
	case <-ctx.Done():
	case <-f.released:
		resume = ctx.Err() == nil
		end()
	case <-f.drain.over:
		f.log.Info("all jobs are over, and no more are taken")
		end()
	}
	for _, ln := range f.cfg.Listeners {
		ln.Close()
	}
	accepts.Wait()
	shutdown(f, resume)
	for _, w := range f.workers {
		w.Loop.Stop()
	}
	loops.Wait()
	f.asides.Wait()
	f.workers.close()
	f.relay.Close()
	return nil
}

func (f *Forwarder) makeLoops() error {
	for i := range f.cfg.Loops {
		c := loop.Config{Poll: f.cfg.Poll, Tick: f.cfg.tick(), Nice: f.cfg.Nice, Now: f.cfg.clock.Now,
			System: f.cfg.loops}
		if i == 0 {
			c.Log = f.log // it says for all what the system does not grant
		}
		l, err := loop.New(c)
		if err != nil {
			f.workers.close()
			return fmt.Errorf("forwarder: %w", err)
		}
		f.workers = append(f.workers, f.relay.Worker(l))
	}
	return nil
}

// workers are the event loops, with what package relay does on each.
type workers []*relay.Worker

func (w workers) close() {
	for _, one := range w {
		one.Loop.Close()
	}
}

func (f *Forwarder) accept(ctx context.Context, ln transport.Listener) {
	for {
		link, err := ln.Accept()
		if err == nil {
			f.take(link, f.mayConnect, (*peer).challenge)
			continue
		}
		if errors.Is(err, transport.ErrClosed) || ctx.Err() != nil {
			return
		}
		f.log.Error("cannot take a link in (too many open files?)", zap.Error(err))
		select {
		case <-ctx.Done():
		case <-time.After(acceptAgain): // the cause may pass; do not spin on it
		}
	}
}

// How a forwarder ends:
//
//  1. Serve's context ends. Running jobs end with it: each rank gets an Abort with stopReason. Jobs
//     that have another forwarder are released to it.
//  2. Release is called. Running jobs whose ranks open lost links again (job.resumes) are released,
//     too: their ranks get Bye, dial this forwarder's address for as long as their patience lasts,
//     and a forwarder that is started in its place gathers the job again, as after a crash. Jobs
//     whose ranks cannot resume end as in case 1.
//  3. A drained forwarder has no job left.
//
// A rank that is still joining is refused with stopReason in each case.

var errStopped = errors.New("the forwarder has stopped")

// shutdown refuses those that join, aborts or releases the jobs, and waits for the links to close,
// at most Linger; then it closes them. resume: jobs that can be resumed are released.
func shutdown(f *Forwarder, resume bool) {
	f.mu.Lock()
	f.stopping = true
	var over []*Summary // of jobs without links, which only waited for ranks to come back
	for _, j := range f.jobs.inOrder() {
		switch {
		case j.state == gathering && j.hops != nil:
			f.giveUp(j, wire.RefuseShutdown, stopReason)
		case j.state != running:
		case j.gather.Rails() > 1, resume && j.resumes():
			j.release(releaseReason)
		default:
			j.fail(wire.Nobody, stopReason, nil)
		}
		if s := f.perhapsLast(j); s != nil {
			over = append(over, s)
		}
	}
	for _, p := range f.inOrder() {
		p.refuse(wire.RefuseShutdown, stopReason)
		f.leave(p)
	}
	if len(f.peers) == 0 {
		close(f.empty)
	}
	f.mu.Unlock()
	for _, s := range over {
		if f.cfg.JobEnd != nil {
			f.cfg.JobEnd(*s)
		}
	}
	select {
	case <-f.empty:
	case <-time.After(f.cfg.Linger):
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.inOrder() {
		p.end(errStopped)
	}
}

// inOrder is who is connected, as they came. With f.mu.
func (f *Forwarder) inOrder() []*peer {
	return slices.SortedFunc(maps.Keys(f.peers), func(p, q *peer) int { return f.peers[p] - f.peers[q] })
}

// Driven is a forwarder without threads, for simulations: who has it calls Turn again and again,
// and gives it links.
type Driven struct{ f *Forwarder }

// NewDriven makes a forwarder with one loop. The configuration's listeners are only named.
func NewDriven(cfg Config, sys System) (*Driven, error) {
	cfg.clock, cfg.spawn, cfg.loops, cfg.Loops, cfg.Poll = drivenClock{sys}, sys.Go, sys, 1, PollEvent
	cfg.files = math.MaxInt // in memory there is room
	cfg.strict = true
	f, err := New(cfg)
	if err != nil {
		return nil, err
	}
	if err := f.makeLoops(); err != nil {
		return nil, err
	}
	close(f.works)
	return &Driven{f}, nil
}

// Take gives the forwarder a link that has come in.
func (d *Driven) Take(link transport.Link) { d.f.take(link, d.f.mayConnect, (*peer).challenge) }

// Turn is one turn of the event loop, which may wait.
func (d *Driven) Turn() { d.f.workers[0].Loop.Turn() }

// Status is Forwarder.Status.
func (d *Driven) Status() Status { return d.f.Status() }
