package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leidenzipper/zipper/simulation/kernel"
	"github.com/leidenzipper/zipper/simulation/process"
)

// Fault is one planned fault of a run.
type Fault struct {
	At   time.Duration // start, counted from the last join unless Plan.Early or Plan.Late is set
	Kind Kind          // kind of the fault
	Who  int           // number that picks the victim, modulo the number of candidates
	For  time.Duration // duration of the fault
	// From is the number of agreements that ranks have begun when At begins to count, in place of
	// the last join; 0: it counts from the join.
	From int
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
	Lose                // all ranks of a cluster are killed
	Freeze              // a rank is stopped for longer than the patience, and goes on then
	Flush               // the kernel of a forwarder's host loses its table, and makes none for a while
	Drop                // the same, but the ends of its connections get no error
)

var kinds = [...]string{"cut a connection", "stall a connection", "stop a process", "restart a forwarder",
	"change a bit", "kill a rank", "abort by a rank", "kill a cluster",
	"freeze a rank", "flush a kernel's table", "drop the packets of a kernel's connections"}

// String returns the fault as text for people: its kind, start, victim number and duration.
func (f Fault) String() string {
	from := ""
	if f.From > 0 {
		from = fmt.Sprintf(" after agreement %d", f.From)
	}
	return fmt.Sprintf("%v%s %s #%d for %v", f.At, from, kinds[f.Kind], f.Who, f.For)
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
		if j.plan.OnLoss && !j.knowsLost(z) { // the ranks will wait for a cluster that is lost
			j.excused = true
		}
		z.Kill()
		k.After(f.For, z.Start)
	case Flush, Drop:
		z := j.zips[pick(len(j.zips))]
		j.say("fault: %v: %s with %d connections", f, z.Addr, z.NAT.Connections())
		z.NAT.Lose(f.For, f.Kind == Drop)
	case Lose:
		c := pick(len(j.clusters))
		j.say("fault: %v: cluster %s", f, cluster(c))
		j.lose(c, f.For)
	case Freeze:
		r := j.ranks[pick(len(j.ranks))]
		if !r.Proc.Dead() && j.mayGo(r.in) {
			j.say("fault: %v: rank %d", f, r.Rank)
			j.markGone(r.in)
			r.Proc.Stop()
			k.After(f.For, r.Proc.Continue)
		}
	case Kill, Abort:
		r := j.ranks[pick(len(j.ranks))]
		if r.Proc.Dead() {
			return
		}
		j.say("fault: %v: rank %d", f, r.Rank)
		if j.plan.OnLoss {
			j.lose(r.in, 0)
		} else if f.Kind == Kill {
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

// lose ends the processes of a cluster one after the other, within a time.
func (j *job) lose(cluster int, within time.Duration) {
	if !j.mayGo(cluster) {
		return
	}
	j.markGone(cluster)
	for _, r := range j.ranks {
		if r.in == cluster {
			j.k.After(time.Duration(j.k.Rand.Int64N(int64(within)+1)), r.end)
		}
	}
}

// mayGo reports whether a fault may end a cluster: the cluster is not gone, and it is not the last
// one.
func (j *job) mayGo(cluster int) bool { return !j.gone[cluster] && len(j.gone) < len(j.clusters)-1 }

// allRun reports whether the job runs at all forwarders.
func (j *job) allRun() bool {
	for _, z := range j.zips {
		if z.Proc.Dead() || len(z.Status().Jobs) == 0 || z.Status().Jobs[0].State != "running" {
			return false
		}
	}
	return true
}

// knowsLost reports whether forwarder z has known all clusters that are gone for long enough that
// the ranks know them too.
func (j *job) knowsLost(z *process.Forwarder) bool {
	if len(j.gone) == 0 {
		return true
	}
	if z.Proc.Dead() || len(z.Status().Jobs) == 0 {
		return false
	}
	s := z.Status()
	for _, l := range s.Jobs[0].Lost {
		if s.Now.Sub(l.At) < 2*(j.plan.Path.Delay+j.plan.Path.Jitter)+time.Millisecond {
			return false
		}
	}
	return len(s.Jobs[0].Lost) == len(j.gone)
}

// markGone notes that a fault ends a cluster, whose ranks may fail from then on.
func (j *job) markGone(cluster int) {
	if j.in < len(j.ranks) || !j.allRun() { // ranks that join are refused, or wait for this cluster
		j.excused = true
	}
	if j.gone == nil {
		j.gone = map[int]bool{}
	}
	j.gone[cluster] = true
	for _, r := range j.ranks {
		if r.in == cluster {
			r.harmed = true
		}
	}
}
