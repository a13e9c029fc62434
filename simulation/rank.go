package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leidenzipper/zipper/dial"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/jobenv"
	"github.com/leidenzipper/zipper/mmpi/engine"
	"github.com/leidenzipper/zipper/mmpi/engine/wait"
	"github.com/leidenzipper/zipper/simulation/kernel"
	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/wire"
)

// rank is one process of the job.
type rank struct {
	job       *job
	rank      int
	proc      *kernel.Process
	system    kernel.System
	native    *native
	engine    *engine.Engine // nil: it has not joined
	rand      *rand.Rand     // what it does when
	ended     bool
	finishing bool  // it has called Finish
	harmed    bool  // a fault is to end it
	abort     bool  // it ends the job as soon as it can
	err       error // how it ended
	moves     int   // rises with what its program does
}

// newRank makes it; its main thread joins and does the work.
func (j *job) newRank(number, in, local int, b *board) *rank {
	r := &rank{job: j, rank: number, proc: j.k.Process(fmt.Sprintf("rank%d", number)),
		rand: rand.New(rand.NewPCG(j.plan.Seed, uint64(number)))}
	r.system = kernel.System{Process: r.proc, FlushAfter: wait.FlushAfter}
	r.native = &native{board: b, rank: local, owner: r}
	r.proc.Go(func() {
		r.err = r.main(in, local)
		r.ended = true
		j.say("rank %d ends: %v", number, r.err)
		r.proc.Kill() // as processes that end do
	})
	return r
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
	if err := r.engine.Finish(); err != nil {
		return fmt.Errorf("finish: %w", err)
	}
	if err := r.native.failure(); err != nil {
		return fmt.Errorf("finish: %w", err)
	}
	return nil
}

// enter joins the job and starts the engine, as mmpi/boot does.
func (r *rank) enter(in, local int) error {
	p := r.job.plan
	w := engine.World{Rank: r.rank, Clusters: r.job.clusters, TagUB: 1 << 20}
	j := r.job.env
	j.Cluster = cluster(in)
	id := handshake.Identity{Job: j.ID, Secret: j.Secret, Cluster: j.Cluster, Rank: local, Layout: w.Clusters,
		TagUB:   w.TagUB,
		Library: "simulated", Model: "m", Host: "host-" + j.Cluster, TimeoutMS: timeout.Milliseconds(),
		Patience: patience.Milliseconds(),
		Instance: uint64(r.rank + 1), Level: r.job.level()}
	targets, routes, err := dial.Targets(j, id)
	if err != nil {
		return err
	}
	links := make([]transport.Link, len(targets))
	var threads []*kernel.Thread
	var failed error
	for i, t := range targets {
		threads = append(threads, r.proc.Go(func() {
			if err := r.joinFirst(t, &links[i]); err != nil {
				failed = err
			}
		}))
	}
	for _, t := range threads {
		t.Join()
	}
	if failed != nil {
		return failed
	}
	cfg := engine.Config{World: w, Native: r.native, Links: links, Routes: routes, Level: r.job.level(),
		System: r.system,
		Redial: func(ctx context.Context, rail int) (transport.Link, error) {
			return r.join(ctx, targets[rail], anewSilence)
		},
		Trace:  func(s string) { r.job.say("rank %d: %s", r.rank, s) },
		Warn:   func(s string) { r.job.say("rank %d warns: %s", r.rank, s) },
		Direct: r.directs(),
		Limits: engine.Limits{Ping: ping, Silence: silence, LastWay: silence, NoRail: patience}}
	for _, t := range targets {
		cfg.Addresses = append(cfg.Addresses, t.Address)
	}
	if p.Small {
		cfg.Limits.Eager, cfg.Limits.EagerWindow, cfg.Limits.DataWindow, cfg.Limits.Segment = 500, 3000, 16000, 1500
	}
	r.engine, err = engine.New(cfg)
	return err
}

// joinFirst joins a forwarder, as often as it takes.
func (r *rank) joinFirst(t dial.Target, link *transport.Link) error {
	for end := r.job.k.Now() + timeout; ; r.job.k.Sleep(100 * time.Millisecond) {
		l, err := r.join(context.Background(), t, timeout)
		var refused *handshake.Refused
		switch {
		case err == nil:
			*link = l
			return nil
		case r.job.k.Now() > end || errors.As(err, &refused) && refused.Final():
			return err
		}
		r.job.say("rank %d at %s: %v", r.rank, t.Address, err)
	}
}

// directs are the openers of direct links: of ranks with the same local number.
func (r *rank) directs() map[int]engine.Opener {
	if !r.job.plan.Direct {
		return nil
	}
	list := map[int]engine.Opener{}
	for _, o := range r.job.pairs(r.rank) {
		list[o] = nil
		if o < r.rank { // the other one listens
			list[o] = func(ctx context.Context) (transport.Link, error) {
				l, err := r.job.dial(ctx, r.proc, fmt.Sprintf("door%d-%d", o, r.rank))
				if err != nil {
					return nil, err
				}
				return l, nil
			}
			continue
		}
		r.proc.Listen(fmt.Sprintf("door%d-%d", r.rank, o), func(e *kernel.End) {
			r.proc.Go(func() {
				if r.engine == nil || !r.engine.DirectUp(o, e) {
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
