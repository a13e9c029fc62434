//go:build cgo

// Package inherited restores which signals this process was started to ignore or to block. Go's
// runtime has handlers of its own for most signals, and unblocks some, so processes that a Go
// program starts would have the defaults, under which most signals end a process.
//
// Without cgo no code runs before Go's runtime to record them, and the functions do nothing.
package inherited

// #include "inherited.h"
import "C"

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// last is the largest number of a signal.
const last = 64

// Ignore ignores the signals again that were ignored when this process was started, except some, so
// that its children ignore them.
func Ignore(except ...syscall.Signal) {
	keep := make(map[syscall.Signal]bool, len(except))
	for _, s := range except {
		keep[s] = true
	}
	for s := syscall.Signal(1); s <= last; s++ {
		if C.zi_is_ignored(C.int(s)) != 0 && !keep[s] {
			signal.Ignore(s)
		}
	}
}

// Restore ignores all signals again that were ignored when this process was started, and gives the
// calling thread the mask of that time, so that the program that replaces this one by exec has
// both. The caller must have locked its goroutine to the thread. The error is the system's.
func Restore() error {
	Ignore()
	return unix.PthreadSigmask(unix.SIG_SETMASK, &unix.Sigset_t{Val: [16]uint64{uint64(C.zi_blocked_mask())}}, nil)
}
