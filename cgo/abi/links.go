package abi

// #include <stdlib.h>
// #include "native.h"
import "C"

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/mmpi/boot"
	"github.com/leidenzipper/zipper/mmpi/engine"
	"github.com/leidenzipper/zipper/mmpi/ports"
)

// The numbers of communicators, windows and matched messages of a link have that link's number in
// their upper bits. Link 0 is the job itself.
const (
	linkShift    = 24
	idMask       = 1<<linkShift - 1
	messageShift = 56
)

// links has the connections of this process to other jobs.
var links linkSet

// linkSet has an engine for each connection, beside the job's, and the state of the operations that
// make connections. Its methods may be called by any thread.
type linkSet struct {
	// any is true once an operation on ports or their names has begun: from then on engines other
	// than the job's may exist.
	any atomic.Bool

	busy struct {
		mu sync.Mutex
		of [C.Z_LINKS + 1]atomic.Int32 // of is the engine.Activity of each engine.
	}

	self   ports.Self
	native *C.z_native
	ctx    context.Context // ctx ends with the job.
	cancel context.CancelFunc
	// background counts the operations in progress that connect to other jobs or use names of
	// ports.
	background sync.WaitGroup
	// ending counts the links that are being ended in the background.
	ending sync.WaitGroup
	// highest is the greatest number of a link that has been made so far.
	highest atomic.Int32

	mu sync.Mutex
	// numbers maps each known process of another job to the number that this process has assigned
	// to it.
	numbers map[ports.Process]int32
	// processes is the number of processes that have a number: the ranks of this job and the
	// processes in numbers.
	processes int32
	results   map[*engine.Cell]error
	names     ports.Names
	of        [C.Z_LINKS + 1]connection
}

// connection is one link: the engine of a connection to another job.
type connection struct {
	// use is held for reading while a thread is in the link's engine, and for writing when the
	// engine is removed.
	use    sync.RWMutex
	engine atomic.Pointer[engine.Engine]

	// The following fields are protected by linkSet.mu.
	taken bool
	// rank maps process numbers to virtual ranks over the link. It does not change while the link
	// has an engine.
	rank    map[int32]int32
	cluster int32
	comms   int
}

// start stores what the links need to know about this process, once the job's engine runs. Only
// ze_start may call it (getenv).
func (s *linkSet) start(self ports.Self, n *C.z_native, processes int32) {
	origin := jobenv.Origin(getenv, os.Getuid())
	self.Local.Getenv = func(name string) string { // links.join runs on a thread of the engine's
		if name == jobenv.VarOrigin {
			return origin
		}
		return ""
	}
	s.self, s.native, s.processes = self, n, processes
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.numbers, s.results = map[ports.Process]int32{}, map[*engine.Cell]error{}
}

var errNoLink = &engine.Error{Code: engine.ErrArg, Reason: "no such connection to another job"}

// over calls f with the engine of a link, or the job's if link is 0, and converts its error to an
// enum z_error.
func over(link int32, f func(*engine.Engine) error) C.int {
	if link == 0 {
		return with(f)
	}
	if link < 0 || link > C.Z_LINKS {
		return result(errNoLink)
	}
	c := &links.of[link]
	c.use.RLock()
	defer c.use.RUnlock()
	if e := c.engine.Load(); e != nil {
		return result(f(e))
	}
	return result(errNoLink)
}

// setActivity records the activity of a link's engine, and tells the program the combined activity
// of all engines by n.busy.
func (s *linkSet) setActivity(n *C.z_native, link int32, a engine.Activity) {
	busy := (*int32)(unsafe.Pointer(n.busy))
	s.busy.of[link].Store(int32(a))
	if link == 0 {
		atomic.StoreInt32(busy, int32(a))
		// s.any is set before a link has any activity. So if it is not set yet, the link's own call
		// of setActivity stores the combined activity.
		if !s.any.Load() {
			return
		}
	}
	s.busy.mu.Lock()
	defer s.busy.mu.Unlock()
	all := engine.Idle
	for k := range s.busy.of[:s.highest.Load()+1] {
		switch a := engine.Activity(s.busy.of[k].Load()); {
		case a == engine.Busy || all == engine.Busy:
			all = engine.Busy
		case a == engine.Staging:
			all = a
		}
	}
	atomic.StoreInt32(busy, int32(all))
}

// The longest sleeps while there are several engines, since a thread can sleep on one of them only:
// sleepAlone if at most one of them has operations in progress, otherwise sleepAmong.
const (
	sleepAlone = time.Millisecond
	sleepAmong = 200 * time.Microsecond
)

// progress makes progress in the job's engine e and in those of all links, and returns how much
// there was, or engine.Faulted. If there was none it sleeps for up to block, at most sleepAlone.
func (s *linkSet) progress(e *engine.Engine, block time.Duration) int {
	n := e.Progress(min(block, 0))
	if n == engine.Faulted {
		return n
	}
	// the only link with operations in progress; -1: there are several
	active := int32(0)
	for k := int32(1); k <= s.highest.Load(); k++ {
		m := s.step(k, 0)
		if m == engine.Faulted {
			return m
		}
		n += m
		if s.busy.of[k].Load() != int32(engine.Idle) {
			if active != 0 {
				active = -1
			} else {
				active = k
			}
		}
	}
	switch {
	case n > 0 || block <= 0:
		return n
	case active == 0:
		return e.Progress(min(block, sleepAlone))
	case active > 0 && s.busy.of[0].Load() == int32(engine.Idle):
		return s.step(active, min(block, sleepAlone))
	}
	return e.Progress(min(block, sleepAmong))
}

func (s *linkSet) step(link int32, block time.Duration) int {
	c := &s.of[link]
	if c.engine.Load() == nil || !c.use.TryRLock() {
		return 0
	}
	defer c.use.RUnlock()
	if e := c.engine.Load(); e != nil {
		return e.Progress(block)
	}
	return 0
}

