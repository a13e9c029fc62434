// Package engine is a process's part of the zipper: it matches, sends and receives messages between
// clusters. It has the interface that cgo/abi and tests call, and the one lock. Packages below:
//
//	coll, rmawin   collectives, and windows for one-sided communication, over messages
//	pt2pt          communicators, matching, the eager and the rendezvous protocol
//	link           rails, frames, order, replay and fail-over
//	flow           credit, sequence numbers and pace, as arithmetic
//	wait           how threads sleep, and the progress thread
//
// Threads. All methods of Engine may be called from any thread the program may call MPI from. Those
// marked "application threads only" call native MPI, so no other thread may call them. One lock
// guards everything. Two calls sleep while they hold it, both at the end of the job, when no other
// thread needs it: Abort, for up to a second, until its message is out, and a thread that learns
// that a rank of the same cluster has ended the job, for Limits.Grace. Native MPI, which is called
// with the lock held, may yield the core. The thread that waits for a message reads it from the
// link itself. The progress thread moves bytes when no other thread has done so for a while; it
// calls no native MPI.
package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/mmpi/engine/coll"
	"github.com/leidenzipper/zipper/mmpi/engine/link"
	"github.com/leidenzipper/zipper/mmpi/engine/pt2pt"
	"github.com/leidenzipper/zipper/mmpi/engine/rmawin"
	"github.com/leidenzipper/zipper/mmpi/engine/wait"
)

// Engine is one process's end of all flows. New starts it, Finish or Abort ends it.
type Engine struct {
	world     World
	firstMine int // the first virtual rank of this cluster
	endMine   int // one more than the last virtual rank of this cluster
	native    Native
	recorder  Recorder // the recorder of traffic; nil: no recording
	poll      Poll
	patience  time.Duration // a copy of Limits.NoRail
	leave     func() bool   // a copy of Config.Leave, never nil
	onLoss    bool          // a copy of Config.OnLoss

	mu       sync.Mutex
	stopping bool // whether Finish is closing the engine, which then takes no new links
	links    *link.Set
	p2p      *pt2pt.Endpoint
	colls    *coll.Set
	windows  *rmawin.Set
	consent  *consent // nil unless the job goes on when a cluster is lost
	wait     wait.Waiter
	coalesce coalesce
	naps     int      // the number of naps in waits for native MPI since bytes last moved
	activity Activity // the value last given to Native.SetActivity
	stands   standstill
}

// New starts an engine on joined links.
func New(cfg Config) (*Engine, error) {
	e := &Engine{world: cfg.World, native: cfg.Native, recorder: cfg.Recorder, poll: cfg.Poll, leave: cfg.Leave,
		onLoss: cfg.OnLoss}
	if e.leave == nil {
		e.leave = func() bool { return false }
	}
	if mine, _ := cfg.World.Place(cfg.World.Rank); mine < 0 {
		return nil, failure(ErrArg, "rank %d in a world of %d", cfg.World.Rank, cfg.World.Size())
	}
	e.firstMine, e.endMine = e.world.Mine()
	d := (*driver)(e)
	limits := cfg.Limits.WithDefaults(cfg.World.Size())
	e.patience = limits.NoRail
	if cfg.System == nil {
		cfg.System = wait.NewLinux()
	}
	system := cfg.System
	var err error
	messages := pt2pt.Config{World: &e.world, Native: cfg.Native, Recorder: cfg.Recorder, Fatal: e.fatal, Limits: limits}
	if cfg.OnLoss {
		messages.Lost = func(cluster int, _ string) {
			e.windows.Lost()
			e.consent.lost(cluster)
		}
	}
	e.p2p, err = pt2pt.New(messages, link.Config{Wiring: cfg.Wiring, World: &e.world, Lock: d, OnLoss: cfg.OnLoss,
		Woken: e.wait.WakeAll, Limits: limits})
	if err != nil {
		return nil, err
	}
	e.stands = standstill{world: &e.world, p2p: e.p2p, waits: cfg.Waits, warn: cfg.Warn, limit: limits.Standstill}
	e.links = e.p2p.Links()
	e.colls = coll.New(e.p2p, cfg.Native, &e.world, cfg.Collectives, cfg.OnLoss)
	var recode func(kind uint8, b []byte, in bool)
	if cfg.World.Mixed {
		recode = cfg.Native.RecodeNumbers
	}
	e.windows = rmawin.New(e.p2p, d, cfg.Native.Compute, recode)
	if err := e.wait.Open(system, d, cfg.Embedded); err != nil {
		return nil, failure(ErrInternal, "event descriptors: %v", err)
	}
	if cfg.OnLoss {
		e.consent = newConsent(e.p2p, &e.world, e.fatal)
	}
	e.mu.Lock() // one link may be open before Start has begun to open the last
	e.links.Start()
	e.mu.Unlock()
	if !cfg.Quiet {
		e.wait.Start()
	}
	return e, nil
}

