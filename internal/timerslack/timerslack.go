// Package timerslack keeps the Go runtime from disturbing the measurements of a program. It is for
// main packages.
package timerslack

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// These are timer slacks in ns: Linux's default, and that of the Go runtime's threads in a program
// that Start has started.
const (
	usual = 50_000
	slack = 5_000_000
)

// Start starts the program once more with a long timer slack, which all its threads inherit. It
// returns in the new program, or with an error. It must be called first, before there is any
// goroutine or file that the new program would lack.
//
// Go's monitor thread looks every 20 µs for threads that stay in system calls or foreign code.
// After each one that it finds it keeps doing so for a millisecond or more. Threads that wait for
// messages are of this kind, so a process that wakes a few hundred times a second uses 5 to 10 % of
// a core. With a long slack the monitor sleeps longer.
func Start() error {
	runtime.LockOSThread() // the slack belongs to a thread
	defer runtime.UnlockOSThread()
	switch now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); {
	case err != nil:
		return err
	case now == slack:
		Workers()
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, slack, 0, 0, 0); err != nil {
		return err
	}
	// Linux ignores the call under a real-time policy. Without this check the program would start
	// itself for ever.
	if now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err != nil || now != slack {
		return errors.Join(err, fmt.Errorf("the timer slack is %d ns, want %d: is the scheduling policy a real-time one?", now, slack))
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return unix.Exec(self, os.Args, os.Environ())
}

// Workers gives the Go runtime's threads their usual slack: those that run Go, not the monitor. It
// must be called before anything else where the runtime has started with a long slack.
//
// A thread that looks for work sleeps for 3 µs before it takes some from another one (runqgrab in
// the runtime), as at the start of a garbage collection. With the monitor's slack that took up to 5
// ms, in which the program had none of Go's processors.
func Workers() {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, usual, 0, 0, 0) // the caller may be locked to its thread
	found := map[int]bool{unix.Gettid(): true}
	// For a goroutine that is locked to its thread, the runtime's starter of threads makes new
	// threads, whose slack is the long one. For any other goroutine its own thread makes them.
	var done sync.WaitGroup
	done.Go(func() {
		for range attempts {
			reset(found)
			if tasks, err := os.ReadDir("/proc/self/task"); err != nil || len(tasks)-len(found) <= others {
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
	done.Wait()
}

// reset gives workers threads the usual slack, and adds their ids to found.
func reset(found map[int]bool) {
	// With one processor a thread is woken or made only when the one before it blocks. So
	// goroutines that are locked to their threads and block find all existing threads, and no
	// thread is made that they do not find. Later, work that needs a thread finds these idle. If
	// there were none the monitor would make one, when it takes the processor of a thread that
	// stays in a system call, and the new thread would inherit the monitor's slack.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var lock sync.Mutex
	var all, done sync.WaitGroup
	all.Add(workers)
	for range workers {
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			_ = unix.Prctl(unix.PR_SET_TIMERSLACK, usual, 0, 0, 0)
			lock.Lock()
			found[unix.Gettid()] = true
			lock.Unlock()
			all.Done()
			all.Wait()
		})
	}
	done.Wait()
}

// workers is larger than the number of threads with which the runtime starts, and than the number
// that later run Go or stay in system calls where GOMAXPROCS is small: with 3 processors up to 6
// were seen on a busy machine.
const workers = 8

// On a busy machine a thread can be on its way to the idle ones, where it is not found yet.
// Counting the threads shows that. The others are the monitor and, in programs with cgo, the thread
// that starts threads. A C library may have threads of its own, so the number of attempts is
// bounded.
const (
	others   = 2
	attempts = 20
)
