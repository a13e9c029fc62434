package boot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"runtime"
	"strings"

	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine"
)

// Local is what only native MPI knows of this process.
type Local struct {
	Rank, Size int // in the cluster's own MPI
	TagUB      int
	Library    string // "Open MPI 4.1.4"
	Host       string
	Hosts      []int32             // see engine.World
	Embedded   bool                // see engine.Config
	Spawned    bool                // MPI_Comm_spawn of some process has started this native world, beside the job's
	Warn       func(string)        // is told what the user should know though the job goes on; nil: nobody
	Waits      func() engine.Waits // see engine.Config
	Leave      func() bool         // see engine.Config
	// of forwarders in the job's description, where this process reaches them, if elsewhere
	Via    map[string]string
	Unmaps dial.Unmaps // tells what the program unmaps, if registrations of its memory are to be kept
	// Getenv returns a variable of the program's environment, "" if it is not set; nil: none is
	// set. Only Join calls it.
	Getenv func(string) string
}

func (l *Local) getenv(name string) string {
	if l.Getenv == nil {
		return ""
	}
	return l.Getenv(name)
}

// Model names the data model: two processes of a job must agree, since data crosses as it lies in
// memory.
const Model = runtime.GOARCH + " little endian"

// Join makes this process part of the job and starts the engine. It blocks until all ranks of all
// clusters are in or the job's time-out ends. In a job of one cluster nothing spans: the engine has
// no links and is there for what connects to other jobs, or it is nil if the job names no forwarder
// to do so by. The world is valid then too. A world that the program has spawned is not of the job:
// its engine, which there is if the job's processes have one, has no links, and connects to nobody.
func Join(ctx context.Context, job jobenv.Job, loc Local, native engine.Native) (*engine.Engine, engine.World, error) {
	alone := len(job.Layout) == 1 && len(job.Forwarders) == 0
	if loc.Spawned {
		job = beside(&job, &loc)
	}
	w, err := worldOf(&job, &loc)
	if err != nil || alone {
		return nil, w, err
	}
	tuning, err := collectives.ParseTuning(job.Collectives)
	if err != nil {
		return nil, w, failure(engine.ErrArg, "%s: %v", jobenv.VarCollectives, err)
	}
	level, err := jobenv.ParseLevel(job.Level, job.Protocol, job.Networks)
	if err != nil {
		return nil, w, failure(engine.ErrArg, "%s: %v", jobenv.VarLevel, err)
	}
	patience, err := jobenv.ParsePatience(job.Patience)
	if err != nil {
		return nil, w, failure(engine.ErrArg, "%s: %v", jobenv.VarPatience, err)
	}
	allow, err := jobenv.ParseDirectAllow(job.DirectAllow)
	if err != nil {
		return nil, w, failure(engine.ErrArg, "%s: %v", jobenv.VarDirectAllow, err)
	}
	if len(job.Layout) == 1 {
		e, err := engine.New(engine.Config{World: w, Wiring: engine.Wiring{Warn: loc.Warn}, Native: native, Embedded: loc.Embedded,
			Poll: pollOf(job.Poll), Collectives: tuning})
		return e, w, err
	}
	id := handshake.Identity{Job: job.ID, Secret: job.Secret, Ticket: job.Ticket, Cluster: job.Cluster, Rank: loc.Rank,
		Layout: w.Clusters, TagUB: loc.TagUB,
		Library: loc.Library, Model: Model, Host: loc.Host, Origin: jobenv.Origin(loc.getenv, os.Getuid()),
		TimeoutMS: job.Timeout.Milliseconds(),
		Patience:  patience.Milliseconds(), Protocol: job.Protocol, Settings: settings(&job, tuning, w.Order != nil),
		Instance: mathrand.Uint64()}
	// The key of a sealed job lives as long as the process: who learns the job's secret later
	// cannot read what was sent.
	if err := id.SetLevel(level, nonce()); err != nil {
		return nil, w, failure(engine.ErrInternal, "%v", err)
	}
	ln, err := listen(job)
	if err != nil {
		return nil, w, err
	}
	id.Doors = ln.ports
	targets, paths, err := targetsOf(job, id, loc.Via)
	if err != nil {
		ln.close()
		return nil, w, failure(engine.ErrArg, "%s: %v", jobenv.VarForwarders, err)
	}
	var sealed channels
	dialer := &dial.Dialer{Unmaps: loc.Unmaps, Sealed: sealed.keep}
	if loc.Rank == 0 {
		dialer.Notify = loc.Warn
	}
	if len(targets) == 1 && job.Protocol != jobenv.Classic { // several share the load, and one may be lost
		dialer.Inside = ln.inside
	}
	joined, err := joinFirst(ctx, dialer, targets)
	if err != nil {
		ln.close()
		return nil, w, &notIn{failure(engine.ErrLink, "cluster %s cannot join job %q: %v", job.Cluster, job.ID, err),
			err}
	}
	w.TagUB = int(joined.layout.TagUB)
	w.Namesake, w.Libraries = joined.layout.Namesake, libraries(&joined.layout)
	var within *reach
	if len(joined.layout.Doors) > 0 {
		within = reachOf(ctx, allow, targets, joined.links)
	}
	direct := openers(&id, &joined.layout, within)
	wiring := engine.Wiring{Links: joined.links, Addresses: addresses(targets), Redial: joined.redial, Routes: paths,
		Direct: direct, Level: level, Warn: loc.Warn}
	cfg := engine.Config{World: w, Wiring: wiring, Waits: loc.Waits, Leave: loc.Leave, Native: native,
		Embedded: loc.Embedded, Collectives: tuning, Limits: engine.Limits{Grace: grace}}
	cfg.Poll = pollOf(job.Poll)
	cfg.Seal = sealed.keys(id.Seal, &joined.layout)
	if len(targets) == 1 || paths != nil || job.Patience != "" {
		cfg.Limits.NoRail = patience
	}
	cfg.Limits.Standstill = patience
	cfg.Limits.LastWay = max(engine.DefaultLastWay, patience)
	if targets[len(targets)-1].Row == 0 && (patience == 0 || job.Protocol == jobenv.Classic) {
		cfg.Redial = nil
	}
	if job.Protocol == jobenv.Classic {
		classic(&cfg.Limits)
	}
	if loc.Embedded { // else memory is Go's
		cfg.ZcopyFrom = job.InPlace
	}
	if job.Report != "" {
		cfg.Recorder = newRecording(job.Report, w.Rank, loc.Host)
	}
	e, err := engine.New(cfg)
	if err != nil {
		joined.discard()
		ln.close()
		return nil, w, err
	}
	if s := unopened(&job, &joined.layout); s != "" && loc.Rank == 0 && loc.Warn != nil {
		loc.Warn(s)
	}
	ln.joinDirect(ctx, e, &id, direct, loc.Warn)
	return e, w, nil
}

