package launch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"time"

	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/launch/output"
	"github.com/leidenzipper/zipper/launch/spec"
)

// Options determine where a run's input and output go.
type Options struct {
	// Stdin goes to rank 0 of MPI_COMM_WORLD; nil means no input.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Tag tells to put the rank in MPI_COMM_WORLD before each line of output.
	Tag bool
	// RunDir is where temporary files are kept; an empty string means the system's place.
	RunDir string
	// Record is the file for the job's recorded traffic (package internal/traffic/trace); an empty
	// string means none.
	Record string
	// Progress, if not nil, is called with the ranks that the job waits for while it gathers over a
	// forwarder of this run, and with an empty string when it waits for none.
	Progress func(missing string)
	// StartForwarder starts a forwarder on this host.
	StartForwarder func(ctx context.Context, w Wanted) (Forwarder, error)
}

// Ended is the result of one cluster's half.
type Ended struct {
	Cluster string   `json:"cluster"`
	MPI     spec.MPI `json:"mpi,omitempty"`
	First   int      `json:"first_virtual_rank"`
	Ranks   int      `json:"ranks"`
	// World has the ranks in MPI_COMM_WORLD, if their order is not that of virtual ranks.
	World []int `json:"world_ranks,omitempty"`
	// Status is the exit status of the native launcher.
	Status int `json:"status"`
	// Killed tells that the half was ended because the job had failed elsewhere.
	Killed  bool    `json:"killed"`
	Seconds float64 `json:"seconds"`
	err     error
	// complaint is the first error that one of its ranks printed.
	complaint string
	// boxes is the launcher's framed output about the end of its processes.
	boxes string
	// script is the program's name if the program is not linked to MPI itself. It is empty if the
	// program is, or was not examined.
	script string
}

// Lost is a cluster that a job which outlives clusters has lost.
type Lost struct {
	Cluster string `json:"cluster"`
	// Seconds is the time from the beginning of the run to the loss.
	Seconds float64 `json:"seconds"`
	Reason  string  `json:"reason"`
}

// Outcome is the result of a run.
type Outcome struct {
	Job string `json:"job"`
	// Status is the program's exit status: that of the first half that failed, and was not lost,
	// else 0.
	Status   int     `json:"status"`
	Reason   string  `json:"reason,omitempty"`
	Seconds  float64 `json:"seconds"`
	Clusters []Ended `json:"clusters"`
	// Lost has the clusters that a job which outlives clusters has lost, in order.
	Lost []Lost `json:"lost,omitempty"`
	// Traffic is known if this run has started the forwarder.
	Traffic []Traffic `json:"traffic,omitempty"`
	// Kernel is the traffic over connections in the kernel, known if this run has started the
	// forwarder.
	Kernel KernelTraffic `json:"kernel,omitzero"`
	// Untimed is the number of recorded messages that are in the matrix only.
	Untimed int `json:"untimed,omitempty"`
	// Launcher is the framed output of the failed cluster's launcher about the failure, which is
	// not in the output. It is empty if there is none, or the job succeeded.
	Launcher string `json:"-"`
}

// ErrNotJoined means that the processes ended without having joined the job.
var ErrNotJoined = errors.New("ended before all its ranks had joined the job: did they all call MPI_Init? " +
	"A statically linked or set-uid program cannot be joined by preloading (link it with zipper cc or fc); a program that does not use MPI does not join")

