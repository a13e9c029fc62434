package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/launch/output"
	"github.com/leidenzipper/zipper/launch/spec"
)

// Options say where a run's input and output go.
type Options struct {
	Stdin          io.Reader // to rank 0 of MPI_COMM_WORLD; nil: none
	Stdout, Stderr io.Writer
	Tag            bool
	RunDir         string
	Record         string // file for the job's recorded traffic (package internal/traffic/trace); empty: none
	// if not nil, is told what the job waits for while it gathers over a forwarder of this run;
	// empty: nothing
	Progress       func(missing string)
	StartForwarder func(ctx context.Context, w Wanted) (Forwarder, error)
}

// Ended is how one cluster's half came out.
type Ended struct {
	Cluster string   `json:"cluster"`
	MPI     spec.MPI `json:"mpi,omitempty"`
	First   int      `json:"first_virtual_rank"`
	Ranks   int      `json:"ranks"`
	World   []int    `json:"world_ranks,omitempty"` // in MPI_COMM_WORLD, if its order is not that of virtual rank
	Status  int      `json:"status"`                // exit status of its native launcher
	Killed  bool     `json:"killed"`                // ended because the job had failed elsewhere
	Seconds float64  `json:"seconds"`
	err     error
	said    string // the first error that one of its ranks printed
	boxes   string // what its launcher printed of the end of its processes
	script  string // its program, if that is not linked to MPI itself; empty: it is, or nobody has looked
}

// Outcome is how a run came out.
type Outcome struct {
	Job      string    `json:"job"`
	Status   int       `json:"status"` // exit status of the program: that of the first half that failed, else 0
	Reason   string    `json:"reason,omitempty"`
	Seconds  float64   `json:"seconds"`
	Clusters []Ended   `json:"clusters"`
	Traffic  []Traffic `json:"traffic,omitempty"` // known when the forwarder was started by this run
	Untimed  int       `json:"untimed,omitempty"` // recorded messages that are in the matrix only
	// Launcher is what the launcher of the cluster that failed has printed of that, in frames,
	// which are not among the output. It is empty if there are none, or the job went well.
	Launcher string `json:"-"`
}

// ErrNotJoined: the processes ended without having joined the job.
var ErrNotJoined = errors.New("ended before all its ranks had joined the job: did they all call MPI_Init? " +
	"A statically linked or set-uid program cannot be joined by preloading (link it with zipper cc or fc); a program that is no MPI program does not join")

// Run starts all clusters of the job at once and waits for them. It returns when everything has
// ended and nothing is left of it; ctx ends it early. The error is set when the job did not run
// properly for a reason of its own (not when the program just exits with a status): then
// Outcome.Status is not 0 either.
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
		h.Tells = fwd == nil
	}
	ended := make(chan Ended)
	stdout, stderr := output.NewMerger(o.Stdout), output.NewMerger(o.Stderr)
	for _, h := range halves {
		var stdin io.Reader
		if h.Share.First() {
			stdin = o.Stdin // Open MPI and MPICH hand it to their rank 0
		}
		go func() {
			e := Ended{Cluster: h.Cluster.Name, MPI: h.Cluster.MPI, First: job.Offset(h.Cluster.Name),
				Ranks: h.Cluster.Ranks}
			if len(job.Order) > 0 {
				e.World = jobenv.WorldRanks(job.Order, job.Layout(), e.Cluster)
			}
			var said output.Complaint
			var boxes output.Boxes
			so, se := boxes.Stdout(stdout), boxes.Stderr(stderr, said.Listen)
			e.Status, e.err = h.start(ctx, stdin, so, se)
			so.Close()
			se.Close()
			e.said, e.boxes = said.String(), boxes.Text()
			if e.Status == 0 { // the boxes are of an mpirun that the program itself has started
				rest := stderr.Source(nil)
				_, _ = io.WriteString(rest, e.boxes)
				rest.Close()
				e.boxes = ""
			}
			if h.lookUp {
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
	out.Status, err = w.verdict()
	out.Launcher = w.boxes(out.Status)
	if fwd != nil {
		v := fwd.View()
		out.Traffic = v.Traffic
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

// runner is a half that can be started: here, or over a remote shell.
type runner struct {
	Half
	rsh []string // nil: here
}

func (r *runner) start(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	if r.rsh != nil {
		return r.Half.runRemote(ctx, r.rsh, stdin, stdout, stderr)
	}
	return r.Half.Run(ctx, stdin, stdout, stderr)
}

// prepare makes every cluster's part; those that are started from here are checked.
func prepare(ctx context.Context, j *spec.Job, o Options) ([]*runner, error) {
	var rs []*runner
	for _, c := range j.Clusters {
		r := &runner{Half: Half{Cluster: c, Env: j.Env, Tag: o.Tag, RunDir: o.RunDir}}
		var err error
		if r.rsh, err = j.Login(c); err != nil {
			return nil, fmt.Errorf("cluster %s: %w", c.Name, err)
		}
		if r.rsh != nil {
			// The rest is checked at the other end.
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
	tellNote(o.Stderr, note)
	return rs, err
}
