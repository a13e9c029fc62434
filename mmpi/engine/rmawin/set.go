package rmawin

import (
	"slices"
	"sync"

	"github.com/leidenzipper/zipper/internal/idtable"
	"github.com/leidenzipper/zipper/internal/rma"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
	"github.com/leidenzipper/zipper/mmpi/engine/pt2pt"
)

// Host is the engine: its lock, and its wait.
type Host interface {
	sync.Locker
	// Await makes progress until cond, which is called with the lock, returns true, or the engine
	// has failed. The caller must not hold the lock.
	Await(cond func() bool) error
}

// Set has the windows of a process.
type Set struct {
	ep      *pt2pt.Endpoint
	host    Host
	compute func(fn, kind uint8, inout, in []byte) error
	recode  func(kind uint8, b []byte, in bool)
	windows []*Window
	table   idtable.Table[Window] // the windows by ID, for Window
	held    int                   // number of calls that a caller waits for
}

// New returns a Set over the messages of ep. compute does the arithmetic of accumulates
// (engine.Native). recode converts numbers for other processes, and is nil if it need not.
func New(ep *pt2pt.Endpoint, host Host, compute func(fn, kind uint8, inout, in []byte) error,
	recode func(kind uint8, b []byte, in bool)) *Set {
	return &Set{ep: ep, host: host, compute: compute, recode: recode}
}

// Add makes this process's end of a window. It sets cfg.Rank, Size, Compute and Recode. world is as
// in pt2pt.Endpoint.AddComm.
func (s *Set) Add(context uint64, rank int, world []int32, cfg rma.Config) (*Window, error) {
	remote := make([]int32, len(world))
	for i := range remote {
		remote[i] = pt2pt.Remote
	}
	c, err := s.ep.AddComm(0, context, rank, world, remote)
	if err != nil {
		return nil, err
	}
	c.Background = true
	cfg.Rank, cfg.Size, cfg.Compute, cfg.Recode = rank, len(world), s.compute, s.recode
	w := &Window{set: s, c: c, node: rma.NewNode(cfg),
		cells: map[*pt2pt.Cell]struct{}{}, begun: map[uint64]*rma.Transfer{}}
	for i := range w.ring {
		w.ring[i].buf = make([]byte, rma.MaxMessage)
		if err := w.post(&w.ring[i]); err != nil {
			return nil, err
		}
	}
	s.windows = append(s.windows, w)
	s.table.Set(w.ID(), w)
	s.ep.Links().Flush()
	return w, nil
}

func (s *Set) remove(w *Window) {
	s.windows = slices.DeleteFunc(s.windows, func(x *Window) bool { return x == w })
	s.table.Set(w.ID(), nil)
}

// Window returns the window with that number, or nil if there is none. It needs no lock.
func (s *Set) Window(id int32) *Window { return s.table.Get(id) }

// Any reports whether there are windows.
func (s *Set) Any() bool { return len(s.windows) > 0 }

// Serve handles the messages that have arrived.
func (s *Set) Serve() {
	for i := 0; i < len(s.windows) && s.ep.Err() == nil; i++ {
		if w := s.windows[i]; w.ring[w.head].cell.Done() {
			w.serve()
			s.ep.Links().Flush()
		}
	}
}

// hold adds n to the number of calls that a caller waits for.
func (s *Set) hold(n int) {
	s.held += n
	s.ep.Hold(n)
}

// Held returns the number of calls that a caller waits for.
func (s *Set) Held() int { return s.held }

// Lost ends the calls on windows that have a member in a lost cluster.
func (s *Set) Lost() {
	for _, w := range s.windows {
		if code := w.c.Failure(); code != fault.OK {
			for c := range w.cells {
				w.end(c, code)
			}
			clear(w.begun)
		}
	}
}

// Fail completes all calls with an error.
func (s *Set) Fail(code fault.Code) {
	for _, w := range s.windows {
		for c := range w.cells {
			w.end(c, code)
		}
	}
	s.windows = nil
}
