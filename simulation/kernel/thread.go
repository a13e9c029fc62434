package kernel

import (
	"fmt"
	"iter"
	"net/netip"
	"runtime/debug"
	"slices"
	"time"
)

// Process is a group of threads that end together.
type Process struct {
	k    *Kernel // kernel that runs the threads
	Name string  // name of the process for people
	// Address is the address of the process's host, which Home returns; invalid: none is needed.
	Address netip.Addr
	host    *Host     // nil if its threads take no processor time
	threads []*Thread // threads that have not ended
	onCore  int       // number of threads on a core
	holder  *Thread   // thread that sleeps with the program's lock, while all others stand still
	held    []*Thread // threads that stand still and are due to run
	stopped bool      // whether all threads stand still
	turns   uint64    // number of times that a thread has run
	dead    bool      // whether the process has ended
	ends    []*End    // ends of connections that the process has open
}

// Process creates a process without threads and host, with a name for people.
func (k *Kernel) Process(name string) *Process { return &Process{k: k, Name: name} }

// Kernel returns the simulated world to which the process belongs.
func (p *Process) Kernel() *Kernel { return p.k }

// Turns returns how often a thread of the process has run. The state of the process is unchanged as
// long as this number is.
func (p *Process) Turns() uint64 { return p.turns }

// Dead reports whether the process has ended.
func (p *Process) Dead() bool { return p.dead }

// Thread is one flow of control of a simulated process, run as a coroutine.
type Thread struct {
	p       *Process                // process to which the thread belongs
	resume  func() (struct{}, bool) // runs the coroutine until it sleeps or ends
	end     func()                  // ends the coroutine
	yield   func(struct{}) bool     // suspends the coroutine; called by the coroutine itself
	sleeps  uint64                  // number of times that the thread has slept or run
	waking  bool                    // an event that runs the thread is planned
	asleep  bool                    // the thread sleeps
	over    bool                    // the thread has ended
	joiners []*Thread               // threads that wait in Join for the end of this one
	on      []*descriptor           // descriptors on which the thread sleeps
	// spent is the processor time that the thread has used and that has not yet passed in virtual
	// time; catchUp lets it pass. It is 0 if the process has no host.
	spent    time.Duration
	onCore   bool // the thread has a core of its host
	computes bool // the thread is in Compute
}

// killed is the panic value that unwinds the thread of a killed process.
type killed struct{}

// Go starts a thread of process p that calls fn, and returns the thread.
func (p *Process) Go(fn func()) *Thread {
	t := &Thread{p: p, asleep: true}
	t.resume, t.end = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		defer func() {
			t.over = true
			switch e := recover().(type) {
			case nil, killed:
			default:
				// The goroutine that resumes this coroutine does not see its stack.
				panic(fmt.Sprintf("%v\n\n%s", e, debug.Stack()))
			}
		}()
		fn()
	})
	p.threads = append(p.threads, t)
	t.wake()
	return t
}

// Join has the running thread sleep until thread t has ended.
func (t *Thread) Join() {
	me := t.p.k.running
	for me.catchUp(); !t.over; {
		t.joiners = append(t.joiners, me)
		me.sleep(-1)
	}
}

// Sleep suspends the running thread for the virtual time d.
func (k *Kernel) Sleep(d time.Duration) {
	k.running.catchUp()
	for end := k.now + d; k.now < end; {
		k.running.sleep(end - k.now)
	}
}

// Await has the running thread sleep until so returns true. It calls so each time that the thread
// is woken.
func (k *Kernel) Await(so func() bool) {
	t := k.running
	for t.catchUp(); !so(); t.catchUp() {
		t.sleep(-1)
	}
}

// Wake has thread t, which sleeps in Await, check its condition once more.
func (t *Thread) Wake() { t.wake() }

// sleep suspends thread t until it is woken or the virtual time d is over. A negative d is
// unlimited.
func (t *Thread) sleep(d time.Duration) {
	t.catchUp()
	if t.p.dead {
		panic(killed{})
	}
	t.sleeps++
	t.asleep = true
	if d >= 0 {
		t.p.k.plan(t.p.k.now+d, t, t.sleeps)
	}
	if !t.yield(struct{}{}) {
		panic(killed{})
	}
}

