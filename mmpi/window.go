//go:build openmpi || mpich

package mmpi

import (
	"fmt"
	"runtime"

	"github.com/leidenzipper/zipper/cgo/mpi"
)

// Window is memory of every process of a communicator into which the others write without its help
// (one-sided communication): one passive epoch from NewWindow to Free, in MPI's terms. Who is
// written to polls its memory and calls Sync in between.
type Window struct {
	c      *Comm
	h      mpi.Window
	memory []byte
	pins   []runtime.Pinner // by target: what Put was given and Flush has not seen to the end
}

// NewWindow makes a window with so many bytes on this process, zeroed. Collective; sizes may
// differ. It keeps other goroutines out while it runs.
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

// Memory is this process's part. It is not Go's: do not use it after Free.
func (w *Window) Memory() []byte { return w.memory }

// Put starts to write b to a process's memory, at a byte offset there. Several are in no order, and
// b belongs to MPI, until Flush.
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

// Flush waits until everything that was put to a process is in its memory. It keeps other
// goroutines out while it runs.
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

// Sync shows this process what has been written to its memory, and lets MPI make progress: call it
// when polling.
func (w *Window) Sync() error {
	unlock := w.c.p.lock()
	defer unlock()
	return w.h.Sync()
}

// Free ends all and gives the memory back. Collective.
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