// fault returns memory of the program that the engine of a link could not access, if there is any.
func (s *linkSet) fault() (bad engine.BadMemory, found bool) {
	for k := int32(1); k <= s.highest.Load() && !found; k++ {
		if e := s.of[k].engine.Load(); e != nil {
			bad, found = engine.TakeBadMemory(e)
		}
	}
	return bad, found
}

// released tells all links' engines that the memory that fault has returned has been accessed, so
// that the message can continue.
func (s *linkSet) released() {
	for k := int32(1); k <= s.highest.Load(); k++ {
		if e := s.of[k].engine.Load(); e != nil {
			engine.ReleaseBadMemory(e)
		}
	}
}

// ranks converts this process's numbers of processes to virtual ranks over a link.
func (s *linkSet) ranks(link int32, numbers []int32) ([]int32, error) {
	if link == 0 {
		return numbers, nil
	}
	ranks := make([]int32, len(numbers))
	for i, p := range numbers {
		r, ok := s.of[link].rank[p]
		if !ok {
			return nil, &engine.Error{Code: engine.ErrArg, Reason: "the processes belong to different connections between jobs"}
		}
		ranks[i] = r
	}
	return ranks, nil
}

// hold counts a new communicator over a link, and release one that has been freed; the link ends
// with the last one.
func (s *linkSet) hold(link int32) {
	if link != 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.of[link].comms++
	}
}

func (s *linkSet) release(link int32) {
	if link == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[link].comms--; s.of[link].comms == 0 {
		s.end(link)
	}
}

// end ends a link in the background, because the other processes may take time until they end it.
// The caller holds mu.
func (s *linkSet) end(link int32) {
	c := &s.of[link]
	if c.engine.Load() == nil {
		return
	}
	s.ending.Add(1)
	go func() {
		defer s.ending.Done()
		c.use.Lock() // waits until no thread is in the engine
		e := c.engine.Swap(nil)
		c.use.Unlock()
		if e != nil {
			_ = e.Finish() // if the other job is lost, the affected operations have reported it
		}
		s.setActivity(s.native, link, engine.Idle)
		s.mu.Lock()
		defer s.mu.Unlock()
		c.taken, c.rank, c.comms = false, nil, 0
	}()
}

// finish ends all links, in step with the other jobs.
func (s *linkSet) finish() {
	s.cancel()
	s.background.Wait()
	s.mu.Lock()
	for k := range s.of {
		s.end(int32(k))
	}
	s.mu.Unlock()
	s.ending.Wait()
}

// abort ends the links and tells the other jobs the exit status of this job.
func (s *linkSet) abort(status int) {
	for k := int32(1); k <= s.highest.Load(); k++ {
		over(k, func(e *engine.Engine) error {
			e.Abort(status, "MPI_Abort")
			return nil
		})
	}
}

// run calls f in the background. cell is done when f has returned, and result then returns the
// error of f.
func (s *linkSet) run(cell *engine.Cell, f func(context.Context) error) {
	s.any.Store(true)
	cell.Begin()
	s.background.Add(1)
	go func() {
		defer s.background.Done()
		s.done(cell, f(s.ctx))
	}()
}

func (s *linkSet) done(cell *engine.Cell, err error) {
	s.mu.Lock()
	s.results[cell] = err
	s.mu.Unlock()
	cell.Error = int32(engine.CodeOf(err))
	cell.Finish()
}

// result returns the error of the operation in the background to which a cell belongs, and forgets
// it.
func (s *linkSet) result(cell *engine.Cell) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.results[cell]
	delete(s.results, cell)
	return err
}

// number returns this process's number of a process of another job, and assigns one if it has none.
// The caller holds mu.
func (s *linkSet) number(p ports.Process) int32 {
	n, ok := s.numbers[p]
	if !ok {
		n = s.processes
		s.processes++
		s.numbers[p] = n
	}
	return n
}

// numbersOf returns this process's numbers of the processes of a connection, in the order of the
// plan.
func (s *linkSet) numbersOf(p *ports.Plan) []int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []int32
	for _, q := range p.Processes() {
		n := q.Rank
		if q.Job != s.self.Job.ID {
			n = s.number(q)
		}
		list = append(list, n)
	}
	return list
}

var errTooMany = &engine.Error{Code: engine.ErrArg, Reason: fmt.Sprintf("there are %d connections to other jobs already: disconnect some", C.Z_LINKS)}

// join makes a link for the connection of a plan, whose processes are of two jobs, and returns the
// link's number. numbers are this process's numbers of these processes, in the plan's order.
func (s *linkSet) join(ctx context.Context, p *ports.Plan, accepts bool, numbers []int32) (int32, error) {
	seat, err := p.Seat(&s.self, accepts)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	k := int32(1)
	for k <= C.Z_LINKS && s.of[k].taken {
		k++
	}
	if k > C.Z_LINKS {
		s.mu.Unlock()
		return 0, errTooMany
	}
	c := &s.of[k]
	c.taken = true
	if s.highest.Load() < k {
		s.highest.Store(k)
	}
	s.mu.Unlock()
	loc := s.self.Local
	loc.Rank, loc.Size, loc.Hosts, loc.Via, loc.Embedded = seat.Native, seat.Size, nil, seat.Via, false
	e, w, err := boot.Join(ctx, seat.Job, loc, native{s.native, k})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		c.taken = false
		return 0, err
	}
	cluster, _ := w.Place(w.Rank)
	c.cluster, c.rank = int32(cluster), map[int32]int32{}
	for i, n := range numbers {
		c.rank[n] = seat.Ranks[i]
	}
	c.engine.Store(e)
	return k, nil
}
