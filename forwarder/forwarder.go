// Package forwarder relays frames between the ranks of a job that share no network.
//
// A job is a state machine (package job), and so is its link to another forwarder (package bridge).
// This package has what they do not have: connections, event loops, locks, timers and the table of
// routes. It turns what happens into events, and carries out the actions that they ask for
// (package action).
//
//	forwarder   control.go, join.go: frames of a connection; enter.go: the job of a Join;
//	            runner.go: a job's lock and events; actions.go: its actions; status.go, operate.go:
//	            reports for administrators, and their operations
//	job         one job: gathering, running, ending
//	bridge      the link between two forwarders for a job
//	action      the requests of these two
//	plane       the part of a running job that the loops use without its lock
//	relay       bytes from one connection to another
//	budget      the memory that connections may hold
//	loop        the event loops
//	role        the role of a connection's other end
//	index       the jobs, by id
//	nat         the kernel's table of connections that it forwards
//	report      reports of a forwarder about itself and its jobs
//	loglimit    bounds of the log
//	reach       bounds of the addresses that it dials
//	trunk       the number of connections between two forwarders
//	strangers   bounds of the resources of clients
//	halves      the halves that have ended without their job
//	clock       the source of the time
//
// The way of a frame is in package relay. Nothing on an event loop blocks: dialling other
// forwarders and asking the kernel are done aside (aside), and their completion is posted to a
// loop.
//
// Locks are taken in this order: the lock of a job (runner.mu, for its state machine and its peers;
// no thread holds those of two jobs), Forwarder.mu (for the state that all jobs share, for a few
// lines at a time), those of package relay, and those of packages loop and budget. A frame between
// ranks takes neither of the first two, except that the first frames over a connection wait for the
// lock of their job until the connection has its route (control.Route). TestLockOrder checks the
// order.
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
	"github.com/leidenzipper/zipper/forwarder/index"
	"github.com/leidenzipper/zipper/forwarder/job"
	"github.com/leidenzipper/zipper/forwarder/loop"
	"github.com/leidenzipper/zipper/forwarder/nat"
	"github.com/leidenzipper/zipper/forwarder/relay"
	"github.com/leidenzipper/zipper/forwarder/report"
	"github.com/leidenzipper/zipper/forwarder/strangers"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/seal"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
)

const stopReason = "the forwarder is shutting down"

// releaseReason is why a released job is over for this forwarder.
const releaseReason = "the forwarder was stopped; the job may continue over another one, or after a restart"

// Forwarder relays frames between the ranks of different clusters, for any number of jobs at a
// time.
type Forwarder struct {
	cfg     Config
	policy  atomic.Pointer[policy] // policy is the configuration with the latest changes by Reload.
	keys    *seal.Forwarder
	log     *zap.Logger
	memory  *budget.Budget // memory bounds the bytes that all jobs and links may keep.
	relay   *relay.Relay
	joining relay.Route // joining is the route of the frames of peers that have not joined a job.
	workers relay.Workers
	works   chan struct{} // works is closed when the event loops have been made.
	asides  sync.WaitGroup
	opened  nat.Record // opened records whether the kernel opens ways.
	born    time.Time

	mu    sync.Mutex
	peers map[*peer]int       // peers has the number of each peer, in the order of their connections.
	jobs  index.Jobs[*runner] // jobs has the jobs, gathering or running, that have not ended.
	past  report.Past         // past has the last jobs that ran and have ended, oldest first.
	// totals has the counts since the start, without those of jobs that have not ended.
	totals Totals
	// halves has the halves of jobs (the ranks of one launcher) that have ended before their job
	// ran here, and the jobs that have ended here.
	halves halves.Record
	next   int // next is the number of links accepted or dialled so far.
	// strangers counts and bounds the links of clients, and their jobs that wait for ranks.
	strangers *strangers.Strangers
	drain     drain
	released  chan struct{} // released is closed by Release.
	stopping  bool
	empty     chan struct{} // empty is closed when the forwarder stops and its last link has ended.
}

// New returns a forwarder with the configuration cfg, or an error if that is not valid. The
// forwarder does nothing until Serve.
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
		peers: map[*peer]int{}, jobs: index.Jobs[*runner]{}, totals: report.NewTotals(), strangers: strangers.New(cfg.strangers()),
		joining: relay.Route{Rank: wire.Nobody, Allowed: handshake.CheckHeader},
		works:   make(chan struct{}), drain: drain{over: make(chan struct{})},
		released: make(chan struct{}), empty: make(chan struct{})}
	f.policy.Store(&policy{Config: cfg, terms: cfg.terms(keys, f.isPresent)})
	return f, nil
}

