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

// Times of the simulated jobs. Real ones are longer, which virtual time would bear, but then
// nothing would happen in most of it.
const (
	ping        = 200 * time.Millisecond
	silence     = 4 * time.Second
	patience    = 10 * time.Second
	anewSilence = 3 * time.Second  // while joining
	timeout     = 20 * time.Second // of joins
	standstill  = 90 * time.Second
	together    = 10 * time.Millisecond // of naps
)

// job is a run while it happens.
type job struct {
	plan     Plan
	k        *kernel.Kernel
	env      jobenv.Job
	clusters []wire.Cluster
	zips     []*process.Forwarder
	world    process.World
	ranks    []*rank
	ends     []*kernel.End    // of all connections, those that dialled
	direct   [][2]int         // pairs of ranks with a direct link
	why      string           // the job has to fail for this; empty: it must not
	excused  bool             // it may
	in       int              // ranks that have joined
	ending   int              // and that have come to their end
	last     time.Duration    // when the last one has
	dead     int              // and whose processes have ended
	moves    int              // rises with whatever programs do
	history  *strings.Builder // nil: nobody reads it
	broken   error            // what must hold does not
}

// Outcome is how a run went.
type Outcome struct {
	Err     error         // what must not be; nil: all is well
	Failed  bool          // the job has ended with an error, as it may
	Virtual time.Duration // how long it took
	Steps   uint64
	Trace   uint64 // equal in runs that did the same
	History string
}

// Run carries out a plan; tell: with its history.
func Run(p Plan, tell bool) (o Outcome) {
	j := &job{plan: p, k: kernel.New(p.Seed), env: env(&p)}
	if tell {
		j.history = new(strings.Builder)
	}
	j.world = process.World{K: j.k, Dial: j.dial}
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
		j.why = "there are faults while ranks join"
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
			j.broken = fmt.Errorf("nothing has moved for %v: %s", standstill, j.waiting())
		}
		if who := j.k.Stuck(); who != "" && j.broken == nil {
			j.broken = fmt.Errorf("%s spins: a descriptor is ready for ever", who)
		}
		return j.dead == len(j.ranks) || j.broken != nil
	})
	o.Virtual, o.Steps, o.Trace = j.k.Now(), j.k.Steps(), j.k.Trace()
	if j.broken == nil {
		j.settle()
	}
	o.Err, o.Failed = j.judge()
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

// forwarderConfig is what all forwarders have.
func (j *job) forwarderConfig() forwarder.Config {
	return forwarder.Config{ReadBuffer: 16 << 10, PingInterval: ping, PeerTimeout: silence, Unreachable: silence,
		Linger: time.Second, JoinTimeout: 5 * time.Second, Memory: 256 << 20, Trunk: j.plan.Trunk}
}

// begin has the faults happen, from now on.
func (j *job) begin() {
	for _, f := range j.plan.Faults {
		j.k.After(f.At, func() { j.harm(f) })
	}
}

// joined counts ranks.
func (j *job) joined() {
	if j.in++; j.in == len(j.ranks) && !j.plan.Early && (!j.plan.Late || j.ending > 0) {
		j.begin()
	}
}

// finishes notes that a rank has come to its end.
func (j *job) finishes() {
	if j.ending++; j.ending == 1 && j.plan.Late && j.in == len(j.ranks) {
		j.begin()
	}
	if j.ending == len(j.ranks) {
		j.last = j.k.Now()
	}
}

// say adds to the history.
func (j *job) say(format string, args ...any) {
	if j.history != nil {
		fmt.Fprintf(j.history, "%12v ", j.k.Now())
		fmt.Fprintf(j.history, format+"\n", args...)
	}
}

// dial opens a connection that faults may meet.
func (j *job) dial(ctx context.Context, p *kernel.Process, addr string) (*kernel.End, error) {
	e, err := p.Dial(ctx, addr, j.plan.Path)
	if err == nil {
		j.ends = append(j.ends, e)
	}
	return e, err
}

// processes are all that live, and may be stopped.
func (j *job) processes() (list []*kernel.Process) {
	for _, z := range j.zips {
		list = append(list, z.Proc)
	}
	for _, r := range j.ranks {
		list = append(list, r.Proc)
	}
	return list
}

// waiting says who is not through.
func (j *job) waiting() string {
	var list []string
	for _, r := range j.ranks {
		if !r.Proc.Dead() {
			list = append(list, fmt.Sprintf("rank %d (joined %v, finishing %v)", r.Rank, r.Engine != nil, r.finishing))
		}
	}
	return strings.Join(list, ", ")
}

// check looks whether what must always hold does, at ranks that have done something since.
func (j *job) check() {
	for _, r := range j.ranks {
		if r.Engine == nil || r.Proc.Dead() || j.broken != nil || r.Proc.Turns() == r.checked {
			continue
		}
		r.checked = r.Proc.Turns()
		if err := r.Engine.Check(); err != nil {
			j.broken = fmt.Errorf("rank %d counts wrong: %w", r.Rank, err)
		}
	}
}

// settle lets forwarders forget the job.
func (j *job) settle() {
	end := j.k.Now() + 2*timeout // one that was started again waits for ranks so long
	j.k.Run(func() bool { return j.k.Now() > end || j.forgotten() == nil })
	j.broken = j.forgotten()
}

// forgotten tells what forwarders still have.
func (j *job) forgotten() error {
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

// lingers is how long ranks may stay when all have come to the end and nothing goes wrong: half of
// what they wait for an answer.
const lingers = 5 * time.Second

// judge says how it went, and whether the job has failed.
func (j *job) judge() (err error, failed bool) {
	var errs []error
	if j.broken != nil {
		errs = append(errs, j.broken)
	}
	for _, r := range j.ranks {
		var bad wrong
		switch {
		case errors.As(r.err, &bad):
			errs = append(errs, fmt.Errorf("rank %d: %w", r.Rank, r.err))
		case r.err != nil:
			failed = true
			if j.why == "" && !j.excused {
				errs = append(errs, fmt.Errorf("rank %d fails: %w (%s)", r.Rank, r.err, r.Native.Failure()))
			}
		case r.ended && len(j.plan.Faults) == 0 && r.left-j.last > lingers:
			errs = append(errs, fmt.Errorf("rank %d stays for %v after all have come to the end", r.Rank, r.left-j.last))
		case r.ended && j.why != "" && !r.harmed && !j.plan.Early:
			errs = append(errs, fmt.Errorf("rank %d ends well, though %s", r.Rank, j.why))
		}
	}
	return errors.Join(errs...), failed
}
