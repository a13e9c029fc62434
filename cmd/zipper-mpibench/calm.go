//go:build openmpi || mpich

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Timer slacks in ns: Linux's own, and that of the Go runtime's threads here.
const (
	usualSlack = 50_000
	calmSlack  = 5_000_000
)

// startCalm sets the slack and starts the program again; it comes back only if that fails.
func startCalm() error {
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, calmSlack, 0, 0, 0); err != nil {
		return err
	}
	// Linux ignores the call under a real-time policy: without this look the program would start itself for ever.
	if slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err != nil || slack != calmSlack {
		return errors.Join(err, fmt.Errorf("it is %d ns, want %d: is the scheduling policy a real-time one?", slack, calmSlack))
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return unix.Exec(self, os.Args, os.Environ())
}

// calm keeps the Go runtime out of what is measured. Its monitor thread looks every 20 µs for threads that stay in foreign code, as one that waits
// in MPI does, and takes a tenth of a core from the ranks: a benchmark is to show what a C program gets. The monitor sleeps longer if the
// program was started with a long timer slack, which threads inherit; so the program starts itself once more with one.
func calm() {
	runtime.LockOSThread()
	slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err == nil && slack != calmSlack {
		err = startCalm()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "zipper-mpibench: cannot set the timer slack (%v): the Go runtime's monitor disturbs the measurement\n", err)
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, usualSlack, 0, 0, 0) // this thread's own sleeps
}