// pollOf reads jobenv.Job.Poll.
func pollOf(s string) engine.Poll {
	return map[string]engine.Poll{"busy": engine.PollBusy, "event": engine.PollEvent}[s]
}

// beside describes a spawned world, which goes about its native communicators as the job that it is
// beside does.
func beside(job *jobenv.Job, loc *Local) jobenv.Job {
	return jobenv.Job{ID: job.ID, Cluster: job.Cluster, Poll: job.Poll,
		Layout: []jobenv.Cluster{{Name: job.Cluster, Size: loc.Size}}}
}

// worldOf is who takes part, by the job's description alone.
func worldOf(job *jobenv.Job, loc *Local) (engine.World, error) {
	w := engine.World{Clusters: make([]wire.Cluster, len(job.Layout)), TagUB: loc.TagUB, Hosts: loc.Hosts,
		Order: jobenv.VirtualRanks(job.Order, job.Layout)}
	first, size := 0, -1
	for i, c := range job.Layout {
		w.Clusters[i] = wire.Cluster{Name: c.Name, Size: uint32(c.Size)}
		switch {
		case c.Name == job.Cluster:
			size = c.Size
		case size < 0:
			first += c.Size
		}
	}
	if size != loc.Size {
		return w, failure(engine.ErrArg,
			"cluster %s has %d ranks in its MPI, but %s says %s: start it with as many ranks as the layout says%s",
			job.Cluster, loc.Size, jobenv.VarLayout, jobenv.FormatLayout(job.Layout), otherSize(job, loc, loc.getenv))
	}
	w.Rank = first + loc.Rank
	return w, nil
}

// libraries counts the MPI libraries of the job by name: "Open MPI 4.1.4" has a version.
func libraries(l *wire.Layout) int {
	names := map[string]bool{}
	for _, s := range l.Libraries {
		if i := strings.LastIndexByte(s, ' '); i >= 0 {
			s = s[:i]
		}
		names[s] = true
	}
	return len(names)
}

// otherSize is what to do about the ways in which batch systems start other MPI worlds than was
// meant. get reads the environment.
func otherSize(job *jobenv.Job, loc *Local, get func(string) string) string {
	all := 0
	for _, c := range job.Layout {
		all += c.Size
	}
	step := get("SLURM_STEP_ID") != ""
	switch {
	case step && loc.Size == 1:
		mpi := "pmix"
		if strings.HasPrefix(loc.Library, "MPICH") {
			mpi = "pmi2"
		}
		return fmt.Sprintf(" (srun has started each process as a world of its own: %s needs srun --mpi=%s)",
			loc.Library, mpi)
	case step && loc.Size == all:
		return " (these are the ranks of all clusters: start each by an srun of its own, not by one with a colon, or all by zipper run)"
	}
	return ""
}

// settings are what all processes of the job must have been told alike, for the Join.
func settings(job *jobenv.Job, tuning collectives.Tuning, ordered bool) string {
	s := jobenv.VarCollectives + "=" + tuning.String()
	if ordered { // the order may be long
		sum := sha256.Sum256([]byte(jobenv.FormatOrder(job.Order)))
		s += " " + jobenv.VarOrder + "=#" + hex.EncodeToString(sum[:8])
	}
	return s
}

// notIn is why the process was not let into its job: an *engine.Error for the program, and perhaps
// a *handshake.Refused.
type notIn struct{ program, cause error }

func (n *notIn) Error() string { return n.program.Error() }

// Unwrap gives both.
func (n *notIn) Unwrap() []error { return []error{n.program, n.cause} }

// failure is an error for the program.
func failure(code engine.Code, format string, args ...any) error {
	return &engine.Error{Code: code, Reason: fmt.Sprintf(format, args...)}
}
