package boot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	mathrand "math/rand/v2"
	"net/netip"
	"os"
	"runtime"
	"strings"

	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/facts"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine"
)

// Local has the facts about this process that only native MPI knows.
type Local struct {
	Rank, Size int // rank and size in the cluster's own MPI
	TagUB      int
	Library    string // name and version, such as "Open MPI 4.1.4"
	Host       string
	Hosts      []int32 // see engine.World
	Facts      facts.Word
	Embedded   bool // see engine.Config
	// Spawned says that MPI_Comm_spawn of some process has started this native world, in addition
	// to the job's.
	Spawned bool
	// Warn is called with messages for the user while the job goes on; nil discards them.
	Warn  func(string)
	Waits func() engine.Waits // see engine.Config
	Leave func() bool         // see engine.Config
	// Via has for forwarders of the job's description the address at which this process reaches
	// them, if it differs.
	Via map[string]string
	// Unmaps reports the memory that the program unmaps, if registrations of its memory are to be
	// kept.
	Unmaps dial.Unmaps
	// Getenv returns a variable of the program's environment, or "" if it is not set. With nil no
	// variable is set. Only Join calls it, on its caller's goroutine.
	Getenv func(string) string
}

func (l *Local) getenv(name string) string {
	if l.Getenv == nil {
		return ""
	}
	return l.Getenv(name)
}

// Model is the data model that processes name to a forwarder that does not know facts, which then
// refuses all others.
const Model = runtime.GOARCH + " little endian"

// Join makes this process part of the job and starts the engine. It blocks until all ranks of all
// clusters have joined or the job's time-out ends. In a job of one cluster no communicator spans
// clusters: the engine has no links and serves connections to other jobs, or it is nil if the job
// names no forwarder for that. The world is valid in either case. A world that the program has
// spawned does not belong to the job: its engine, which exists if the job's processes have one, has
// no links, and connects to no other job.
func Join(ctx context.Context, job jobenv.Job, loc Local, native engine.Native) (*engine.Engine, engine.World, error) {
	alone := len(job.Layout) == 1 && len(job.Forwarders) == 0
	if loc.Spawned {
		job = spawnedJob(&job, &loc)
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
		Library: loc.Library, Facts: loc.Facts, Model: Model, Host: loc.Host, Origin: wire.WithArch(jobenv.Origin(loc.getenv, os.Getuid()), wire.Architecture()),
		TimeoutMS: job.Timeout.Milliseconds(),
		Patience:  patience.Milliseconds(), Protocol: job.Protocol, Settings: settings(&job, tuning, w.Order != nil),
		Instance: mathrand.Uint64()}
	// The key of a sealed job lives as long as the process. So an attacker who learns the job's
	// secret later cannot decrypt earlier frames.
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
	if paths == nil && job.Protocol != jobenv.Classic { // over several hops no kernel has a way to the other rank
		dialer.Inside = func(here netip.Addr) string { return ln.listenInside(here, &allow) }
	}
	joined, err := joinFirst(ctx, dialer, targets)
	if err != nil {
		ln.close()
		return nil, w, &joinError{failure(engine.ErrLink, "cluster %s cannot join job %q: %v", job.Cluster, job.ID, err),
			err}
	}
	w.TagUB = int(joined.layout.TagUB)
	w.Namesake, w.Libraries = joined.layout.Namesake, libraries(&joined.layout)
	w.Mixed = facts.Mixed(joined.layout.Facts)
	var within *reach
	if len(joined.layout.Doors) > 0 {
		within = reachOf(ctx, allow, targets, joined.links)
	}
	direct := openers(&id, &joined.layout, within)
	wiring := engine.Wiring{Links: joined.links, Addresses: addresses(targets), Redial: joined.redial, Routes: paths,
		Direct: direct, OpenWay: waysOf(&id, &joined.layout, func() *reach {
			ctx, cancel := context.WithTimeout(context.Background(), meetingTime)
			defer cancel()
			return reachOf(ctx, allow, targets, joined.links)
		}), Level: level, Warn: loc.Warn}
	cfg := engine.Config{World: w, Wiring: wiring, Waits: loc.Waits, Leave: loc.Leave, Native: native,
		Embedded: loc.Embedded, Collectives: tuning, OnLoss: job.OnLoss == jobenv.LossContinues,
		Limits: engine.Limits{Grace: grace}}
	if paths != nil || job.Protocol == jobenv.Classic {
		cfg.OpenWay = nil
	}
	cfg.Poll = pollOf(job.Poll)
	cfg.Seal = sealed.keys(id.Seal, &joined.layout)
	if len(targets) == 1 || paths != nil || job.Patience != "" {
		cfg.Limits.NoRail = patience
	}
	cfg.Limits.Standstill = patience
	cfg.Limits.LastWay = max(engine.DefaultLastWay, patience)
	if cfg.OnLoss { // the survivors are to know of the loss soon after the patience
		cfg.Limits.Notice(patience)
	}
	if targets[len(targets)-1].Row == 0 && (patience == 0 || job.Protocol == jobenv.Classic) {
		cfg.Redial = nil
	}
	if job.Protocol == jobenv.Classic {
		classic(&cfg.Limits)
	}
	if loc.Embedded { // otherwise memory is Go's
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

// pollOf parses jobenv.Job.Poll.
func pollOf(s string) engine.Poll {
	return map[string]engine.Poll{"busy": engine.PollBusy, "event": engine.PollEvent}[s]
}

// spawnedJob describes a spawned world, which treats its native communicators as the original job
// does.
func spawnedJob(job *jobenv.Job, loc *Local) jobenv.Job {
	return jobenv.Job{ID: job.ID, Cluster: job.Cluster, Poll: job.Poll,
		Layout: []jobenv.Cluster{{Name: job.Cluster, Size: loc.Size}}}
}

// worldOf returns the world by the job's description alone.
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

// libraries returns the number of different MPI libraries of the job by name, without the version
// of "Open MPI 4.1.4".
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

// otherSize returns advice for the cases in which batch systems start MPI worlds of a wrong size.
// get reads the environment.
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

// settings returns the settings that must be equal in all processes of the job, for the Join.
func settings(job *jobenv.Job, tuning collectives.Tuning, ordered bool) string {
	s := jobenv.VarCollectives + "=" + tuning.String()
	if ordered { // the order may be long
		sum := sha256.Sum256([]byte(jobenv.FormatOrder(job.Order)))
		s += " " + jobenv.VarOrder + "=#" + hex.EncodeToString(sum[:8])
	}
	if job.OnLoss == jobenv.LossContinues {
		s += " " + handshake.SettingOnLoss + "=" + job.OnLoss
	}
	if job.Quorum == jobenv.QuorumBoth {
		s += " " + handshake.SettingQuorum + "=" + job.Quorum
	}
	return s
}

// joinError is the error of a process that could not join its job: an *engine.Error for the
// program, and perhaps a *handshake.Refused.
type joinError struct{ program, cause error }

func (n *joinError) Error() string { return n.program.Error() }

// Unwrap returns both errors.
func (n *joinError) Unwrap() []error { return []error{n.program, n.cause} }

// failure returns an error for the program.
func failure(code engine.Code, format string, args ...any) error {
	return &engine.Error{Code: code, Reason: fmt.Sprintf(format, args...)}
}
