package simulation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/simulation/kernel"
	"github.com/leidenzipper/zipper/simulation/process"
)

// These are the timeouts of simulated jobs. They are shorter than those of real jobs. Virtual time
// could bear the real ones, but most of each run would then have no events.
const (
	ping          = 200 * time.Millisecond
	silence       = 4 * time.Second
	patience      = 10 * time.Second
	rejoinSilence = 3 * time.Second  // silence after which an attempt to join again is given up
	timeout       = 20 * time.Second // time limit of a first join
	standstill    = 90 * time.Second
	together      = 10 * time.Millisecond // longest sleep that replaces several naps
)

// job is the state of one run.
type job struct {
	plan     Plan                 // plan from which the run was made
	k        *kernel.Kernel       // simulated world in which the job runs
	env      jobenv.Job           // description of the job that launchers give to ranks
	clusters []wire.Cluster       // clusters of the job in the form that frames use, by index
	zips     []*process.Forwarder // forwarders of the job, in the order of Plan.forwarders
	world    process.World        // environment that forwarders and ranks share
	ranks    []*rank              // ranks of the job, by rank in the whole job
	ends     []*kernel.End        // dialling ends of connections; inject drops those that broke
	direct   [][2]int             // pairs of ranks with a direct link
	why      string               // reason why the job must fail; empty if it must succeed
	excused  bool                 // the job may fail, but need not
	in       int                  // number of ranks that have joined
	// ending is the number of ranks whose program has finished and which have called Finish.
	ending     int
	last       time.Duration    // virtual time at which the program of the last rank finished
	dead       int              // number of ranks whose processes have ended
	moves      int              // counter that rises with each step that a rank's program makes
	history    *strings.Builder // transcript of the run; nil if it is not wanted
	gone       map[int]bool     // clusters that a fault ends, in a job that goes on
	sayings    []saying         // values that must be equal at all ranks that are left
	agreements int              // number of agreements that ranks have begun
	broken     error            // first violation of an invariant; nil if there is none
}

// Outcome is the result of a run.
type Outcome struct {
	Err     error         // violation of an invariant; nil if the run is correct
	Failed  bool          // whether a rank ended with an error; Err is set if no fault allows it
	Lost    int           // number of clusters that were lost, in a job that outlives clusters
	Direct  int           // number of connections that kernels of forwarders' hosts have forwarded
	Virtual time.Duration // virtual duration of the run
	Steps   uint64        // number of events that the kernel handled
	Trace   uint64        // hash of the events; equal in runs that did the same
	History string        // transcript of the run; empty unless Run was called with tell
}

// Run executes plan p in virtual time and returns its outcome. If tell is true the outcome has the
// history of the run as text.
func Run(p Plan, tell bool) (o Outcome) {
	j := &job{plan: p, k: kernel.New(p.Seed), env: env(&p)}
	if tell {
		j.history = new(strings.Builder)
	}
	j.world = process.World{K: j.k, Dial: j.dial, NAT: p.Ways}
	if !p.Naps {
		j.world.Together = together
	}
	if tell {
		j.world.Say = j.say
	}
	for _, addr := range p.forwarders() {
		j.zips = append(j.zips, j.world.NewForwarder(addr, nil, j.forwarderConfig()))
	}
	j.clusters = process.Clusters(&j.env)
	if p.Direct {
		for i := range min(p.Sizes[0], p.Sizes[1]) {
			j.direct = append(j.direct, [2]int{i, p.Sizes[0] + i})
		}
	}
	for i, n := range p.Sizes {
		b := new(process.Cluster)
		for local := range n {
			j.ranks = append(j.ranks, j.newRank(len(j.ranks), i, local, b))
		}
	}
	if p.Early {
		j.why = "faults happen while ranks join"
		j.begin()
	}
	moved, last := -1, time.Duration(0)
	j.k.Run(func() bool {
		if j.k.Steps()%64 == 0 {
			j.check()
		}
		if j.moves != moved {
			moved, last = j.moves, j.k.Now()
		}
		if j.broken == nil && j.k.Now()-last > standstill {
			j.broken = fmt.Errorf("no progress for %v: %s", standstill, j.waiting())
		}
		if who := j.k.Stuck(); who != "" && j.broken == nil {
			j.broken = fmt.Errorf("%s polls without end: a ready descriptor is not handled", who)
		}
		return j.dead == len(j.ranks) || j.broken != nil
	})
	o.Virtual, o.Steps, o.Trace = j.k.Now(), j.k.Steps(), j.k.Trace()
	if j.broken == nil {
		j.settle()
	}
	o.Err, o.Failed = j.judge()
	o.Lost = len(j.gone)
	for _, z := range j.zips {
		if z.NAT != nil {
			o.Direct += z.NAT.Made
		}
	}
	for _, p := range j.processes() {
		p.Kill()
	}
	for _, r := range j.ranks {
		if r.Engine != nil {
			r.Engine.Discard()
		}
	}
	if tell {
		o.History = j.history.String()
	}
	return o
}

