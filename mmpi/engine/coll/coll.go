// Package coll runs collectives: the algorithms of package collectives over messages between
// clusters (package pt2pt) and native nonblocking collectives inside each. The collectives of a
// communicator run one at a time, in the order in which they were started. So their native stages
// start in the same order in all processes.
//
// A Set is not safe for concurrent use: all is done with the engine's lock. All methods but Fail
// are for application threads only.
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

// Native is what collectives ask of the cluster's own MPI library: see engine.Native.
type Native interface {
	// Coll starts a native nonblocking collective over the local part of the communicator; ranks
	// and counts are local. op is not kept, its buffers are until the end.
	Coll(comm *pt2pt.Comm, op *Operation) (token uint64, err error)
	// CollTest reports whether it is over; then the token is dead.
	CollTest(token uint64) (bool, error)
	// ReduceLocal computes inout = in op inout over count elements; typ and op are native handles.
	ReduceLocal(in, inout []byte, count int, typ, op uint64) error
}

// Operation is one collective: of the program over a spanning communicator, or a native one over
// the local part. Type and Operator are handles of the native library, for Native only.
type Operation struct {
	collectives.Args
	Type, Operator uint64
	// Skipped is how many collectives before it this process has done without the engine since the
	// last one: those in which it was a leaf.
	Skipped uint32
}

// Set is the collectives of a process.
type Set struct {
	ep     *pt2pt.Endpoint
	native Native
	world  *world.World
	tuning collectives.Tuning

	queues  []*queue  // by communicator; nil until first used
	running []*queue  // with collectives
	count   int       // collectives under way
	natives int       // native collectives under way
	stage   Operation // the one being started: kept here, so that it is not allocated each time
}

// queue is a communicator's collectives in the order they were started.
type queue struct {
	c       *pt2pt.Comm
	layout  *collectives.Layout
	waiting []*collective
	number  uint32 // of collectives started so far
}

// collective is one that is under way. It is the communicator that its algorithm sees.
type collective struct {
	set     *Set
	q       *queue
	cell    *pt2pt.Cell
	tag     int // its number, shifted: the stage is added
	what    Operation
	run     collectives.Runner
	scratch [][]byte
	pins    runtime.Pinner // scratch is handed to native MPI
	stages  [2]nativeStage // the first ones: small collectives have no more
	started int            // of them
}

// maxNumber wraps the number of a collective in its tag: 23 bits of number, 8 of stage.
const maxNumber = 1<<23 - 1

// New makes a Set over the messages of ep; the tuning is equal in all processes.
func New(ep *pt2pt.Endpoint, native Native, w *world.World, tuning collectives.Tuning) *Set {
	return &Set{ep: ep, native: native, world: w, tuning: tuning}
}

// Start starts a collective; the cell is done when it is over in this process. Buffers belong to
// the engine until then; counts and displacements too. Processes start the collectives of a
// communicator in the same order.
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

// Leaf reports whether this process could do a collective by itself, without the engine, and what
// is to be done then; see collectives.Leaf.
func (s *Set) Leaf(c *pt2pt.Comm, what Operation) (collectives.Part, bool) {
	return collectives.Leaf(s.queue(c).layout, what.Args, s.tuning)
}

// Count is how many collectives are under way; natives is how many native ones.
func (s *Set) Count() (all, natives int) { return s.count, s.natives }

// Outstanding is how many collectives of a communicator are under way.
func (s *Set) Outstanding(c *pt2pt.Comm) int {
	if id := int(c.ID()); id < len(s.queues) && s.queues[id] != nil && s.queues[id].c == c {
		return len(s.queues[id].waiting)
	}
	return 0
}

// Drop forgets a communicator, whose collectives are over.
func (s *Set) Drop(c *pt2pt.Comm) {
	if id := int(c.ID()); id < len(s.queues) {
		s.queues[id] = nil
	}
}

// queue gives a communicator's.
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

// Step goes on with the first collective of every communicator and returns how many steps were
// taken.
func (s *Set) Step() (n int) {
	if len(s.running) == 0 {
		return 0
	}
	left := s.running[:0]
	for _, q := range s.running {
		for len(q.waiting) > 0 && s.ep.Err() == nil {
			x := q.waiting[0]
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

// end completes the collective.
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
			x.end(code)
		}
		q.waiting = nil
	}
	s.running = nil
}

// Check compares the counter that is kept by hand with what it counts. For tests.
func (s *Set) Check() error {
	n := 0
	for _, q := range s.running {
		n += len(q.waiting)
	}
	if n != s.count {
		return fault.New(fault.Internal, "%d collectives are counted, there are %d", s.count, n)
	}
	return nil
}
