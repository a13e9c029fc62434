// Package calm keeps the Go runtime out of what a program measures: for main packages.
package calm

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Timer slacks in ns: Linux's own, and that of the Go runtime's threads in a calm program.
const (
	Usual = 50_000
	slack = 5_000_000
)

// Start starts the program once more with a long timer slack, which all its threads inherit, and returns in the program so started, or with an error. It is to be called
// first, before there is any goroutine or file that the new program would miss.
//
// Go's monitor thread looks every 20 µs for threads that stay in system calls or foreign code, as those do that wait for messages, for a millisecond and
// more after each it finds. A process that wakes a few hundred times a second takes 5 to 10 % of a core that way. With a long slack the monitor's sleeps last longer, and
// so do all others: threads that need shorter ones set Usual.
func Start() error {
	runtime.LockOSThread() // the slack is a thread's
	defer runtime.UnlockOSThread()
	if now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err != nil || now == slack {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, slack, 0, 0, 0); err != nil {
		return err
	}
	// Linux ignores the call under a real-time policy: without this look the program would start itself for ever.
	if now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err != nil || now != slack {
		return errors.Join(err, fmt.Errorf("the timer slack is %d ns, want %d: is the scheduling policy a real-time one?", now, slack))
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return unix.Exec(self, os.Args, os.Environ())
}