// Run starts all clusters of the job at once and waits for them. It returns when everything has
// ended and no process is left; ctx ends it early. The error is set if the job failed for a reason
// other than the program's exit status; Outcome.Status is then not 0 either.
func Run(ctx context.Context, job *spec.Job, o Options) (out Outcome, err error) {
	begin := time.Now()
	if err := job.Normalize(); err != nil {
		return Outcome{Status: 2}, err
	}
	out = Outcome{Job: job.ID, Status: 1}
	defer func() {
		out.Seconds = time.Since(begin).Seconds()
		if err != nil && out.Reason == "" {
			out.Reason = err.Error()
		}
	}()
	recorded, err := newRecord(job, o.Record)
	if err != nil {
		return out, err
	}
	defer recorded.clear()
	halves, err := prepare(ctx, job, o)
	if err != nil {
		return out, err
	}
	shareFiles(halves, os.LookupEnv)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	fwd, err := startForwarder(ctx, job, halves, o)
	if err != nil {
		return out, err
	}
	if fwd != nil {
		defer fwd.Close()
		if o.Progress != nil {
			defer showProgress(fwd, o.Progress)()
		}
	}
	if recorded != nil {
		for _, h := range halves {
			h.Share.Report = recorded.prefix()
		}
	}
	for _, h := range halves {
		h.ReportsEnd = fwd == nil
	}
	ended := make(chan Ended)
	stdout, stderr := output.NewMerger(o.Stdout), output.NewMerger(o.Stderr)
	for _, h := range halves {
		var stdin io.Reader
		if h.Share.First() {
			stdin = o.Stdin // Open MPI and MPICH give it to their rank 0
		}
		go func() {
			e := Ended{Cluster: h.Cluster.Name, MPI: h.Cluster.MPI, First: job.Offset(h.Cluster.Name),
				Ranks: h.Cluster.Ranks}
			if len(job.Order) > 0 {
				e.World = jobenv.WorldRanks(job.Order, job.Layout(), e.Cluster)
			}
			var complaint output.Complaint
			var boxes output.Boxes
			so, se := boxes.Stdout(stdout), boxes.Stderr(stderr, complaint.Listen)
			e.Status, e.err = h.start(ctx, stdin, so, se)
			so.Close()
			se.Close()
			e.complaint, e.boxes = complaint.String(), boxes.Text()
			if e.Status == 0 { // such boxes are of an mpirun that the program itself has started
				rest := stderr.Source(nil)
				_, _ = io.WriteString(rest, e.boxes)
				rest.Close()
				e.boxes = ""
			}
			if h.examine {
				e.script = h.Cluster.Program[0]
			}
			e.Seconds = time.Since(begin).Seconds()
			ended <- e
		}()
	}
	w := waiter{job: job, fwd: fwd, stop: cancel}
	for range halves {
		w.ended(<-ended)
	}
	w.close()
	if fwd != nil {
		fwd.Settle()
	}
	out.Clusters = w.inOrder()
	out.Lost = w.lost(begin)
	w.judge(out.Lost)
	out.Status, err = w.verdict()
	out.Launcher = w.boxes(out.Status)
	if fwd != nil {
		v := fwd.View()
		out.Traffic, out.Kernel = v.Traffic, v.Kernel
		out.Reason = v.Reason
	}
	if err == nil {
		out.Reason = w.explain(out.Status, out.Reason)
	}
	if recorded != nil && out.Status == 0 && err == nil {
		if out.Untimed, err = recorded.merge(); err != nil {
			out.Status = 1
		}
	}
	if lost := stdout.Lost(); lost != nil && out.Status == 0 && err == nil {
		out.Status, err = 1, fmt.Errorf("the job's output is lost: %w", lost)
	}
	return out, err
}

// runner is a half that can be started, here or over a remote shell.
type runner struct {
	Half
	rsh []string // the words of the remote shell; nil: the half starts here
}

func (r *runner) start(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	if r.rsh == nil {
		return r.Half.Run(ctx, stdin, stdout, stderr)
	}
	status, err := r.Half.runRemote(ctx, r.rsh, stdin, stdout, stderr)
	if err != nil && ctx.Err() == nil && r.ReportsEnd {
		err = r.NotStarted(ctx, err) // on the other host perhaps nobody was there to report it
	}
	return status, err
}

// prepare makes every cluster's half, and checks the halves that are started from here.
func prepare(ctx context.Context, j *spec.Job, o Options) ([]*runner, error) {
	var rs []*runner
	for _, c := range j.Clusters {
		r := &runner{Half: Half{Cluster: c, Env: j.Env, Tag: o.Tag, RunDir: o.RunDir, Mark: rand.Text()}}
		var err error
		if r.rsh, err = j.Login(c); err != nil {
			return nil, fmt.Errorf("cluster %s: %w", c.Name, err)
		}
		if r.rsh != nil {
			r.WorkDir, _ = os.Getwd()
			// The other end makes the remaining checks.
			if c.Hosts != "" {
				b, err := os.ReadFile(c.Hosts)
				if err != nil {
					return nil, fmt.Errorf("cluster %s: host file: %w", c.Name, err)
				}
				r.Nodes = string(b)
			}
		} else if err := r.Prepare(ctx); err != nil {
			return nil, err
		}
		rs = append(rs, r)
	}
	var here []*Half
	for _, r := range rs {
		if r.rsh == nil {
			here = append(here, &r.Half)
		}
	}
	note, err := FindRoom(here...)
	printNote(o.Stderr, note)
	return rs, err
}

// varSharedFS names the directories that all clusters share; the C library reads it
// (cgo/libmmpi/io/declared.c).
const varSharedFS = "ZIPPER_SHARED_FS"

// shareFiles declares that clusters which are all on this host share every directory, unless the
// user has declared directories. lookup reads the environment.
func shareFiles(halves []*runner, lookup func(string) (string, bool)) {
	if _, declared := lookup(varSharedFS); declared {
		return
	}
	for _, h := range halves {
		_, job := h.Env[varSharedFS]
		_, cluster := h.Cluster.Env[varSharedFS]
		if job || cluster || h.rsh != nil || !h.Cluster.Here() {
			return
		}
	}
	for _, h := range halves {
		env := map[string]string{varSharedFS: "/"}
		maps.Copy(env, h.Env) // Env belongs to the job
		h.Env = env
	}
}
