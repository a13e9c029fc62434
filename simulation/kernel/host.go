package kernel

import (
	"math/bits"
	"time"
)

// Host is where processes run whose threads take processor time: those of all of them share its
// cores. Threads of processes without a host take none, and how soon they run is drawn.
type Host struct {
	Name  string
	Cores int
	Share *Host // whose cores they are, if several hosts are one machine; nil: its own
	Costs Costs
	Links Links         // of the whole machine, if several hosts are one
	Used  time.Duration // processor time so far

	busy       int
	computing  int             // of these, by threads that compute
	interrupts []time.Duration // when each core has done with what came
	debt       time.Duration   // what interrupts took from threads, not paid yet
	waiting    []*Thread       // for a core, in order
	behind     []*Thread       // those that compute, behind these
	late       map[string]time.Duration
}

// Late is how long packets from a host have waited here for a processor so far, together: those
// that came when all were busy, or the process that reads them, until they were read.
func (h *Host) Late(from string) time.Duration { return h.late[from] }

// Costs are what a host's processors take for what is done.
type Costs struct {
	Switch time.Duration // until a thread that is waked does something
	Call   time.Duration // reading or writing once
	Byte   float64       // each byte that is read or written, nanoseconds
}

// Links are what a machine's processors take for a packet of links that it is itself, as in a lab
// of namespaces: its kernel's work in interrupts, before the packet is there.
type Links struct {
	Packet time.Duration
	Byte   float64 // nanoseconds
}

// interrupt is when a packet of n bytes that has come is there. Interrupts go before threads. What
// they take from those that compute is in what these are recorded to have computed for; others are
// that much later.
func (h *Host) interrupt(now time.Duration, n int) time.Duration {
	cost := h.Links.Packet + time.Duration(h.Links.Byte*float64(n))
	if cost == 0 {
		return now
	}
	if h.interrupts == nil {
		h.interrupts = make([]time.Duration, h.Cores)
	}
	first := &h.interrupts[0]
	for i := range h.interrupts {
		if h.interrupts[i] < *first {
			first = &h.interrupts[i]
		}
	}
	*first = max(*first, now) + cost
	h.Used += cost
	h.debt += cost * time.Duration(h.busy-h.computing) / time.Duration(h.Cores)
	return *first
}

// On puts a process on a host, before it has threads.
func (p *Process) On(h *Host) { p.host = h }

// Host is where a process runs; nil: nowhere.
func (p *Process) Host() *Host { return p.host }

// cores is the host whose cores these are.
func (h *Host) cores() *Host {
	if h.Share != nil {
		return h.Share
	}
	return h
}

// take gives a thread a core, or has it wait for one.
func (h *Host) take(t *Thread) bool {
	if h == nil || t.onCore {
		return true
	}
	h = h.cores()
	if h.busy < h.Cores {
		h.busy++
		t.enter()
		return true
	}
	h.waiting = append(h.waiting, t)
	return false
}

func (t *Thread) enter() {
	t.onCore = true
	t.p.onCore++
}

// leave gives the thread's core to the next one.
func (t *Thread) leave() {
	if t.p.host == nil || !t.onCore {
		return
	}
	h := t.p.host.cores()
	t.onCore = false
	t.p.onCore--
	for _, list := range []*[]*Thread{&h.waiting, &h.behind} {
		for len(*list) > 0 {
			next := (*list)[0]
			*list = (*list)[1:]
			if !next.over && !next.p.dead {
				next.enter()
				next.runAt(next.p.k.now)
				return
			}
		}
	}
	h.busy--
}

// slice is for how long a thread computes before others may have its core: Linux's base slice,
// which grows with the cores up to eight (EEVDF, base_slice_ns). Ranks that wait look, and give way
// to one that computes for as long.
func (h *Host) slice() time.Duration {
	return 700 * time.Microsecond * time.Duration(bits.Len(uint(min(h.Cores, 8))))
}

// Compute has the running thread compute for d as programs do: whoever else has something to do
// goes first, and those that compute take turns.
func (k *Kernel) Compute(d time.Duration) {
	t := k.running
	t.catchUp()
	if t.p.host == nil {
		k.Sleep(d)
		return
	}
	h := t.p.host.cores()
	for slice := h.slice(); d > 0; d -= slice {
		t.compute(h, min(d, slice))
		if len(h.waiting) == 0 && len(h.behind) == 0 {
			continue
		}
		h.behind = append(h.behind, t)
		t.leave()
		if !t.yield(struct{}{}) {
			panic(killed{})
		}
	}
}

// compute has it compute for d without a pause.
func (t *Thread) compute(h *Host, d time.Duration) {
	t.spent += d
	t.computes = true
	h.computing++
	defer func() {
		t.computes = false
		h.computing--
	}()
	t.catchUp()
}

// unread are packets that wait for a processor.
type unread struct {
	came time.Duration
	size int
	late bool // all were busy, or the reader
}

// landed notes that a packet is there to be read.
func (q *pipe) landed(n int) {
	if p := q.to.p; p.host != nil && q.from.p.host != nil {
		h := p.host.cores()
		q.unread = append(q.unread, unread{q.k.now, n, h.busy >= h.Cores || p.onCore > 0})
	}
}

// taken notes that n bytes of them have been.
func (q *pipe) taken(n int) {
	for n > 0 && len(q.unread) > 0 {
		u := &q.unread[0]
		if u.size > n {
			u.size -= n
			return
		}
		if h := q.to.p.host; u.late {
			if h.late == nil {
				h.late = make(map[string]time.Duration)
			}
			h.late[q.from.p.host.Name] += q.k.Now() - u.came
		}
		n -= u.size
		q.unread = q.unread[1:]
	}
}

// Spend has the running thread compute for d.
func (k *Kernel) Spend(d time.Duration) {
	if t := k.running; t != nil && t.p.host != nil {
		t.spent += d
	}
}

// spendOn is what a call costs that has moved n bytes.
func (k *Kernel) spendOn(n int) {
	if t := k.running; t != nil && t.p.host != nil {
		c := &t.p.host.Costs
		t.spent += c.Call + time.Duration(c.Byte*float64(n))
	}
}