// isPresent reports whether a job with an id and a key is here.
func (f *Forwarder) isPresent(id string, key [wire.PublicKeyLen]byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.jobs.Find(&wire.Join{Job: id, PublicKey: key})
	return ok
}

// Serve accepts links and relays until ctx ends, Release is called, or the drained forwarder has no
// job left; then it closes everything and returns nil (see shutdown for the jobs). An error means
// that it could not start. Serve must be called once.
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
	f.workers.Close()
	f.relay.Close()
	return nil
}

func (f *Forwarder) makeLoops() error {
	for i := range f.cfg.Loops {
		c := loop.Config{Poll: f.cfg.Poll, Tick: loop.Tick(f.cfg.PingInterval, f.cfg.Linger, f.cfg.JoinTimeout), Nice: f.cfg.Nice, Now: f.cfg.clock.Now,
			System: f.cfg.loops}
		if i == 0 {
			c.Log = f.log // one loop logs refused nice values for all
		}
		l, err := loop.New(c)
		if err != nil {
			f.workers.Close()
			return fmt.Errorf("forwarder: %w", err)
		}
		f.workers = append(f.workers, f.relay.Worker(l))
	}
	return nil
}

func (f *Forwarder) accept(ctx context.Context, ln transport.Listener) {
	for {
		link, err := ln.Accept()
		if err == nil {
			f.take(link, f.admitLink, (*peer).challenge)
			continue
		}
		if errors.Is(err, transport.ErrClosed) || ctx.Err() != nil {
			return
		}
		f.log.Error("cannot accept a link (too many open files?)", zap.Error(err))
		select {
		case <-ctx.Done():
		case <-time.After(acceptAgain): // the cause may be temporary; do not busy-loop on it
		}
	}
}

// How a forwarder ends:
//
//  1. Serve's context ends. Running jobs end with it: each rank gets an Abort with stopReason. Jobs
//     that have another forwarder are released to it.
//  2. Release is called. Running jobs whose ranks reopen lost links (job.Facts.Resumes) are released,
//     too: their ranks get Bye and dial this forwarder's address for as long as their patience lasts.
//     A forwarder that is started in its place gathers the job again, as after a crash. Jobs whose
//     ranks cannot resume end as in case 1.
//  3. A drained forwarder has no job left.
//
// A rank that is still joining is refused with stopReason in each case.

var errStopped = errors.New("the forwarder has stopped")

// shutdown refuses peers that are joining, aborts or releases the jobs, and waits up to Linger for
// the links to close. Then it closes those that are left. resume says that jobs which can be
// resumed are released.
func shutdown(f *Forwarder, resume bool) {
	f.mu.Lock()
	f.stopping = true
	all, peers := f.jobs.InOrder(), f.inOrder()
	if len(peers) == 0 {
		close(f.empty)
	}
	f.mu.Unlock()
	for _, r := range all {
		r.shutdown(resume)
	}
	for _, p := range peers {
		p.conn.Post(func() {
			defer p.lock()()
			p.refuse(wire.RefuseShutdown, stopReason)
		})
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

// shutdown ends the job with the forwarder, or releases it to another one. resume says that the job
// may go on over a forwarder that is started in this one's place.
func (r *runner) shutdown(resume bool) {
	r.mu.Lock()
	defer r.unlock()
	if r.job.State() == job.Running && (r.job.Gather().Rails() > 1 || resume && r.job.Facts().Resumes) {
		r.handle(job.Release{Reason: releaseReason})
	} else {
		r.handle(job.Stop{Reason: stopReason})
	}
}

// inOrder returns the peers of all connections, in the order in which these were accepted or
// dialled. With f.mu.
func (f *Forwarder) inOrder() []*peer {
	return slices.SortedFunc(maps.Keys(f.peers), func(p, q *peer) int { return f.peers[p] - f.peers[q] })
}

// Driven is a forwarder without threads, for simulations. The simulation calls Turn repeatedly and
// gives it links.
type Driven struct{ f *Forwarder }

// NewDriven returns a forwarder with one loop. Of the configuration's listeners only the names are
// used.
func NewDriven(cfg Config, sys System) (*Driven, error) {
	cfg.clock, cfg.spawn, cfg.loops, cfg.Loops, cfg.Poll = sys, sys.Go, sys, 1, PollEvent
	cfg.files = math.MaxInt // links in memory need no files
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

// Take gives the forwarder a link that a simulated rank or forwarder has opened to it.
func (d *Driven) Take(link transport.Link) { d.f.take(link, d.f.admitLink, (*peer).challenge) }

// Turn performs one turn of the event loop, which may wait for events.
func (d *Driven) Turn() { d.f.workers[0].Loop.Turn() }

// Status returns the status of the forwarder, as Forwarder.Status.
func (d *Driven) Status() Status { return d.f.Status() }
