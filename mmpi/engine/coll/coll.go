// Package coll runs collectives: the algorithms of package collectives over messages between
// clusters (package pt2pt) and native nonblocking collectives inside each. The collectives of a
// communicator run one at a time, in the order in which they were started. So their native stages
// start in the same order in all processes.
//
// A Set is not safe for concurrent use: all calls need the engine's lock. Start and Step call
// native MPI, so they are for application threads only.
package coll

import (
	"errors"
	"runtime"
	"slices"

	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
	"github.com/leidenzipper/zipper/mmpi/engine/pt2pt"
	"github.com/leidenzipper/zipper/mmpi/engine/world"
)

// Native has the calls of the cluster's own MPI library for collectives: see engine.Native.
type Native interface {
	// Coll starts a native nonblocking collective over the local part of the communicator. Ranks
	// and counts are local. op is not kept; its buffers are used until the end.
	Coll(comm *pt2pt.Comm, op *Operation) (token uint64, err error)
	// CollTest reports whether it has finished; then the token becomes invalid.
	CollTest(token uint64) (bool, error)
	// ReduceLocal computes inout = in op inout over count elements. typ and op are native handles.
	ReduceLocal(in, inout []byte, count int, typ, op uint64) error
	// Recode converts count elements of a type in place: from the format of memory to that between
	// clusters, or back with in.
	Recode(b []byte, count int, typ uint64, in bool) error
}

// Operation is one collective: one of the program over a spanning communicator, or a native one
// over the local part. Type and Operator are handles of the native library, for Native only.
type Operation struct {
	collectives.Args
	Type, Operator uint64
	// Skipped is the number of collectives that this process has done without the engine since the
	// last one, as a leaf.
	Skipped uint32
}

// Set has the collectives of a process.
type Set struct {
	ep     *pt2pt.Endpoint
	native Native
	world  *world.World
	tuning collectives.Tuning
	onLoss bool // whether the job goes on when a cluster is lost

	queues  []*queue // by communicator; nil until first used
	running []*queue // queues with collectives
	count   int      // number of collectives under way
	natives int      // number of native collectives under way, without those left behind
	behind  []left   // native stages that were left behind
	// stage is the native collective that is being started. It is kept here so that it is not
	// allocated each time.
	stage Operation
}

// queue has a communicator's collectives in the order in which they were started.
type queue struct {
	c       *pt2pt.Comm
	layout  *collectives.Layout
	waiting []*collective
	number  uint32 // number of collectives started so far
}

// collective is a collective under way. It is also the communicator that its algorithm uses.
type collective struct {
	set     *Set
	q       *queue
	cell    *pt2pt.Cell
	tag     int // its shifted number, to which the stage is added
	what    Operation
	run     collectives.Runner
	scratch [][]byte
	pins    runtime.Pinner // pins of scratch memory that native MPI uses
	// stages are the first native stages. Small collectives have no more.
	stages  [2]nativeStage
	started int // number of elements of stages that are in use
	under
}

// maxNumber is the largest number of a collective in a tag: 23 bits of number, 8 of stage. Larger
// numbers wrap.
const maxNumber = 1<<23 - 1

// New returns a Set over the messages of ep. The tuning must be equal in all processes. onLoss says
// that the job goes on when a cluster is lost.
func New(ep *pt2pt.Endpoint, native Native, w *world.World, tuning collectives.Tuning, onLoss bool) *Set {
	return &Set{ep: ep, native: native, world: w, tuning: tuning, onLoss: onLoss}
}

// Start starts a collective. The cell is done when the collective has finished in this process.
// Buffers belong to the engine until then, and so do counts and displacements. Processes must start
// the collectives of a communicator in the same order.
func (s *Set) Start(c *pt2pt.Comm, what Operation, cell *pt2pt.Cell) error {
	if err := s.ep.Err(); err != nil {
		return err
	}
	q := s.queue(c)
	q.number += what.Skipped
	x := &collective{set: s, q: q, cell: cell, what: what, tag: int(q.number&maxNumber) << 8}
	a, err := collectives.New(x, what.Args, s.tuning)
	if err != nil {
		return fault.New(fault.Arg, "%v", err)
	}
	q.number++
	x.run = *collectives.NewRunner(a)
	cell.Begin()
	q.waiting = append(q.waiting, x)
	s.count++
	if len(q.waiting) == 1 {
		s.running = append(s.running, q)
		s.Step()
	}
	return nil
}