// forwarderConfig returns the configuration that all forwarders of the job have.
func (j *job) forwarderConfig() forwarder.Config {
	return forwarder.Config{ReadBuffer: 16 << 10, PingInterval: ping, PeerTimeout: silence, Unreachable: silence,
		Linger: time.Second, JoinTimeout: 5 * time.Second, Memory: 256 << 20, Trunk: j.plan.Trunk}
}

// begin schedules the plan's faults, whose times count from now.
func (j *job) begin() {
	j.schedule(0)
}

// schedule schedules the faults that wait for so many agreements.
func (j *job) schedule(from int) {
	for _, f := range j.plan.Faults {
		if f.From == from {
			j.k.After(f.At, func() { j.inject(f) })
		}
	}
}

// joined counts a rank that has joined. Once all ranks have, it schedules the faults, unless they
// are early, or are late and no rank has finished its program.
func (j *job) joined() {
	if j.in++; j.in == len(j.ranks) && !j.plan.Early && (!j.plan.Late || j.ending > 0) {
		j.begin()
	}
}

// finishes counts a rank whose program has finished and that now calls Finish. The first one
// schedules late faults if all ranks have joined.
func (j *job) finishes() {
	if j.ending++; j.ending == 1 && j.plan.Late && j.in == len(j.ranks) {
		j.begin()
	}
	if j.ending == len(j.ranks) {
		j.last = j.k.Now()
	}
}

// say appends a line to the history of the run, which is formatted as by Printf. It does nothing if
// no history is wanted.
func (j *job) say(format string, args ...any) {
	if j.history != nil {
		fmt.Fprintf(j.history, "%12v ", j.k.Now())
		fmt.Fprintf(j.history, format+"\n", args...)
	}
}

// dial opens a connection from process p to the listener at addr over the plan's network, and
// registers it, so that faults can hit it.
func (j *job) dial(ctx context.Context, p *kernel.Process, addr string) (*kernel.End, error) {
	e, err := p.Dial(ctx, addr, j.plan.Path)
	if err == nil {
		j.ends = append(j.ends, e)
	}
	return e, err
}

// processes returns the simulated operating-system processes of all forwarders and ranks.
func (j *job) processes() (list []*kernel.Process) {
	for _, z := range j.zips {
		list = append(list, z.Proc)
	}
	for _, r := range j.ranks {
		list = append(list, r.Proc)
	}
	return list
}

// waiting returns the ranks whose processes have not ended as text for an error message.
func (j *job) waiting() string {
	var list []string
	for _, r := range j.ranks {
		if !r.Proc.Dead() {
			list = append(list, fmt.Sprintf("rank %d (joined %v, finishing %v)", r.Rank, r.Engine != nil, r.finishing))
		}
	}
	return strings.Join(list, ", ")
}

