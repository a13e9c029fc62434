package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine"
	"github.com/leidenzipper/zipper/simulation/kernel"
	"github.com/leidenzipper/zipper/simulation/process"
)

// rank is one process of the job.
type rank struct {
	*process.Member
	job       *job
	rand      *rand.Rand // what it does when
	ended     bool
	finishing bool          // it has called Finish
	harmed    bool          // a fault is to end it
	abort     bool          // it ends the job as soon as it can
	left      time.Duration // when it has ended
	err       error         // how it ended
	checked   uint64        // turns of the process when its counters were compared
}

// newRank makes it; its main thread joins and does the work.
func (j *job) newRank(number, in, local int, b *process.Cluster) *rank {
	r := &rank{job: j, rand: rand.New(rand.NewPCG(j.plan.Seed, uint64(number))),
		Member: j.world.NewMember(number, j.k.Process(fmt.Sprintf("rank%d", number)), process.NewNative(b, local))}
	r.Proc.Go(func() {
		r.err = r.main(in, local)
		r.ended, r.left = true, j.k.Now()
		j.say("rank %d ends: %v", number, r.err)
		r.end() // as processes that end do
	})
	return r
}

// end ends its process.
func (r *rank) end() {
	if !r.Proc.Dead() {
		r.job.dead++
		r.job.moves++
		r.Proc.Kill()
	}
}

func (r *rank) main(in, local int) error {
	r.job.k.Sleep(time.Duration(r.rand.IntN(3_000_000)))
	if err := r.enter(in, local); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	r.job.joined()
	if err := r.work(); err != nil {
		return err
	}
	r.finishing = true
	r.job.finishes()
	if err := r.Engine.Finish(); err != nil {
		return fmt.Errorf("finish: %w", err)
	}
	if err := r.Native.Failure(); err != nil {
		return fmt.Errorf("finish: %w", err)
	}
	return nil
}

// enter joins the job.
func (r *rank) enter(in, local int) error {
	p := &r.job.plan
	e := process.Entry{Job: r.job.env, Local: local, Host: "host-" + cluster(in), Level: r.job.level(),
		Timeout: timeout, Patience: patience, Silence: anewSilence, Direct: r.directs(),
		Limits: engine.Limits{Ping: ping, Silence: silence, LastWay: silence, NoRail: patience}}
	e.Job.Cluster = cluster(in)
	if p.Small {
		e.Limits.Eager, e.Limits.EagerWindow, e.Limits.DataWindow, e.Limits.Segment = 500, 3000, 16000, 1500
	}
	return r.Enter(&e, r.job.clusters)
}

// door is where a rank has another one come to.
func door(rank, other int) string { return fmt.Sprintf("%s%d-%d", doors, rank, other) }

const doors = "door"

// directs are the openers of direct links: of ranks with the same local number.
func (r *rank) directs() map[int]engine.Opener {
	if !r.job.plan.Direct {
		return nil
	}
	list := map[int]engine.Opener{}
	for _, o := range r.job.pairs(r.Rank) {
		list[o] = nil
		if o < r.Rank { // the other one listens
			list[o] = func(ctx context.Context) (transport.Link, error) {
				l, err := r.job.dial(ctx, r.Proc, door(o, r.Rank))
				if err != nil {
					return nil, err
				}
				return l, nil
			}
			continue
		}
		r.Proc.Listen(door(r.Rank, o), func(e *kernel.End) {
			r.Proc.Go(func() {
				if r.Engine == nil || !r.Engine.DirectUp(o, e) {
					e.Close()
				}
			})
		})
	}
	return list
}

// pairs are the ranks with which one has a direct link.
func (j *job) pairs(rank int) (list []int) {
	for _, p := range j.direct {
		if i := slices.Index(p[:], rank); i >= 0 {
			list = append(list, p[1-i])
		}
	}
	return list
}

// env is the job as launchers describe it.
func env(p *Plan) jobenv.Job {
	j := jobenv.Job{ID: "simulated", Secret: "s3cret", Networks: p.Networks, Zippers: p.Zippers, Timeout: time.Minute}
	for i, n := range p.Sizes {
		j.Layout = append(j.Layout, jobenv.Cluster{Name: cluster(i), Size: n})
	}
	j.Forwarders = p.forwarders()
	return j
}

func (j *job) level() wire.Level {
	if j.plan.Checked {
		return wire.LevelChecked
	}
	return wire.LevelPlain
}
