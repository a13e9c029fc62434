//go:build openmpi || mpich

package main

import (
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

// calm keeps the Go runtime out of what is measured. Its monitor thread looks every 20 µs for threads that stay in foreign code, as one that waits
// in MPI does, and takes a tenth of a core from the ranks: a benchmark is to show what a C program gets. The monitor sleeps longer if the
// program was started with a long timer slack, which threads inherit; so the program starts itself once more with one.
func calm() {
	runtime.LockOSThread()
	slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err == nil && slack != calmSlack {
		if err = unix.Prctl(unix.PR_SET_TIMERSLACK, calmSlack, 0, 0, 0); err == nil {
			var self string
			if self, err = os.Executable(); err == nil {
				err = unix.Exec(self, os.Args, os.Environ()) // comes back only if it fails
			}
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "zipper-mpibench: cannot set the timer slack (%v): the Go runtime's monitor disturbs the measurement\n", err)
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, usualSlack, 0, 0, 0) // this thread's own sleeps
}
