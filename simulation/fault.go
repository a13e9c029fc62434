package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leidenzipper/zipper/simulation/kernel"
)

// Fault is something that goes wrong.
type Fault struct {
	At   time.Duration // after the last rank has joined, or the first one begins
	Kind Kind
	Who  int           // a place in what it may happen to, modulo how many there are
	For  time.Duration // how long it lasts
}

// Kind is what goes wrong.
type Kind int

// Kinds of faults.
const (
	Cut     Kind = iota // a connection breaks
	Stall               // what one end writes does not arrive for a while
	Pause               // a process stands still for a while
	Restart             // a forwarder is killed, and started again after a while
	Corrupt             // a bit changes
	Kill                // a rank is killed
	Abort               // a rank ends the job
)

var kinds = [...]string{"cut a connection", "stall a connection", "stop a process", "restart a forwarder",
	"change a bit", "kill a rank", "abort by a rank"}

// String is the fault for people.
func (f Fault) String() string {
	return fmt.Sprintf("%v %s #%d for %v", f.At, kinds[f.Kind], f.Who, f.For)
}

// drawFaults plans what goes wrong: nothing in a quarter of the runs.
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

// harm has a fault happen.
func (j *job) harm(f Fault) {
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
			e.Harm(func(b []byte) { b[k.Rand.IntN(len(b))] ^= 1 << k.Rand.IntN(8) })
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
			j.perish(r)
			r.end()
		} else {
			r.abort = true // as soon as its program waits
		}
	}
}

// perish notes that a rank does not come to its end.
func (j *job) perish(r *rank) {
	r.harmed = true
	switch {
	case r.finishing: // some may be through by then
		j.excused = true
	case j.why == "":
		j.why = fmt.Sprintf("rank %d ends", r.Rank)
	}
}
