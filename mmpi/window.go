//go:build openmpi || mpich

package mmpi

import (
	"fmt"
	"runtime"

	"github.com/leidenzipper/zipper/cgo/mpi"
)

// Window is memory of every process of a communicator into which the other processes write without
// its help (one-sided communication): one passive epoch from NewWindow to Free, in MPI's terms. The
// target of writes polls its memory and calls Sync in between.
type Window struct {
	c      *Comm
	h      mpi.Window
	memory []byte
	pins   []runtime.Pinner // buffers of Put calls that Flush has not completed, by target
}

// NewWindow creates a window with the given number of bytes on this process, zeroed. It is
// collective; sizes may differ. It blocks other goroutines' calls while it runs.
func NewWindow(c *Comm, bytes int) (*Window, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("mmpi: a window of %d bytes", bytes)
	}
	unlock := c.p.lock()
	h, memory, err := c.h.WinAllocate(bytes)
	unlock()
	if err != nil {
		return nil, err
	}
	clear(memory)
	return &Window{c: c, h: h, memory: memory, pins: make([]runtime.Pinner, c.size)}, c.Barrier()
}

// Memory returns this process's part of the window. The memory is not Go's, and must not be used
// after Free.
func (w *Window) Memory() []byte { return w.memory }

// Put starts to write b to a process's memory, at a byte offset there. Until Flush, several Puts
// have no order, and b belongs to MPI.
func (w *Window) Put(b []byte, to, at int) error {
	if to < 0 || to >= w.c.size {
		return fmt.Errorf("mmpi: Put: no rank %d in a window of %d", to, w.c.size)
	}
	m, err := buffer(b)
	if err != nil || len(b) == 0 {
		return err
	}
	w.pins[to].Pin(m.P)
	unlock := w.c.p.lock()
	defer unlock()
	return w.h.Put(m, to, at)
}

// Flush waits until everything that was put to a process is in its memory. It blocks other
// goroutines' calls while it runs.
func (w *Window) Flush(to int) error {
	if to < 0 || to >= w.c.size {
		return fmt.Errorf("mmpi: Flush: no rank %d in a window of %d", to, w.c.size)
	}
	unlock := w.c.p.lock()
	defer unlock()
	err := w.h.Flush(to)
	w.pins[to].Unpin()
	return err
}

// Sync makes the writes of others to this process's memory visible, and lets MPI make progress. It
// must be called when polling.
func (w *Window) Sync() error {
	unlock := w.c.p.lock()
	defer unlock()
	return w.h.Sync()
}

// Free ends the epoch and frees the memory. It is collective.
func (w *Window) Free() error {
	unlock := w.c.p.lock()
	defer unlock()
	err := w.h.Free()
	for i := range w.pins {
		w.pins[i].Unpin()
	}
	w.memory = nil
	return err
}
