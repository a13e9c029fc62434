package kernel

import "time"

// Host is where processes run whose threads take processor time: those of all of them share its
// cores. Threads of processes without a host take none, and how soon they run is drawn.
type Host struct {
	Name  string
	Cores int
	Costs Costs
	Used  time.Duration // processor time so far

	busy    int
	waiting []*Thread // for a core, in order
}

// Costs are what a host's processors take for what is done.
type Costs struct {
	Switch time.Duration // until a thread that is waked does something
	Call   time.Duration // reading or writing once
	Byte   float64       // each byte that is read or written, nanoseconds
}

// On puts a process on a host, before it has threads.
func (p *Process) On(h *Host) { p.host = h }

// Host is where a process runs; nil: nowhere.
func (p *Process) Host() *Host { return p.host }

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
