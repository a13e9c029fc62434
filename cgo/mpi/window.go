//go:build openmpi || mpich

package mpi

// #include "binding.h"
import "C"

import "unsafe"

// Window is an opaque handle of the MPI library.
type Window C.uintptr_t

func (w Window) h() C.uintptr_t { return C.uintptr_t(w) }

// WinAllocate is MPI_Win_allocate with units of a byte, followed by MPI_Win_lock_all. The memory is
// MPI's and is freed with the window.
func (c Communicator) WinAllocate(bytes int) (Window, []byte, error) {
	var p unsafe.Pointer
	var w C.uintptr_t
	if err := check("MPI_Win_allocate", C.b_win_allocate(C.int64_t(bytes), c.h(), &p, &w)); err != nil {
		return 0, nil, err
	}
	return Window(w), unsafe.Slice((*byte)(p), bytes), nil
}

// Put is MPI_Put of bytes; pin them until Flush has returned.
func (w Window) Put(b Buffer, target, at int) error {
	return check("MPI_Put", C.b_put(b.P, b.n(), C.int(target), C.int64_t(at), w.h()))
}

// Flush is MPI_Win_flush. It blocks.
func (w Window) Flush(target int) error {
	return check("MPI_Win_flush", C.b_win_flush(C.int(target), w.h()))
}

// Sync is MPI_Win_sync, and lets the library make progress.
func (w Window) Sync() error { return check("MPI_Win_sync", C.b_win_sync(w.h())) }

// Free is MPI_Win_unlock_all and MPI_Win_free.
func (w *Window) Free() error {
	h := w.h()
	err := check("MPI_Win_free", C.b_win_free(&h))
	*w = Window(h)
	return err
}
