// Package wait is how threads wait for the engine, and who moves bytes when nobody does: event
// descriptors, sleeps and the progress thread. It knows neither links nor messages; what it drives
// is a Driver.
//
// Waiting application threads sleep in ppoll, on the links and on an event each. A thread that
// completes something for another one signals that one's event. (With one event for all, the first
// thread to wake would take the others' signals.) While application threads poll the progress
// thread sleeps by time alone, so messages do not wake it. When nobody has polled for a tick it
// sleeps on the links itself, until somebody polls again. An event of its own tells it that there
// is output it does not know of.
//
// Where nothing is left to do it is idle: it sleeps long, and lets Go's monitor sleep too, so that
// a program that computes or talks inside its cluster is not disturbed. The event ends that when an
// application thread leaves something for a tick, or no longer sleeps on the links in its place.
package wait

import (
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Driver is what threads wait for. All but Lock, TryLock and Now are called with its lock. Unlock
// calls Waiter.Alert.
type Driver interface {
	Lock()
	TryLock() bool
	Unlock()

	// Now is the time since the driver's start.
	Now() time.Duration
	// Step moves bytes once, without blocking, and returns how many.
	Step() int
	// Tick does what has to be done from time to time.
	Tick(now time.Duration)
	// Flush writes out what is held to go out together.
	Flush()
	// Ended reports whether there is nothing left to drive.
	Ended() bool
	// Quiet reports whether a tick would find nothing to do.
	Quiet() bool
	// Pending reports whether output waits for room.
	Pending() bool
	// Arm prepares the links for sleeping on them; true: there is something to read.
	Arm() bool
	// Poll appends the links' descriptors.
	Poll([]unix.PollFd) []unix.PollFd
	// EventsClosed tells that the program has closed a descriptor of the Waiter: the driver fails.
	EventsClosed()
}

// Waiter is how the threads of one process wait.
type Waiter struct {
	sys   System
	d     Driver
	keeps bool // see Open
	ev    events

	polls    atomic.Uint64   // calls of Polled
	sleepers atomic.Int32    // application threads in ppoll
	longest  time.Duration   // how long the last of them wants to sleep
	asleep   []*sleeper      // these threads; under the lock
	awake    []*sleeper      // free; under the lock
	sets     [][]unix.PollFd // free; under the lock

	t progressThread
}

// Open prepares waiting for d. embedded: this Go runtime serves the engine alone (Ppoll).
func (w *Waiter) Open(sys System, d Driver, embedded bool) error {
	w.sys, w.d, w.keeps = sys, d, embedded
	return w.ev.open(sys)
}

// Close frees the descriptors. No thread waits any more.
func (w *Waiter) Close() {
	w.ev.close(w.sys)
	for _, s := range w.awake {
		if s.wake >= 0 {
			w.sys.Close(s.wake)
		}
	}
}

// Polled notes that an application thread looks for progress.
func (w *Waiter) Polled() { w.polls.Add(1) }

// Alert wakes threads that sleep and should know of what has changed under the lock; completed: an
// operation is over.
func (w *Waiter) Alert(completed bool) {
	if completed {
		w.wakeSleepers()
	}
	if w.t.watching.Load() && !w.t.forOutput && w.d.Pending() || w.t.idle.Load() && !w.d.Quiet() {
		w.rouse()
	}
}

// sleeper is an application thread in ppoll.
type sleeper struct {
	wake     int // event; -1: there is none left
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

// bed gives the calling thread an event to sleep on.
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

// WakeAll has whoever sleeps do so on descriptors that are new. With the lock.
func (w *Waiter) WakeAll() {
	w.wakeSleepers()
	w.sys.Signal(w.ev.kick)
}

// closed reports whether what was slept on is no descriptor any more.
func closed(p unix.PollFd) bool { return p.Revents&unix.POLLNVAL != 0 }

// Block sleeps on the links for up to d, unlocked meanwhile. The caller has the lock, and has it
// again afterwards.
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
		w.rouse()
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

// Pause sleeps with the lock until a link takes more, for up to d: at the end of the job only, when
// nothing else may happen. What comes is not read any more, so nobody is waked by it.
func (w *Waiter) Pause(d time.Duration) {
	// Links that want to write nothing are left out: of one that is closed poll(2) tells unasked.
	set := slices.DeleteFunc(w.d.Poll(nil), func(p unix.PollFd) bool { return p.Events&unix.POLLOUT == 0 })
	for i := range set {
		set[i].Events = unix.POLLOUT
	}
	w.sys.Hold(set, d)
}
