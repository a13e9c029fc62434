// Package kernel is an operating system and a network in memory: threads, virtual time, descriptors
// and connections. One thread runs at a time, until it sleeps. A seed alone decides which thread
// runs next, and after how long. So a program that sleeps only in this kernel does the same in
// every run with the same seed. A sleep takes virtual time only, and no real time.
//
// A thread is a coroutine (iter.Pull). Only the thread itself may call the functions that act on
// the running thread. A Kernel must be used by one goroutine at a time.
package kernel

import (
	"math/rand/v2"
	"time"
)

// Kernel is one simulated world: virtual time, planned events, processes with threads, descriptors
// and connections.
type Kernel struct {
	Rand *rand.Rand // source of the kernel's decisions; programs should have their own

	now     time.Duration // virtual time since the start
	events  queue         // planned actions, the earliest first
	seq     uint64        // number of events planned so far
	fds     []*descriptor // open descriptors by number; nil if closed
	running *Thread       // thread that runs now; nil if none does
	steps   uint64        // number of events handled so far
	looks   int           // polls by threads since the last event
	// stuck is the name of a process whose thread polls without end; empty if there is none.
	stuck  string
	trace  Hash                 // hash that Trace returns
	places map[string]*Listener // listeners by address
}

// firstFD is the number of the first descriptor.
const firstFD = 4

// New creates a world without processes, whose random decisions follow from seed.
func New(seed uint64) *Kernel {
	return &Kernel{Rand: rand.New(rand.NewPCG(seed, 0x5eed)), fds: make([]*descriptor, firstFD),
		places: map[string]*Listener{}}
}

// Now returns the virtual time since the start. A thread that has spent processor time since its
// last call sees that time added.
func (k *Kernel) Now() time.Duration {
	if k.running != nil {
		return k.now + k.running.spent
	}
	return k.now
}

// Steps returns the number of events that the kernel has handled so far.
func (k *Kernel) Steps() uint64 { return k.steps }

// Stuck returns the name of a process with a thread that polls without ever sleeping, or "" if
// there is none.
func (k *Kernel) Stuck() string { return k.stuck }

// Trace returns a hash of the arrivals of bytes so far, with time, reader and length, and of the
// words given to Note. Runs that have done the same have equal hashes.
func (k *Kernel) Trace() uint64 { return uint64(k.trace) }

// Note adds the words b to the hash that Trace returns.
func (k *Kernel) Note(b ...uint64) {
	for _, x := range b {
		k.trace.add(x)
	}
}

// After calls fn once the virtual time d is over, unless the returned timer is stopped before.
func (k *Kernel) After(d time.Duration, fn func()) *Timer {
	t := &Timer{k: k, fn: fn}
	t.Reset(d)
	return t
}

// Run handles events until over returns true, or until no event is left. It calls over before each
// event.
func (k *Kernel) Run(over func() bool) {
	for again := true; len(k.events) > 0; {
		if again && over() {
			return
		}
		e := k.events.pop()
		if again = !e.do.stale(e.n); again {
			k.now = max(k.now, e.at)
			k.steps++
			k.looks = 0
			e.do.due()
		}
	}
}

// at plans a call of fn at virtual time t. The order of events with equal times is random.
func (k *Kernel) at(t time.Duration, fn func()) { k.plan(t, call(fn), 0) }

func (k *Kernel) plan(t time.Duration, do action, n uint64) {
	k.seq++
	k.events.push(event{t, k.Rand.Uint32(), k.seq, do, n})
}

// Timer calls a function later, as a time.Timer does. After creates it.
type Timer struct {
	k     *Kernel // kernel that calls fn
	fn    func()  // function to be called
	armed bool    // whether a call is planned
	// times is the number of times that the timer was set or stopped, which detects outdated
	// calls.
	times uint64
}

// Stop cancels the planned call of the timer's function, and reports whether there was one.
func (t *Timer) Stop() bool {
	was := t.armed
	t.armed = false
	t.times++
	return was
}

// Reset plans the call of the timer's function for d from now, in place of an earlier plan, and
// reports whether there was one.
func (t *Timer) Reset(d time.Duration) bool {
	was := t.Stop()
	t.armed = true
	t.k.plan(t.k.Now()+max(d, 0), t, t.times)
	return was
}

func (t *Timer) stale(n uint64) bool { return !t.armed || t.times != n }

func (t *Timer) due() {
	t.armed = false
	t.fn()
}

// Hash is an FNV-1a hash over words.
type Hash uint64

func (h *Hash) add(x uint64) { *h = (*h ^ Hash(x)) * 1099511628211 }

// Thread returns the simulated thread that runs now, or nil if none does.
func (k *Kernel) Thread() *Thread { return k.running }

// Running returns the process of the thread that runs now, or nil if none does.
func (k *Kernel) Running() *Process {
	if k.running == nil {
		return nil
	}
	return k.running.p
}
