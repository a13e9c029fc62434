package abi

// #include "abi.h"
import "C"

import (
	"math"
	"unsafe"

	"github.com/leidenzipper/zipper/internal/rma"
	"github.com/leidenzipper/zipper/mmpi/engine"
)

// memory is the program's memory relative to an address. Offsets may be negative, or addresses
// relative to MPI_BOTTOM.
type memory uintptr

// At implements rma.Space.
func (m memory) At(off int64, n int) []byte { return bytes(uintptr(int64(m)+off), int64(n)) }

// view converts a z_view to its Go form, in memory of its own.
func view(v *C.z_view) rma.View {
	var at rma.Space = memory(uintptr(v.base))
	if v.device != 0 {
		at = rma.Device{Space: at, Copy: copyDevice}
	}
	r := rma.View{Space: at, Layout: rma.Layout{Count: int64(v.count), Extent: int64(v.extent)}}
	if v.n > 0 {
		for _, s := range unsafe.Slice(v.spans, int(v.n)) {
			r.Spans = append(r.Spans, rma.Span{Off: int64(s.off), Len: int64(s.len)})
		}
	}
	return r
}

var errNoWindow = &engine.Error{Code: engine.ErrArg, Reason: "no such window in the engine"}

// window calls f with the window of a number, and converts its error to an enum z_error.
func window(id int32, f func(*engine.Window) error) C.int {
	return over(id>>linkShift, func(e *engine.Engine) error {
		if w := e.Window(id & idMask); w != nil {
			return f(w)
		}
		return errNoWindow
	})
}

//export ze_win_add
func ze_win_add(link int32, context uint64, size, rank int32, world *int32, base uintptr, n, unit int64, kind int32,
	id *int32) C.int {
	return over(link, func(e *engine.Engine) error {
		if size <= 0 || n < 0 || n > math.MaxInt64/2 {
			return &engine.Error{Code: engine.ErrArg, Reason: "a window without ranks, or with an invalid size"}
		}
		ranks, err := links.ranks(link, unsafe.Slice(world, size))
		if err != nil {
			return err
		}
		w, err := e.AddWindow(context, int(rank), ranks,
			rma.Config{Unit: unit, Dynamic: kind&C.Z_WIN_DYNAMIC != 0, Memory: bytes(base, n),
				Device: kind&C.Z_WIN_DEVICE != 0, Copy: copyDevice,
				Across: func(addr uint64, n int) []byte { return bytes(uintptr(addr), int64(n)) }})
		if err == nil {
			*id = link<<linkShift | w.ID()
		}
		return err
	})
}

//export ze_win_drop
func ze_win_drop(win int32) C.int { return window(win, (*engine.Window).Drop) }

//export ze_win_attach
func ze_win_attach(win int32, base uintptr, n int64, device int32) C.int {
	return window(win, func(w *engine.Window) error {
		return w.Call(nil, func(d *rma.Node, _ any) error {
			return d.Attach(uint64(base), bytes(base, n), device != 0)
		})
	})
}

//export ze_win_detach
func ze_win_detach(win int32, base uintptr) C.int {
	return window(win, func(w *engine.Window) error {
		return w.Call(nil, func(d *rma.Node, _ any) error { return d.Detach(uint64(base)) })
	})
}

// optional converts a cell of C, which may be NULL, to one of the engine, which is then nil.
func optional(c *engineCell) *engine.Cell {
	if c == nil {
		return nil
	}
	return c.cell()
}

//export ze_win_op
func ze_win_op(win int32, op *C.z_rma, cell *engineCell, left *uint64) C.int {
	return window(win, func(w *engine.Window) (err error) {
		*left, err = w.Operate(rma.Operation{Verb: rma.Verb(op.verb), Fn: uint8(op.fn), Kind: uint8(op.number),
			Target: int(op.target), Disp: int64(op.disp),
			Data: view(&op.data), There: view(&op.there).Layout, Result: view(&op.result)}, optional(cell))
		return err
	})
}

//export ze_win_more
func ze_win_more(win int32, left *uint64) C.int {
	return window(win, func(w *engine.Window) (err error) {
		*left, err = w.More(*left)
		return err
	})
}

//export ze_win_sync
func ze_win_sync(win, what, target, flag int32, group *int32, size int32, cell *engineCell) C.int {
	var ranks []int
	if size > 0 {
		for _, r := range unsafe.Slice(group, size) {
			ranks = append(ranks, int(r))
		}
	}
	return window(win, func(w *engine.Window) error {
		return w.Call(optional(cell), func(n *rma.Node, token any) error {
			switch what {
			case C.Z_SYNC_FENCE:
				return n.Fence(flag != 0, token)
			case C.Z_SYNC_FLUSH:
				return n.Flush(int(target), token)
			case C.Z_SYNC_LOCK:
				return n.Lock(int(target), rma.How(flag), token)
			case C.Z_SYNC_UNLOCK:
				return n.Unlock(int(target), token)
			case C.Z_SYNC_LOCK_ALL:
				return n.LockAll(flag&C.Z_LOCK_UNCHECKED != 0, token)
			case C.Z_SYNC_UNLOCK_ALL:
				return n.UnlockAll(token)
			case C.Z_SYNC_POST:
				return n.Post(ranks)
			case C.Z_SYNC_START:
				return n.Start(ranks, token)
			case C.Z_SYNC_COMPLETE:
				return n.Complete(token)
			case C.Z_SYNC_WAIT:
				return n.Wait(token)
			case C.Z_SYNC_IDLE:
				return n.Idle(token)
			}
			return &engine.Error{Code: engine.ErrArg, Reason: "no such synchronization"}
		})
	})
}

//export ze_win_test
func ze_win_test(win int32, over *int32) C.int {
	return window(win, func(w *engine.Window) error {
		if err := w.Failed(); err != nil {
			return err
		}
		return w.Call(nil, func(n *rma.Node, _ any) error {
			yes, err := n.Test()
			*over = bool32(yes)
			return err
		})
	})
}