// stale reports whether the sleep with this number, a former value of t.sleeps, has ended.
func (t *Thread) stale(sleep uint64) bool { return t.sleeps != sleep }

// due wakes the thread because the time of its sleep is over.
func (t *Thread) due() { t.wake() }

// resumption is the action that runs a thread.
type resumption Thread

func (g *resumption) stale(uint64) bool { return g.over || g.p.dead }
func (g *resumption) due()              { (*Thread)(g).run() }

// runAt plans to run thread t at virtual time at.
func (t *Thread) runAt(at time.Duration) { t.p.k.plan(at, (*resumption)(t), 0) }

// wake schedules thread t, if it sleeps, to run after the latency of its process.
func (t *Thread) wake() {
	if t.waking || t.over || !t.asleep {
		return
	}
	t.waking = true
	t.runAt(t.p.k.Now() + t.p.latency())
}

// latency returns the time from waking a thread of the process until it runs. It is random: mostly
// microseconds, and now and then as long as other threads may have the core.
func (p *Process) latency() time.Duration {
	k := p.k
	if p.host != nil {
		return 0 // Host.Costs replaces it
	}
	switch r := k.Rand.Uint32(); {
	case r%512 == 0:
		return time.Duration(r>>9) % (20 * time.Millisecond)
	case r%16 == 0:
		return time.Duration(r>>4) % (300 * time.Microsecond)
	default:
		return time.Duration(r>>4) % (8 * time.Microsecond)
	}
}

func (t *Thread) run() {
	p := t.p
	switch {
	case t.over || p.dead:
		return
	case p.stopped || p.holder != nil && p.holder != t:
		p.held = append(p.held, t)
		t.leave()
		return
	case !p.host.take(t):
		return
	case p.host != nil && t.asleep:
		t.spent += p.host.Costs.Switch
	}
	t.waking, t.asleep = false, false
	t.sleeps++
	p.turns++
	before := p.k.running
	p.k.running = t
	_, more := t.resume()
	p.k.running = before
	if !more || t.asleep {
		if more && t.spent > 0 {
			panic("kernel: a computing thread sleeps")
		}
		t.leave()
	}
	if more {
		return
	}
	t.over = true
	if i := slices.Index(p.threads, t); i >= 0 {
		p.threads = slices.Delete(p.threads, i, i+1)
	}
	for _, j := range t.joiners {
		j.wake()
	}
}

// catchUp lets the world advance until the processor time that the thread has spent is over.
// Between two calls of the kernel a thread runs at once, with its own clock ahead of the kernel's.
func (t *Thread) catchUp() {
	if t.spent == 0 {
		return
	}
	if t.p.dead {
		panic(killed{})
	}
	d := t.spent
	t.spent = 0
	t.p.host.Used += d
	if !t.computes { // the recorded times of computing threads include interrupts
		h := t.p.host.cores()
		d += h.debt
		h.debt = 0
	}
	t.runAt(t.p.k.now + d)
	if !t.yield(struct{}{}) {
		panic(killed{})
	}
}

// Stop suspends all threads of the process until Continue, as SIGSTOP does. A thread that is
// running goes on until it sleeps.
func (p *Process) Stop() { p.stopped = true }

// Continue lets the threads of a process run again after Stop, as SIGCONT does.
func (p *Process) Continue() {
	p.stopped = false
	p.release() // if there is a holder, only that thread goes on
}

func (p *Process) release() {
	held := p.held
	p.held = nil
	for _, t := range held {
		t.runAt(p.k.now + p.latency())
	}
}

// Kill ends the process: its threads stop, and the system closes its connections.
func (p *Process) Kill() {
	if p.dead {
		return
	}
	p.dead = true
	for _, t := range p.threads {
		if t != p.k.running && !t.over {
			t.over = true
			t.end()
			t.leave()
		}
	}
	for _, e := range p.ends {
		e.Close()
	}
	p.ends = nil
}
