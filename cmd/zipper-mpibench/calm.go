//go:build openmpi || mpich

package main

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/calm"
)

// keepCalm: a benchmark is to show what a C program gets, and the Go runtime would take a tenth of a core from the ranks.
func keepCalm() {
	runtime.LockOSThread() // which slack is asked for and set is this thread's
	if err := calm.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "zipper-mpibench: cannot set the timer slack (%v): the Go runtime's monitor disturbs the measurement\n", err)
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, calm.Usual, 0, 0, 0) // this thread's own sleeps
}