// check compares the counters of each engine that has run since the last check, and stores the
// first violation in j.broken.
func (j *job) check() {
	for _, r := range j.ranks {
		if r.Engine == nil || r.Proc.Dead() || j.broken != nil || r.Proc.Turns() == r.checked {
			continue
		}
		r.checked = r.Proc.Turns()
		if err := r.Engine.Check(); err != nil {
			j.broken = fmt.Errorf("rank %d has inconsistent counters: %w", r.Rank, err)
		}
	}
}

// settle runs the world after the ranks have ended, until the forwarders have released the job, or
// until a time limit.
func (j *job) settle() {
	end := j.k.Now() + 2*timeout // a restarted forwarder waits that long for its ranks
	j.k.Run(func() bool { return j.k.Now() > end || j.leftovers() == nil })
	j.broken = j.leftovers()
}

// leftovers returns an error if a forwarder still holds a job, a link or memory, or nil if none
// does.
func (j *job) leftovers() error {
	for _, z := range j.zips {
		if z.Proc.Dead() {
			continue
		}
		if s := z.Status(); len(s.Jobs) > 0 || s.Links > 0 || s.Memory.Used != 0 {
			return fmt.Errorf("forwarder %s keeps %d jobs, %d links and %d bytes", z.Addr, len(s.Jobs), s.Links,
				s.Memory.Used)
		}
	}
	return nil
}

// maxLinger is the longest time that a rank may take to end once all programs have finished, in a
// run without faults. It is half of byeTimeout of the engine, which bounds each step of Finish
// after its barrier.
const maxLinger = 5 * time.Second

// judge returns as err all violations of what a run must do, or nil, and as failed whether any rank
// ended with an error other than an incorrect result. Such an error is a violation unless the job
// had to fail, or a fault excuses the failure.
func (j *job) judge() (err error, failed bool) {
	var errs []error
	if j.broken != nil {
		errs = append(errs, j.broken)
	}
	if err := j.differences(); err != nil {
		errs = append(errs, err)
	}
	for _, r := range j.ranks {
		var bad wrong
		switch {
		case errors.As(r.err, &bad):
			errs = append(errs, fmt.Errorf("rank %d: %w", r.Rank, r.err))
		case r.err != nil:
			failed = true
			if j.why == "" && !j.excused && !(j.plan.OnLoss && r.harmed) {
				errs = append(errs, fmt.Errorf("rank %d fails: %w (%s)", r.Rank, r.err, r.Native.Failure()))
			}
		case r.ended && len(j.plan.Faults) == 0 && r.left-j.last > maxLinger:
			errs = append(errs, fmt.Errorf("rank %d ends %v after all ranks have finished", r.Rank, r.left-j.last))
		case r.ended && j.why != "" && !r.harmed && !j.plan.Early:
			errs = append(errs, fmt.Errorf("rank %d succeeds although %s", r.Rank, j.why))
		}
	}
	return errors.Join(errs...), failed
}

// moved counts a step that a rank's program makes.
func (j *job) moved() { j.moves++ }

// agrees counts an agreement that a rank begins, and schedules the faults that wait for it.
func (j *job) agrees() {
	j.agreements++
	j.schedule(j.agreements)
}

// saying is a value that a rank has of a thing.
type saying struct {
	rank        *rank
	what, value string
}

// says reports a value that must be equal at all ranks that are left in the end.
func (r *rank) says(what, value string) {
	r.job.sayings = append(r.job.sayings, saying{r, what, value})
}

// differences returns an error if ranks that are left have reported different values.
func (j *job) differences() error {
	values := map[string]saying{}
	for _, s := range j.sayings {
		if s.rank.harmed {
			continue
		}
		if o, ok := values[s.what]; ok && o.value != s.value {
			return fmt.Errorf("%s is %s at rank %d, %s at rank %d", s.what, o.value, o.rank.Rank, s.value, s.rank.Rank)
		}
		values[s.what] = s
	}
	return nil
}
