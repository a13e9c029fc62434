package kernel

import (
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"time"
)

// Process is threads that end together.
type Process struct {
	k       *Kernel
	Name    string
	host    *Host // nil: its threads take no time
	threads []*Thread
	onCore  int       // of these
	holder  *Thread   // sleeps with the lock of the program: the others stand still
	held    []*Thread // of these, those that would go on
	stopped bool      // all stand still
	turns   uint64    // of its threads
	dead    bool
	ends    []*End
}

// Process makes one without threads.
func (k *Kernel) Process(name string) *Process { return &Process{k: k, Name: name} }

// Kernel is where the process runs.
func (p *Process) Kernel() *Kernel { return p.k }

// Turns is how often a thread of it has gone on: what it knows is as before while it is the same.
func (p *Process) Turns() uint64 { return p.turns }

// Dead reports whether the process has ended.
func (p *Process) Dead() bool { return p.dead }

// Thread is one flow of control.
type Thread struct {
	p        *Process
	resume   func() (struct{}, bool)
	end      func()
	yield    func(struct{}) bool
	sleeps   uint64 // how often it has
	waking   bool   // it is about to go on
	asleep   bool
	over     bool
	joiners  []*Thread
	on       []*descriptor // that it sleeps on
	spent    time.Duration // since it went on, by a process on a host
	onCore   bool
	computes bool
}

// killed unwinds a thread.
type killed struct{}

// Go starts a thread.
func (p *Process) Go(fn func()) *Thread {
	t := &Thread{p: p, asleep: true}
	t.resume, t.end = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		defer func() {
			t.over = true
			switch e := recover().(type) {
			case nil, killed:
			default:
				panic(fmt.Sprintf("%v\n\n%s", e, debug.Stack())) // whoever resumes it knows nothing of this stack
			}
		}()
		fn()
	})
	p.threads = append(p.threads, t)
	t.wake()
	return t
}

// Join waits for a thread's end; the caller is a thread.
func (t *Thread) Join() {
	me := t.p.k.running
	for me.catchUp(); !t.over; {
		t.joiners = append(t.joiners, me)
		me.sleep(-1)
	}
}

// Sleep has the running thread sleep for d.
func (k *Kernel) Sleep(d time.Duration) {
	k.running.catchUp()
	for end := k.now + d; k.now < end; {
		k.running.sleep(end - k.now)
	}
}

// Await has the running thread sleep until something is so; it looks when it is waked.
func (k *Kernel) Await(so func() bool) {
	t := k.running
	for t.catchUp(); !so(); t.catchUp() {
		t.sleep(-1)
	}
}

// Wake has a thread look again that sleeps in Await.
func (t *Thread) Wake() { t.wake() }

// sleep returns when somebody wakes the thread, or d is over; negative: never.
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

// stale: it sleeps no more.
func (t *Thread) stale(sleep uint64) bool { return t.sleeps != sleep }

// due: it has slept for long enough.
func (t *Thread) due() { t.wake() }

// going is an event at which a thread goes on.
type going Thread

func (g *going) stale(uint64) bool { return g.over || g.p.dead }
func (g *going) due()              { (*Thread)(g).run() }

// runAt has the thread go on then.
func (t *Thread) runAt(at time.Duration) { t.p.k.plan(at, (*going)(t), 0) }

// wake has the thread go on soon.
func (t *Thread) wake() {
	if t.waking || t.over || !t.asleep {
		return
	}
	t.waking = true
	t.runAt(t.p.k.Now() + t.p.latency())
}

// latency is how long it takes until a thread that is waked runs: mostly microseconds, now and then
// as long as others may have the core.
func (p *Process) latency() time.Duration {
	k := p.k
	if p.host != nil {
		return 0 // Host.Costs has it
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
			panic("kernel: a thread sleeps that computes")
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

// catchUp lets the world go on until the thread has done what it has spent time on: what it does
// between two calls of the kernel it does at once, with its own clock ahead.
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
	if !t.computes { // what interrupts took is in what was recorded of those that do
		h := t.p.host.cores()
		d += h.debt
		h.debt = 0
	}
	t.runAt(t.p.k.now + d)
	if !t.yield(struct{}{}) {
		panic(killed{})
	}
}

// Stop has the process stand still until Continue, as SIGSTOP does.
func (p *Process) Stop() { p.stopped = true }

// Continue is SIGCONT.
func (p *Process) Continue() {
	p.stopped = false
	p.release() // with a holder it alone goes on
}

func (p *Process) release() {
	held := p.held
	p.held = nil
	for _, t := range held {
		t.runAt(p.k.now + p.latency())
	}
}

// Kill ends the process: its threads do nothing more, and the system closes its connections.
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
