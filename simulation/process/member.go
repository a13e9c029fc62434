// Package process has the processes of a zipped job as they run on package kernel: forwarders
// (forwarder.go), ranks with their engines (member.go, join.go), and a native MPI for each cluster
// (native.go). Engine, forwarder and the exchange between them are the product's; what ranks do is
// up to who makes them. It has no I/O.
package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine"
	"github.com/leidenzipper/zipper/mmpi/engine/wait"
	"github.com/leidenzipper/zipper/simulation/kernel"
)

// World is what processes are in.
type World struct {
	K    *kernel.Kernel
	Dial func(ctx context.Context, p *kernel.Process, addr string) (*kernel.End, error)
	Say  func(format string, args ...any) // is told what happens; nil: nobody

	// Together is up to how long ranks go on sleeping that would take shorter naps, one after the
	// other, in which nothing can happen to them (nap.go); 0: they take each nap.
	Together time.Duration
}

// Member is one process's part in a job.
type Member struct {
	Rank   int // virtual
	Proc   *kernel.Process
	System kernel.System
	Native *Native
	Engine *engine.Engine // nil: it has not joined
	world  *World

	beside *kernel.Thread // the engine's own
	bell   int            // wakes who sleeps on; 0: there is none yet
	set    []unix.PollFd  // scratch
}

// NewMember makes one. A process may have several, of several jobs.
func (w *World) NewMember(rank int, p *kernel.Process, n *Native) *Member {
	return &Member{Rank: rank, Proc: p, System: kernel.System{Process: p, FlushAfter: wait.FlushAfter}, Native: n,
		world: w}
}

// Entry is how a member comes into its job.
type Entry struct {
	Job      jobenv.Job // with its cluster
	Local    int        // native rank
	Host     string
	Level    wire.Level
	Timeout  time.Duration // of joining
	Patience time.Duration // with what is lost, as jobs have it
	Silence  time.Duration // of a forwarder, after which an attempt to join again is given up
	Limits   engine.Limits
	Direct   map[int]engine.Opener
	Bare     bool // it only joins: there is no engine
}

// Clusters are a job's, as frames have them.
func Clusters(j *jobenv.Job) (list []wire.Cluster) {
	for _, c := range j.Layout {
		list = append(list, wire.Cluster{Name: c.Name, Size: uint32(c.Size)})
	}
	return list
}

// Enter joins the job and starts the engine, as mmpi/boot does; the caller is a thread of the
// process.
func (r *Member) Enter(e *Entry, clusters []wire.Cluster) error {
	w := engine.World{Rank: r.Rank, Clusters: clusters, TagUB: 1 << 20}
	id := handshake.Identity{Job: e.Job.ID, Secret: e.Job.Secret, Cluster: e.Job.Cluster, Rank: e.Local,
		Layout: w.Clusters, TagUB: w.TagUB, Library: "simulated", Model: "m", Host: e.Host,
		TimeoutMS: e.Timeout.Milliseconds(), Patience: e.Patience.Milliseconds(),
		Instance: uint64(r.Rank + 1), Level: e.Level}
	targets, routes, err := dial.Targets(e.Job, id)
	if err != nil {
		return err
	}
	links := make([]transport.Link, len(targets))
	var threads []*kernel.Thread
	var failed error
	for i, t := range targets {
		threads = append(threads, r.Proc.Go(func() {
			if err := r.joinFirst(t, e.Timeout, &links[i]); err != nil {
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
	if e.Bare {
		return nil
	}
	cfg := engine.Config{World: w, Native: r.Native, Links: links, Routes: routes, Level: e.Level, System: system{r.System, r},
		Redial: func(ctx context.Context, rail int, leaves bool) (transport.Link, error) {
			t := targets[rail]
			t.ID.Leaving = leaves
			return r.join(ctx, t, e.Silence)
		},
		Direct: e.Direct, Limits: e.Limits}
	if r.world.Say != nil {
		cfg.Trace = func(s string) { r.world.Say("rank %d: %s", r.Rank, s) }
		cfg.Warn = func(s string) { r.world.Say("rank %d warns: %s", r.Rank, s) }
	}
	for _, t := range targets {
		cfg.Addresses = append(cfg.Addresses, t.Address)
	}
	r.Engine, err = engine.New(cfg)
	return err
}

// joinFirst joins a forwarder, as often as it takes.
func (r *Member) joinFirst(t dial.Target, timeout time.Duration, link *transport.Link) error {
	k := r.world.K
	for end := k.Now() + timeout; ; k.Sleep(100 * time.Millisecond) {
		l, err := r.join(context.Background(), t, timeout)
		var refused *handshake.Refused
		switch {
		case err == nil:
			*link = l
			return nil
		case k.Now() > end || errors.As(err, &refused) && refused.Final():
			return err
		}
		if r.world.Say != nil {
			r.world.Say("rank %d at %s: %v", r.Rank, t.Address, err)
		}
	}
}

// Comm gives the communicator of all processes; those of the own cluster are reached by native MPI.
func (r *Member) Comm() (*engine.Comm, error) {
	w := r.Engine.World()
	in, first := w.Place(r.Rank)
	world, local := make([]int32, w.Size()), make([]int32, w.Size())
	for o := range world {
		world[o], local[o] = int32(o), engine.Remote
		if c, _ := w.Place(o); c == in {
			local[o] = int32(o - first)
		}
	}
	c, err := r.Engine.AddComm(1, engine.WorldContext, r.Rank, world, local)
	if err != nil {
		return nil, fmt.Errorf("the communicator of all: %w", err)
	}
	return c, nil
}
