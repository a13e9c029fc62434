package transfer

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// moment returns the time of the clock that all processes of a machine share, in ns.
func moment() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // every Linux has it
	return t.Nano()
}

// until sleeps until a moment, exact to some microseconds: a goroutine that sleeps is late by up to
// the timer slack of the runtime's threads.
func until(at int64) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err == nil {
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
		defer func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0) }()
	}
	for moment() < at {
		t := unix.NsecToTimespec(at)
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &t, nil) // a signal ends it early
	}
}