// sameCluster reports whether a virtual rank is in this process's cluster.
func (e *Engine) sameCluster(rank int) bool { return rank >= e.firstMine && rank < e.endMine }

// World returns the job's clusters and ranks.
func (e *Engine) World() World { return e.world }

// Place returns a rank's cluster and the first virtual rank there.
func (e *Engine) Place(rank int) (cluster, first int) { return e.world.Place(rank) }

// Context returns a context that ends when the engine's links have been closed.
func (e *Engine) Context() context.Context { return e.links.Context() }

// Err returns the reason why the engine has failed, or nil if it has not.
func (e *Engine) Err() error {
	e.lock()
	defer e.unlock()
	return e.p2p.Err()
}

// Rails returns the state of the engine's rails, those to forwarders first.
func (e *Engine) Rails() []link.Status {
	e.lock()
	defer e.unlock()
	return e.links.Status()
}

// DirectUp takes a link to another process into use, in place of the one before. It returns false
// if the engine no longer takes links.
func (e *Engine) DirectUp(rank int, l transport.Link) bool { return e.links.DirectUp(rank, l) }

// AwaitDirect waits until all pairs that can have a direct link have it or have failed to make it
// once; its error names the lowest rank without a link. It never waits longer than ctx lasts. A
// link that is made later is taken into use then.
func (e *Engine) AwaitDirect(ctx context.Context) error { return e.links.AwaitDirect(ctx) }

// lock locks the engine. It spins a while before it sleeps, because other holders are quick.
func (e *Engine) lock() {
	for range lockSpins {
		if e.mu.TryLock() {
			e.p2p.Completions = 0
			return
		}
	}
	e.mu.Lock()
	e.p2p.Completions = 0
}

// unlock unlocks the engine, tells native MPI of a change of activity, and wakes threads that a
// change concerns.
func (e *Engine) unlock() {
	if now := e.presentActivity(); now != e.activity {
		e.activity = now
		e.native.SetActivity(now)
	}
	e.wait.Alert(e.p2p.Completions > 0)
	e.mu.Unlock()
}

// presentActivity returns the activity that a thread that waits has to know.
func (e *Engine) presentActivity() Activity {
	if e.onLoss || e.p2p.Busy() { // a loss may end any wait
		return Busy
	}
	switch all, natives := e.colls.Count(); {
	case all == 0:
		return Idle
	case e.windows.Any() || natives == 0:
		return Busy
	}
	return Staging
}

// fatal ends the job: every outstanding operation fails, and Native.Fail ends the process.
func (e *Engine) fatal(code Code, status int, reason string) {
	if !e.p2p.Fail(code, reason) {
		return
	}
	e.colls.Fail(code)
	e.windows.Fail(code)
	e.native.Fail(status, reason)
}

// check compares all counters that are kept by hand with what they count, for tests.
func (e *Engine) check() error {
	if err := e.p2p.Check(e.windows.Held()); err != nil {
		return fmt.Errorf("messages: %w", err)
	}
	if err := e.colls.Check(); err != nil {
		return err
	}
	return e.links.Check()
}
