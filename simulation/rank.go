package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
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
	job       *job          // job to which the rank belongs
	in        int           // index of the rank's cluster
	rand      *rand.Rand    // source of the rank's random decisions
	ended     bool          // main has returned
	finishing bool          // the rank has called Finish
	harmed    bool          // a fault ends the rank
	abort     bool          // the rank aborts the job when it next waits
	left      time.Duration // virtual time at which the rank ended
	err       error         // error with which the rank ended; nil on success
	checked   uint64        // Proc.Turns at the last check of the engine's counters
}

// ranksOfHost is the number of ranks on a host.
const ranksOfHost = 2

// newRank creates rank number in the whole job, which has index in for its cluster, native rank
// local and native MPI b. It starts its main thread, which joins the job and runs the program.
func (j *job) newRank(number, in, local int, b *process.Cluster) *rank {
	r := &rank{job: j, in: in, rand: rand.New(rand.NewPCG(j.plan.Seed, uint64(number))),
		Member: j.world.NewMember(number, j.k.Process(fmt.Sprintf("rank%d", number)), process.NewNative(b, local))}
	r.Proc.Address = netip.AddrFrom4([4]byte{10, 1, byte(in), byte(local / ranksOfHost)})
	r.Proc.Go(func() {
		r.err = r.main(in, local)
		r.ended, r.left = true, j.k.Now()
		j.say("rank %d ends: %v", number, r.err)
		r.end() // the process ends with its program
	})
	return r
}

// end kills the rank's process and counts it as ended, unless it is dead already.
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
	work := r.work
	if r.job.plan.OnLoss {
		work = r.survive
	}
	if err := work(); err != nil {
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

// enter joins the job and starts the rank's engine. in is the index of the rank's cluster, and
// local the rank's number in that cluster.
func (r *rank) enter(in, local int) error {
	p := &r.job.plan
	e := process.Entry{Job: r.job.env, Local: local, Host: "host-" + cluster(in), Level: r.job.level(),
		Timeout: timeout, Patience: patience, Silence: rejoinSilence, Direct: r.directs(), OnLoss: p.OnLoss,
		Limits: engine.Limits{Ping: ping, Silence: silence, LastWay: silence, NoRail: patience}}
	e.Job.Cluster = cluster(in)
	e.Limits.DirectAfter, e.Limits.DirectPause = p.WaysAfter, p.WaysPause
	if p.Small {
		e.Limits.Eager, e.Limits.EagerWindow, e.Limits.DataWindow, e.Limits.Segment = 500, 3000, 16000, 1500
	}
	return r.Enter(&e, r.job.clusters)
}

// directAddr returns the address at which rank listens for a direct link that rank other dials.
func directAddr(rank, other int) string { return fmt.Sprintf("%s%d-%d", addrPrefix, rank, other) }

const addrPrefix = "directAddr"

// directs returns the functions that open the rank's direct links, by rank of the peer, and makes
// the process listen for the links that peers dial. The function is nil for such a peer. The map is
// nil if the run has no direct links; it is empty if only this rank has none.
func (r *rank) directs() map[int]engine.Opener {
	if !r.job.plan.Direct {
		return nil
	}
	list := map[int]engine.Opener{}
	for _, o := range r.job.pairs(r.Rank) {
		list[o] = nil
		if o < r.Rank { // this rank dials, and the other one listens
			list[o] = func(ctx context.Context) (transport.Link, error) {
				l, err := r.job.dial(ctx, r.Proc, directAddr(o, r.Rank))
				if err != nil {
					return nil, err
				}
				return l, nil
			}
			continue
		}
		r.Proc.Listen(directAddr(r.Rank, o), func(e *kernel.End) {
			r.Proc.Go(func() {
				if r.Engine == nil || !r.Engine.DirectUp(o, e) {
					e.Close()
				}
			})
		})
	}
	return list
}

// pairs returns the ranks to which the given rank has a direct link, which bypasses forwarders.
func (j *job) pairs(rank int) (list []int) {
	for _, p := range j.direct {
		if i := slices.Index(p[:], rank); i >= 0 {
			list = append(list, p[1-i])
		}
	}
	return list
}

// env returns the job of plan p in the form in which launchers describe a job to its ranks.
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
