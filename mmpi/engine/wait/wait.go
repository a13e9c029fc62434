// Package wait implements the waits of an engine's threads, and progress while no application
// thread polls: event descriptors, sleeps and the progress thread. It does not depend on links or
// messages; it drives a Driver.
//
// Waiting application threads sleep in ppoll, on the links and on an event for each thread. A
// thread that completes an operation of another one signals that thread's event. (With one event
// for all, the first thread to wake would take the others' signals.) While application threads poll
// the progress thread sleeps by time alone, so messages do not wake it. When no thread has polled
// for a tick it sleeps on the links itself, until an application thread polls again. An event of
// its own notifies it of output that it does not know of.
//
// If nothing is left to do it is idle: it sleeps long, and lets Go's monitor sleep too, so that a
// program that computes or communicates inside its cluster is not disturbed. The event ends that
// when an application thread leaves work for a tick, or no longer sleeps on the links in its place.
package wait

import (
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Driver is the object that threads wait for. All methods but Lock, TryLock and Now are called with
// its lock. Unlock calls Waiter.Alert.
type Driver interface {
	Lock()
	TryLock() bool
	Unlock()

	// Now returns the time since the driver's start.
	Now() time.Duration
	// Step moves bytes once, without blocking, and returns the number of steps taken.
	Step() int
	// Tick does the work that is due from time to time.
	Tick(now time.Duration)
	// Flush writes out messages that are held to go out together.
	Flush()
	// Ended reports whether there is nothing left to drive.
	Ended() bool
	// Quiet reports whether a tick would at most have to detect silent links, so that ticks may be
	// rare.
	Quiet() bool
	// Pending reports whether output waits for room.
	Pending() bool
	// Arm prepares the links for sleeping on them. It returns true if there is something to read.
	Arm() bool
	// Poll appends the links' descriptors.
	Poll([]unix.PollFd) []unix.PollFd
	// EventsClosed reports that the program has closed a descriptor of the Waiter. The driver has
	// to fail.
	EventsClosed()
}

// Waiter implements the waits of the threads of one process.
type Waiter struct {
	sys   System
	d     Driver
	keeps bool // value of embedded in Open
	ev    events

	polls    atomic.Uint64   // number of calls of Polled
	sleepers atomic.Int32    // number of application threads in ppoll
	longest  time.Duration   // longest sleep that the last of them wants
	asleep   []*sleeper      // application threads in ppoll; guarded by the lock
	awake    []*sleeper      // free sleepers; guarded by the lock
	sets     [][]unix.PollFd // free sets; guarded by the lock

	t progressThread
}

// Open prepares waiting for d. embedded says that this Go runtime serves the engine alone (Ppoll).
func (w *Waiter) Open(sys System, d Driver, embedded bool) error {
	w.sys, w.d, w.keeps = sys, d, embedded
	return w.ev.open(sys)
}

// Close closes the descriptors. No thread may wait any more.
func (w *Waiter) Close() {
	w.ev.close(w.sys)
	for _, s := range w.awake {
		if s.wake >= 0 {
			w.sys.Close(s.wake)
		}
	}
}

// Polled counts a poll by an application thread.
func (w *Waiter) Polled() { w.polls.Add(1) }

// Alert wakes sleeping threads that are affected by changes under the lock. completed says that an
// operation has completed.
func (w *Waiter) Alert(completed bool) {
	if completed {
		w.wakeSleepers()
	}
	if w.t.watching.Load() && !w.t.forOutput && w.d.Pending() || w.t.idle.Load() && !w.d.Quiet() {
		w.wakeThread()
	}
}

// sleeper is an application thread in ppoll.
type sleeper struct {
	wake     int // event; -1 if the process has no descriptor left
	signaled bool
}

func (w *Waiter) wakeSleepers() {
	for _, s := range w.asleep {
		if !s.signaled && s.wake >= 0 {
			s.signaled = true
			w.sys.Signal(s.wake)
		}
	}
}

// bed returns an event for the calling thread to sleep on.
func (w *Waiter) bed() *sleeper {
	if n := len(w.awake); n > 0 {
		s := w.awake[n-1]
		w.awake = w.awake[:n-1]
		return s
	}
	wake, err := w.sys.Event()
	if err != nil { // the process has too many descriptors
		wake = -1
	}
	return &sleeper{wake: wake}
}

// WakeAll makes sleeping threads sleep on new descriptors. The caller holds the lock.
func (w *Waiter) WakeAll() {
	w.wakeSleepers()
	w.sys.Signal(w.ev.kick)
}

// closed reports whether a descriptor that a thread has slept on is no longer one.
func closed(p unix.PollFd) bool { return p.Revents&unix.POLLNVAL != 0 }

// Block sleeps on the links for up to d. The caller holds the lock, which is released meanwhile.
func (w *Waiter) Block(d time.Duration) {
	if w.d.Arm() {
		return
	}
	keep := w.keeps && d <= keptFor
	s := w.bed()
	if w.sleepers.Load() > 0 {
		keep = false
	}
	if s.wake < 0 {
		d = min(d, unwakedFor)
	}
	var set []unix.PollFd
	if n := len(w.sets); n > 0 {
		set, w.sets = w.sets[n-1], w.sets[:n-1]
	}
	set = w.d.Poll(append(set, unix.PollFd{Fd: int32(s.wake), Events: unix.POLLIN}))
	w.asleep = append(w.asleep, s)
	w.sleepers.Add(1)
	w.longest = d
	w.d.Unlock()
	w.sys.Poll(set, d, keep)
	w.d.Lock()
	if s.wake >= 0 && closed(set[0]) {
		w.d.EventsClosed()
	}
	w.polls.Add(1)
	if w.sleepers.Add(-1) == 0 && w.t.idle.Load() {
		w.wakeThread()
	}
	if s.signaled {
		s.signaled = false
		w.sys.Drain(s.wake)
	}
	i := slices.Index(w.asleep, s)
	w.asleep = slices.Delete(w.asleep, i, i+1)
	w.awake = append(w.awake, s)
	w.sets = append(w.sets, set[:0])
}

// Pause sleeps with the lock held until a link can take more, for up to d. It is only used at the
// end of the job, when nothing else may happen. Bytes that arrive are no longer read, so they wake
// no thread.
func (w *Waiter) Pause(d time.Duration) {
	// Links without output are left out, because poll(2) always reports closed ones.
	set := slices.DeleteFunc(w.d.Poll(nil), func(p unix.PollFd) bool { return p.Events&unix.POLLOUT == 0 })
	for i := range set {
		set[i].Events = unix.POLLOUT
	}
	w.sys.Hold(set, d)
}
