package abi

// #include "abi.h"
import "C"

import (
	"unsafe"

	"github.com/leidenzipper/zipper/mmpi/engine"
)

// write copies as many ranks to an array of C as it has room for, and sets *n to their number.
func write(ranks []int32, to *int32, room int32, n *int32) {
	*n = int32(len(ranks))
	if to != nil && room > 0 {
		copy(unsafe.Slice(to, room), ranks)
	}
}

//export ze_failed
func ze_failed(comm int32, ranks *int32, room int32, n *int32) C.int {
	return on(comm, func(e *engine.Engine, c *engine.Comm) error {
		write(e.Failed(c), ranks, room, n)
		return nil
	})
}

//export ze_ack_failed
func ze_ack_failed(comm, n int32, acked *int32) C.int {
	return on(comm, func(e *engine.Engine, c *engine.Comm) error {
		*acked = int32(e.AckFailed(c, int(n)))
		return nil
	})
}

//export ze_revoke
func ze_revoke(comm int32) C.int {
	return on(comm, func(e *engine.Engine, c *engine.Comm) error { return e.Revoke(c) })
}

//export ze_follow
func ze_follow(comm, leader int32) C.int {
	return on(comm, func(e *engine.Engine, c *engine.Comm) error {
		l := e.Comm(leader & idMask)
		if l == nil || leader>>linkShift != comm>>linkShift {
			return errNoComm
		}
		engine.Follow(e, c, l)
		return nil
	})
}

//export ze_revoked
func ze_revoked(comm int32) (yes C.int) {
	on(comm, func(e *engine.Engine, c *engine.Comm) error {
		yes = C.int(bool32(e.Revoked(c)))
		return nil
	})
	return yes
}

//export ze_agree
func ze_agree(comm, flag int32, cell *engineCell) C.int {
	return on(comm, func(e *engine.Engine, c *engine.Comm) error { return e.Agree(c, flag, cell.cell()) })
}

//export ze_shrink
func ze_shrink(comm, flag int32, cell *engineCell) C.int {
	return on(comm, func(e *engine.Engine, c *engine.Comm) error { return e.Shrink(c, flag, cell.cell()) })
}

//export ze_shrunk
func ze_shrunk(comm int32, cell *engineCell, context *uint64, ranks *int32, room int32, n *int32) C.int {
	return on(comm, func(e *engine.Engine, c *engine.Comm) error {
		x, left, err := e.Shrunk(c, cell.cell())
		*context = x
		write(left, ranks, room, n)
		return err
	})
}

//export ze_resume
func ze_resume(comm int32, cell *engineCell) C.int {
	return over(comm>>linkShift, func(e *engine.Engine) error { return e.Resume(cell.cell()) })
}
