package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leidenzipper/zipper/simulation/kernel"
)

// Fault is one planned fault of a run.
type Fault struct {
	At   time.Duration // start, counted from the last join unless Plan.Early or Plan.Late is set
	Kind Kind          // kind of the fault
	Who  int           // number that picks the victim, modulo the number of candidates
	For  time.Duration // duration of the fault
}

// Kind is a kind of fault.
type Kind int

// Kinds of faults.
const (
	Cut     Kind = iota // a connection breaks
	Stall               // bytes that one end writes are delayed for a while
	Pause               // a process is stopped for a while, as by SIGSTOP
	Restart             // a forwarder is killed, and restarted after a while
	Corrupt             // one bit of the next write at one end of a connection is flipped
	Kill                // a rank is killed
	Abort               // a rank aborts the job
)

var kinds = [...]string{"cut a connection", "stall a connection", "stop a process", "restart a forwarder",
	"change a bit", "kill a rank", "abort by a rank"}

// String returns the fault as text for people: its kind, start, victim number and duration.
func (f Fault) String() string {
	return fmt.Sprintf("%v %s #%d for %v", f.At, kinds[f.Kind], f.Who, f.For)
}

// drawFaults sets the faults of plan p and whether they are early, with random numbers from r. A
// quarter of the plans have none.
func (p *Plan) drawFaults(r *rand.Rand) {
	if r.IntN(4) == 0 {
		return
	}
	p.Early = r.IntN(6) == 0
	for range 1 + r.IntN(1+r.IntN(6)) {
		f := Fault{At: time.Duration(r.IntN(1 << (10 + r.IntN(18)))), Who: r.IntN(1 << 16),
			For: time.Duration(r.IntN(1 << (10 + r.IntN(20))))}
		switch x := r.IntN(40); {
		case x < 14:
			f.Kind = Cut
		case x < 22:
			f.Kind = Stall
		case x < 28:
			f.Kind = Pause
		case x < 32:
			f.Kind = Restart
		case x < 36 && p.Checked:
			f.Kind = Corrupt
		case x < 38:
			f.Kind = Kill
		default:
			f.Kind = Abort
		}
		p.Faults = append(p.Faults, f)
	}
	slices.SortStableFunc(p.Faults, func(a, b Fault) int { return int(a.At - b.At) })
}

// inject carries out fault f now, on a rank, forwarder or connection of the job. It does nothing if
// no connection is open, or if the picked process has ended.
func (j *job) inject(f Fault) {
	k := j.k
	pick := func(n int) int { return f.Who % n }
	switch f.Kind {
	case Cut, Stall, Corrupt:
		open := slices.DeleteFunc(slices.Clone(j.ends), func(e *kernel.End) bool { return !e.Open() })
		j.ends = slices.Clone(open)
		if len(open) == 0 {
			return
		}
		e := open[pick(len(open))]
		j.say("fault: %v: %s", f, e.Remote())
		switch f.Kind {
		case Cut:
			e.Cut(time.Duration(k.Rand.Int64N(int64(f.For)+1)), time.Duration(k.Rand.Int64N(int64(f.For)+1)))
		case Stall:
			e.Stall(f.For)
		default:
			e.Corrupt(func(b []byte) { b[k.Rand.IntN(len(b))] ^= 1 << k.Rand.IntN(8) })
		}
	case Pause:
		all := j.processes()
		p := all[pick(len(all))]
		j.say("fault: %v: %s", f, p.Name)
		p.Stop()
		k.After(f.For, p.Continue)
	case Restart:
		z := j.zips[pick(len(j.zips))]
		j.say("fault: %v: %s", f, z.Addr)
		z.Proc.Kill()
		k.After(f.For, z.Start)
	case Kill, Abort:
		r := j.ranks[pick(len(j.ranks))]
		if r.Proc.Dead() {
			return
		}
		j.say("fault: %v: rank %d", f, r.Rank)
		if f.Kind == Kill {
			j.markHarmed(r)
			r.end()
		} else {
			r.abort = true // the abort happens when the rank's program next waits
		}
	}
}

// markHarmed notes that a fault ends rank r, so that the job is expected to fail. If r is already
// finishing, the job may also succeed.
func (j *job) markHarmed(r *rank) {
	r.harmed = true
	switch {
	case r.finishing: // other ranks may have finished already
		j.excused = true
	case j.why == "":
		j.why = fmt.Sprintf("rank %d ends", r.Rank)
	}
}
