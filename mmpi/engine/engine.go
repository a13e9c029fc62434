// Package engine matches, sends and receives messages between clusters.
//
// Threads. All methods of Engine may be called from any thread the program may call MPI from, those marked "application threads only"
// not from others, because they call native MPI. One lock guards everything; it is never held while sleeping. The thread
// that waits for a message reads it from the link itself. A background thread moves bytes when no other thread has done so for a while;
// it makes no native call.
package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/mmpi/engine/wait"
)

// Engine is one process's end of all flows. New starts it, Finish or Abort ends it.
type Engine struct {
	world     World
	size      int
	firstMine int // virtual ranks of this cluster: firstMine ≤ r < endMine
	endMine   int
	limits    Limits
	native    Native
	poll      Poll
	placeFrom int // bytes from which on messages are sent and received in place; 0: none are
	warn      func(string)
	start     time.Time

	mu         sync.Mutex
	stopping   bool    // Finish is at its end: no links are taken any more
	rails      []*rail // to the forwarders, then the direct ones
	forwarders []*rail
	direct     directState
	slots      int  // rails that may lead to one process
	multi      bool // more than one forwarder leads to each process
	ways       waysState
	paths      [][]*rail // in a job of several hops: the rails that lead to each virtual rank; nil: all do
	turn       int       // bytes that a rail writes at a time
	peers      []*peer   // by virtual rank; nil until first used

	comms     []*Comm // by id
	table     atomic.Pointer[[]*Comm]
	freeIDs   []int32
	contextOf map[uint64]*Comm
	contexts  uint32
	orphans   []*message // for communicators not known here yet
	probed    map[uint64]*message
	probes    uint64

	requests []*Request // by index
	idle     []*Request
	natives  []*Request // being received by native MPI
	frames   []*frame   // free
	messages []*message // free
	pool     pool
	poolLeft int // eager credit that may still be granted beyond first windows
	acks     []*peer

	// What the engine has under way.
	active      int // requests that somebody in another cluster has to do with, and the posted lists
	collCount   int // collectives
	activity    Activity
	collComms   []*Comm // with collectives
	collTuning  collectives.Tuning
	nativeColls int  // native collectives under way
	stage       Coll // the one being started: kept here, so that it is not allocated each time
	naps        int  // since something moved, while native MPI is waited for

	windows []*Window

	localPosted int // entries of all posted lists that a local message may match
	flushes     int // communicators with flush set
	unacked     int // retained frames
	completions int // since the lock was taken
	err         error

	recorder   Recorder // nil: off
	toldCopies bool

	wait wait.Waiter
	hold hold
}

// New starts an engine on joined links.
func New(cfg Config) (*Engine, error) {
	e := &Engine{world: cfg.World, size: cfg.World.Size(), native: cfg.Native, poll: cfg.Poll, placeFrom: cfg.PlaceFrom, warn: cfg.Warn, collTuning: cfg.Collectives, recorder: cfg.Recorder, start: time.Now(),
		contextOf: map[uint64]*Comm{}, probed: map[uint64]*message{}}
	mine, first := cfg.World.Place(cfg.World.Rank)
	if mine < 0 || cfg.World.Rank < 0 {
		return nil, failure(ErrArg, "rank %d in a world of %d", cfg.World.Rank, e.size)
	}
	if n := len(cfg.Links); n == 0 || n > MaxRails {
		return nil, failure(ErrUnsupported, "%d forwarders; want 1 to %d", n, MaxRails)
	}
	e.firstMine, e.endMine = first, first+int(cfg.World.Clusters[mine].Size)
	e.limits = cfg.Limits.withDefaults(e.size)
	e.poolLeft = e.limits.EagerPool
	e.peers = make([]*peer, e.size)
	e.addRails(cfg)
	if err := e.addDirect(cfg.Direct); err != nil {
		return nil, err
	}
	e.table.Store(new([]*Comm))
	e.addControl()
	if err := e.wait.Open((*driver)(e), cfg.Guest); err != nil {
		return nil, failure(ErrInternal, "event descriptors: %v", err)
	}
	for _, r := range e.rails {
		if !r.up {
			e.reconnect(r)
		}
	}
	if !cfg.Quiet {
		e.wait.Start()
	}
	return e, nil
}

// sameCluster reports whether a virtual rank is in this process's cluster.
func (e *Engine) sameCluster(rank int) bool { return rank >= e.firstMine && rank < e.endMine }

// World is the job.
func (e *Engine) World() World { return e.world }

// Place gives a rank's cluster and the first virtual rank there.
func (e *Engine) Place(rank int) (cluster, first int) { return e.world.Place(rank) }

// lock takes the engine. Other holders are quick, so it tries a while before it lets the scheduler put the thread to sleep.
func (e *Engine) lock() {
	for range 100 {
		if e.mu.TryLock() {
			e.completions = 0
			return
		}
	}
	e.mu.Lock()
	e.completions = 0
}

func (e *Engine) underWay() Activity {
	switch {
	case e.active > 0 || e.unsent() > 0 || len(e.natives) > 0: // of receives handed to native MPI only our progress notices the end
		return Busy
	case e.collCount == 0:
		return Idle
	case len(e.windows) > 0 || e.nativeColls == 0:
		return Busy
	}
	return Staging
}

// unlock lets others see what has changed.
func (e *Engine) unlock() {
	if now := e.underWay(); now != e.activity {
		e.activity = now
		e.native.SetActivity(now)
	}
	e.wait.Alert(e.completions > 0)
	e.mu.Unlock()
}

// writeOut puts on the links what they take, unless one took nothing the last time: then progress does it when there is room.
func (e *Engine) writeOut() {
	for more := true; more && e.err == nil; {
		more = false
		for _, r := range e.rails {
			if r.blocked || e.err != nil || len(e.rails) > 1 && !r.pending() {
				continue
			}
			n, err := r.write()
			if err != nil {
				e.lost(r, err)
			}
			more = more || e.multi && n >= e.turn
		}
	}
}

// fatal ends the job: every outstanding operation fails and the process ends, if Native.Fail does its work.
func (e *Engine) fatal(code Code, status int, reason string) {
	if e.err != nil {
		return
	}
	e.err = failure(code, "%s", reason)
	e.closeRails()
	for _, r := range e.requests {
		if r.state == idle {
			continue
		}
		if r.keepsBusy() {
			e.active--
		}
		cell := r.cell
		r.comm.outstanding--
		r.reset()
		e.idle = append(e.idle, r)
		cell.Error = int32(code)
		cell.finish()
		e.completions++
	}
	e.natives = e.natives[:0]
	for _, c := range e.comms {
		if c != nil {
			c.spaces = [kinds]space{}
			c.localPosted = 0
		}
	}
	e.localPosted = 0
	e.failCollectives(code)
	e.failWindows(code)
	e.native.Fail(status, reason)
}

// Err is why the engine has failed; nil if it has not.
func (e *Engine) Err() error {
	e.lock()
	defer e.unlock()
	return e.err
}
