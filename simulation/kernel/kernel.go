// Package kernel is an operating system and a network that exist in memory only: threads, time,
// descriptors and connections. One thread runs at a time, until it sleeps; which one goes on next,
// and after how long, follows from a seed alone. So a program that sleeps by this kernel does the
// same in every run with the same seed, in virtual time, which costs nothing.
//
// A thread is a coroutine (iter.Pull). What it calls here may be called by it alone, and all of a
// Kernel by one goroutine at a time.
package kernel

import (
	"math/rand/v2"
	"time"
)

// Kernel is one simulated world.
type Kernel struct {
	Rand *rand.Rand // of what happens in the world; programs should have their own

	now     time.Duration
	events  queue
	seq     uint64
	fds     []*descriptor // by number; nil: closed
	running *Thread
	steps   uint64
	looks   int    // of a thread, since it slept last
	stuck   string // a thread looks and looks
	trace   Hash
	places  map[string]*Listener
}

// firstFD is the first descriptor's number.
const firstFD = 4

// New makes a world from a seed.
func New(seed uint64) *Kernel {
	return &Kernel{Rand: rand.New(rand.NewPCG(seed, 0x5eed)), fds: make([]*descriptor, firstFD),
		places: map[string]*Listener{}}
}

// Now is the virtual time since the start; for a thread that computes, as far as it has come.
func (k *Kernel) Now() time.Duration {
	if k.running != nil {
		return k.now + k.running.spent
	}
	return k.now
}

// Steps is how often something has happened.
func (k *Kernel) Steps() uint64 { return k.steps }

// Stuck says which thread goes on and on without sleeping; empty: none.
func (k *Kernel) Stuck() string { return k.stuck }

// Trace is a hash of what has happened: two runs that have the same have done the same.
func (k *Kernel) Trace() uint64 { return uint64(k.trace) }

// Note adds something to Trace.
func (k *Kernel) Note(b ...uint64) {
	for _, x := range b {
		k.trace.add(x)
	}
}

// After calls fn when d is over.
func (k *Kernel) After(d time.Duration, fn func()) *Timer {
	t := &Timer{k: k, fn: fn}
	t.Reset(d)
	return t
}

// Run lets the world go on until over says so or nothing is left to happen; it is asked after each
// event.
func (k *Kernel) Run(over func() bool) {
	for again := true; len(k.events) > 0; {
		if again && over() {
			return
		}
		e := k.events.pop()
		if again = !e.who.stale(e.n); again {
			k.now = max(k.now, e.at)
			k.steps++
			k.looks = 0
			e.who.due()
		}
	}
}

// at plans an event. Of those of one time any may be the first.
func (k *Kernel) at(t time.Duration, fn func()) { k.plan(t, call(fn), 0) }

func (k *Kernel) plan(t time.Duration, who happening, n uint64) {
	k.seq++
	k.events.push(event{t, k.Rand.Uint32(), k.seq, who, n})
}

// Timer is what After returns, as time.Timer does it.
type Timer struct {
	k     *Kernel
	fn    func()
	armed bool
	times uint64
}

// Stop has fn not called.
func (t *Timer) Stop() bool {
	was := t.armed
	t.armed = false
	t.times++
	return was
}

// Reset has it called after d from now.
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

// Hash is FNV-1a over words.
type Hash uint64

func (h *Hash) add(x uint64) { *h = (*h ^ Hash(x)) * 1099511628211 }

// Thread is the thread that runs; nil: none does.
func (k *Kernel) Thread() *Thread { return k.running }

// Running is whose thread runs; nil: nobody's.
func (k *Kernel) Running() *Process {
	if k.running == nil {
		return nil
	}
	return k.running.p
}
