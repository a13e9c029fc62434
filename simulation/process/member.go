// Package process has the processes of a zipped job, running on package kernel: forwarders
// (forwarder.go), ranks with their engines (member.go, join.go), direct links between ranks
// (direct.go) that the kernels of forwarders' hosts forward (nat.go), and a native MPI for each
// cluster (native.go). Engine, forwarder and handshake are the product's code. The caller provides
// the program of a rank. The package does no I/O.
package process

import (
	"context"
	"crypto/ed25519"
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

// World is the environment that all processes of a simulation share.
type World struct {
	K *kernel.Kernel // kernel in which all processes run
	// Dial opens a connection from process p to a forwarder's address.
	Dial func(ctx context.Context, p *kernel.Process, addr string) (*kernel.End, error)
	Say  func(format string, args ...any) // called with each log line; nil discards them

	// Together is the longest sleep that replaces a sequence of naps in which nothing can happen to
	// a rank (nap.go). With 0 ranks take each nap.
	Together time.Duration

	// NAT says that the kernels of forwarders' hosts forward connections between ranks.
	NAT        bool
	forwarders []*Forwarder // forwarders of the world, in the order of their creation
}

// Member is the part that one process has in a job.
type Member struct {
	Rank    int                // rank in the whole job, over all clusters
	Proc    *kernel.Process    // process that has the member
	System  kernel.System      // operating system of the engine
	Native  *Native            // view of the cluster's native MPI
	Engine  *engine.Engine     // nil until Enter has started it
	world   *World             // environment of the simulation
	key     ed25519.PrivateKey // key of the job, which proves that a process belongs to it
	listens bool               // the process accepts connections that a kernel forwards

	progress *kernel.Thread // progress thread of the engine
	wakeup   int            // event that ends a long sleep; 0 until it is made
	set      []unix.PollFd  // scratch space of sleepOn
}

// NewMember creates the member with a rank in the whole job that process p has in a job. n is its
// native MPI. A process may have several members, in different jobs.
func (w *World) NewMember(rank int, p *kernel.Process, n *Native) *Member {
	return &Member{Rank: rank, Proc: p, System: kernel.System{Process: p, FlushAfter: wait.FlushAfter}, Native: n,
		world: w}
}

// Entry has the parameters with which a member joins its job.
type Entry struct {
	Job      jobenv.Job    // job, with the member's cluster
	Local    int           // rank in the member's cluster, as native MPI numbers it
	Host     string        // name of the member's host
	Level    wire.Level    // checksums or encryption of frames between ranks
	Timeout  time.Duration // time limit of joining
	Patience time.Duration // time for which the job waits for a rank out of reach, as in real jobs
	Silence  time.Duration // silence of a forwarder after which an attempt to join again fails
	Limits   engine.Limits // limits of the engine's memory and times
	// Direct has the functions that open direct links, by rank of the peer; nil functions if the
	// peer dials.
	Direct map[int]engine.Opener
	OnLoss bool // the job goes on when a cluster is lost
	Bare   bool // the member only joins, without an engine
}

// Clusters returns the name and size of each cluster of job j in the form that frames use.
func Clusters(j *jobenv.Job) (list []wire.Cluster) {
	for _, c := range j.Layout {
		list = append(list, wire.Cluster{Name: c.Name, Size: uint32(c.Size)})
	}
	return list
}

// Enter joins the job at all forwarders and starts the engine, as package mmpi/boot does in real
// jobs. clusters are the job's clusters from Clusters. It returns an error if a forwarder cannot be
// joined. The caller must be a thread of the process.
func (r *Member) Enter(e *Entry, clusters []wire.Cluster) error {
	w := engine.World{Rank: r.Rank, Clusters: clusters, TagUB: 1 << 20}
	id := handshake.Identity{Job: e.Job.ID, Secret: e.Job.Secret, Cluster: e.Job.Cluster, Rank: e.Local,
		Layout: w.Clusters, TagUB: w.TagUB, Library: "simulated", Host: e.Host,
		TimeoutMS: e.Timeout.Milliseconds(), Patience: e.Patience.Milliseconds(),
		Instance: instance(r.Rank), Level: e.Level}
	if e.OnLoss {
		id.Settings = handshake.SettingOnLoss + "=continue"
	}
	r.key = handshake.Key(id.Job, id.Secret)
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
	wiring := engine.Wiring{Links: links, Routes: routes, Level: e.Level, System: system{r.System, r},
		Redial: func(ctx context.Context, rail int, a engine.Attempt) (transport.Link, error) {
			t := targets[rail]
			t.ID.Leaving, t.ID.Lost = a.Leaves, a.Lost
			return r.join(ctx, t, e.Silence)
		},
		Direct: e.Direct}
	if r.world.NAT && routes == nil {
		wiring.OpenWay = r.openWay
	}
	cfg := engine.Config{World: w, Native: r.Native, Wiring: wiring, Limits: e.Limits, OnLoss: e.OnLoss}
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

// joinFirst joins the job at forwarder t and stores the link in *link. It retries until it
// succeeds, the forwarder refuses for good, or the timeout is over; then it returns the last error.
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

// Comm returns the communicator of all processes of the job. Processes of the member's own cluster
// are reached by native MPI.
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
