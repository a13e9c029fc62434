package kernel

import (
	"math/bits"
	"time"
)

// Host is a machine with cores that the threads of all its processes share. The threads of a
// process without a host take no processor time, and the delay until they run is drawn.
type Host struct {
	Name  string // name of the machine
	Cores int    // number of cores
	// Share is the host that owns the cores, if several hosts are one machine. It is nil for hosts
	// of their own.
	Share *Host
	Costs Costs // processor times of operations of threads
	// Links has the costs of packets on links of the machine itself; only used in the host that
	// owns the cores.
	Links Links
	// Used is the processor time used so far by the threads of this host, and by interrupts if the
	// host owns the cores.
	Used time.Duration

	busy       int             // number of cores in use
	computing  int             // number of cores in use by threads in Compute
	interrupts []time.Duration // time until which each core handles interrupts
	// debt is the time that interrupts took from running threads and that these have not yet
	// spent.
	debt    time.Duration
	waiting []*Thread // threads that wait for a core, in FIFO order
	// behind has the threads in Compute that wait for a core, after those in waiting.
	behind []*Thread
	late   map[string]time.Duration // result of Late, by name of the sending host
}

// Late returns for how long packets from a host have waited here for a processor, in total. It
// counts packets that arrived when all cores were busy or when their reader was running, until they
// were read.
func (h *Host) Late(from string) time.Duration { return h.late[from] }

// Costs are the processor times that operations take on a host.
type Costs struct {
	Switch time.Duration // time from waking a thread until it runs
	Call   time.Duration // time of one read or write
	Byte   float64       // time for each byte read or written, in nanoseconds
}

// Links are the processor times that a packet takes in interrupts, on links that are inside the
// machine, as in a lab of network namespaces. The packet arrives after them.
type Links struct {
	Packet time.Duration // processor time of the interrupt for a packet of any size
	Byte   float64       // time for each byte, in nanoseconds
}

// interrupt returns the time at which a packet of n bytes that arrives now is ready to be read,
// after the interrupt that handles it. Interrupts go before threads. The recorded times of threads
// in Compute include the interrupts that hit them. Other threads run later by the time that
// interrupt adds to the field debt.
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

// On makes h the host whose cores the threads of process p use. It must be called before p has
// threads.
func (p *Process) On(h *Host) { p.host = h }

// Host returns the host of process p, or nil if its threads take no processor time.
func (p *Process) Host() *Host { return p.host }

// cores returns the host that owns the cores: h.Share if h is part of another machine, or h itself.
func (h *Host) cores() *Host {
	if h.Share != nil {
		return h.Share
	}
	return h
}

// take gives thread t a core of the host and returns true, or queues t for one and returns false.
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

// leave gives up the thread's core, which the next thread in the host's queue gets.
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

// slice is the time for which a thread computes before others may get its core: the base slice of
// Linux's scheduler (EEVDF, base_slice_ns), which grows with the number of cores up to eight. A
// waiting rank polls, and yields its core to a computing rank for that time.
func (h *Host) slice() time.Duration {
	return 700 * time.Microsecond * time.Duration(bits.Len(uint(min(h.Cores, 8))))
}

// Compute has the running thread compute for d of processor time, as programs do. When a slice is
// over, threads that wait for a core get it first: those with other work before those that compute.
// Without a host it sleeps for d.
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

// compute lets thread t use a core of host h for the time d without a pause.
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

// unread is a received packet that has not been read.
type unread struct {
	arrived time.Duration // time at which the packet arrived
	size    int           // number of bytes that are left to be read
	late    bool          // all cores were busy or the reader was running when it arrived
}

// landed notes that a packet of n bytes has arrived at the reader's end of pipe q and can be read.
func (q *pipe) landed(n int) {
	if p := q.to.p; p.host != nil && q.from.p.host != nil {
		h := p.host.cores()
		q.unread = append(q.unread, unread{q.k.now, n, h.busy >= h.Cores || p.onCore > 0})
	}
}

// taken removes the n bytes that the process has read from the list of unread packets. It adds to
// Host.late the time that a packet waited if its field late is set.
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
			h.late[q.from.p.host.Name] += q.k.Now() - u.arrived
		}
		n -= u.size
		q.unread = q.unread[1:]
	}
}

// Spend adds d to the processor time that the running thread has used. It has no effect if its
// process has no host.
func (k *Kernel) Spend(d time.Duration) {
	if t := k.running; t != nil && t.p.host != nil {
		t.spent += d
	}
}

// spendOn adds the processor time of a read or write that has moved n bytes to that of the running
// thread.
func (k *Kernel) spendOn(n int) {
	if t := k.running; t != nil && t.p.host != nil {
		c := &t.p.host.Costs
		t.spent += c.Call + time.Duration(c.Byte*float64(n))
	}
}