// Leaf reports whether this process could do a collective by itself, without the engine, and
// returns its part of the work; see collectives.Leaf.
func (s *Set) Leaf(c *pt2pt.Comm, what Operation) (collectives.Part, bool) {
	if s.onLoss { // a leaf would wait natively for a process that ends the collective early
		return collectives.Part{}, false
	}
	return collectives.Leaf(s.queue(c).layout, what.Args, s.tuning)
}

// Count returns the numbers of collectives and of native collectives under way.
func (s *Set) Count() (all, natives int) { return s.count, s.natives }

// Outstanding returns the number of a communicator's collectives under way.
func (s *Set) Outstanding(c *pt2pt.Comm) int {
	if id := int(c.ID()); id < len(s.queues) && s.queues[id] != nil && s.queues[id].c == c {
		return len(s.queues[id].waiting)
	}
	return 0
}

// Drop removes a communicator, whose collectives must have finished.
func (s *Set) Drop(c *pt2pt.Comm) {
	if id := int(c.ID()); id < len(s.queues) {
		s.queues[id] = nil
	}
}

// queue returns the queue of a communicator.
func (s *Set) queue(c *pt2pt.Comm) *queue {
	id := int(c.ID())
	for len(s.queues) <= id {
		s.queues = append(s.queues, nil)
	}
	if s.queues[id] == nil {
		s.queues[id] = &queue{c: c, layout: s.layoutOf(c)}
	}
	return s.queues[id]
}

func (s *Set) layoutOf(c *pt2pt.Comm) *collectives.Layout {
	clusters := make([]int, c.Size())
	for i := range clusters {
		clusters[i], _ = s.world.Place(c.Virtual(i))
	}
	l := collectives.NewLayout(clusters, c.Rank())
	if s.world.Hosts != nil {
		_, first := s.world.Place(s.world.Rank)
		hosts := make([]int, c.LocalSize())
		for i := range hosts {
			hosts[i] = int(s.world.Hosts[c.Virtual(c.RankOfLocal(i))-first])
		}
		l.SetHosts(hosts)
	}
	return l
}

// Step continues the first collective of every communicator and returns the number of steps taken.
func (s *Set) Step() (n int) {
	if len(s.behind) > 0 {
		s.testLeft()
	}
	if len(s.running) == 0 {
		return 0
	}
	left := s.running[:0]
	for _, q := range s.running {
		for len(q.waiting) > 0 && s.ep.Err() == nil {
			x := q.waiting[0]
			if code := q.c.Failure(); code != fault.OK {
				if !x.fail(code) {
					break
				}
				q.waiting = slices.Delete(q.waiting, 0, 1)
				x.end(code)
				n++
				continue
			}
			left := x.run.Remaining()
			over, err := x.run.Step()
			n += left - x.run.Remaining()
			if !over {
				break
			}
			q.waiting = slices.Delete(q.waiting, 0, 1)
			var e *fault.Error
			if errors.As(err, &e) {
				x.cell.Bytes, x.cell.Sent = e.Room, e.Sent
			}
			x.end(fault.CodeOf(err))
			n++
		}
		if len(q.waiting) > 0 {
			left = append(left, q)
		}
	}
	clear(s.running[len(left):])
	s.running = left
	return n
}

// end releases the buffers of the collective and completes its request with code.
func (x *collective) end(code fault.Code) {
	x.pins.Unpin()
	for _, b := range x.scratch {
		x.set.ep.Links().Pool.Put(b)
	}
	x.set.count--
	x.set.ep.Complete(x.cell, code)
}

// Fail completes all collectives with an error.
func (s *Set) Fail(code fault.Code) {
	for _, q := range s.running {
		for _, x := range q.waiting {
			x.scratch = nil // the native library may still write there
			for _, r := range x.natives {
				if !r.over {
					s.leave(r)
				}
			}
			x.end(code)
		}
		q.waiting = nil
	}
	s.running = nil
	for _, l := range s.behind {
		l.memory.pins.Unpin()
	}
}

// Check compares a counter with the objects that it counts. It is for tests.
func (s *Set) Check() error {
	n := 0
	for _, q := range s.running {
		n += len(q.waiting)
	}
	if n != s.count {
		return fault.New(fault.Internal, "the counter of collectives is %d, but there are %d", s.count, n)
	}
	return nil
}
