package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/leidenzipper/zipper/jobenv"
)

// Relay is a forwarder that was started for one job and knows how the job stands.
type Relay interface {
	// Address returns HOST:PORT for a cluster whose nodes reach this host at host.
	Address(host string) string
	// View tells how the job stands, now or, when it has ended, how it ended.
	View(job string) View
	// Settle waits, a bounded time, until it has seen the links of ended processes close.
	Settle(job string)
	// Close ends it.
	Close()
}

// View is a forwarder's view of a job.
type View struct {
	Known   bool   // it is gathering or running
	Ended   bool   // it ran and is over
	Started bool   // all ranks of all clusters had joined
	Missing string // while gathering: who has not joined
	OK      bool   // ended, and every rank took its leave properly
	Code    int    // of MPI_Abort, or 1 for a lost rank
	Reason  string // why it failed; empty: it did not
	Traffic []Traffic
}

// Traffic is what went from the ranks of one cluster to those of another.
type Traffic struct {
	From     string `json:"from"`
	To       string `json:"to"`
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`    // the program's data
	Overhead uint64 `json:"overhead"` // headers and control frames, bytes
}

// Options say where a run's input and output go.
type Options struct {
	Stdin          io.Reader // to rank 0 of MPI_COMM_WORLD; nil: none
	Stdout, Stderr io.Writer
	Tag            bool
	RunDir         string
	Record         string // file for the job's recorded traffic (package contention/trace); empty: none
	// StartRelay starts a forwarder on this host; local: for processes of this host alone; protocol: that of the job.
	StartRelay func(ctx context.Context, local bool, protocol string) (Relay, error)
}

// Ended is how one cluster's half came out.
type Ended struct {
	Cluster string  `json:"cluster"`
	MPI     MPI     `json:"mpi,omitempty"`
	First   int     `json:"first_virtual_rank"`
	Ranks   int     `json:"ranks"`
	World   []int   `json:"world_ranks,omitempty"` // in MPI_COMM_WORLD, if its order is not that of virtual rank
	Status  int     `json:"status"`                // exit status of its native launcher
	Killed  bool    `json:"killed"`                // ended because the job had failed elsewhere
	Seconds float64 `json:"seconds"`
	err     error
	said    string // the first error that one of its ranks printed
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
}

// ErrNotJoined: the processes ended without having joined the job.
var ErrNotJoined = errors.New("ended before all its ranks had joined the job: did they all call MPI_Init? " +
	"A statically linked or set-uid program cannot be joined by preloading (link it with zipper cc or fc); a program that is no MPI program does not join")

// Run starts all clusters of the job at once and waits for them. It returns when everything has ended and
// nothing is left of it; ctx ends it early. The error is set when the job did not run properly for a reason
// of its own (not when the program just exits with a status): then Outcome.Status is not 0 either.
func Run(ctx context.Context, job *Job, o Options) (out Outcome, err error) {
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
	halves, err := job.halves(ctx, o)
	if err != nil {
		return out, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	relay, err := job.startRelay(ctx, halves, o)
	if err != nil {
		return out, err
	}
	if relay != nil {
		defer relay.Close()
	}
	if recorded != nil {
		for _, h := range halves {
			h.Share.Report = recorded.prefix
		}
		defer recorded.clear()
	}
	ended := make(chan Ended)
	stdout, stderr := NewMerger(o.Stdout), NewMerger(o.Stderr)
	for _, h := range halves {
		var stdin io.Reader
		if h.Share.First() {
			stdin = o.Stdin // Open MPI and MPICH hand it to their rank 0
		}
		go func() {
			e := Ended{Cluster: h.Cluster.Name, MPI: h.Cluster.MPI, First: job.Offset(h.Cluster.Name), Ranks: h.Cluster.Ranks}
			if len(job.Order) > 0 {
				e.World = jobenv.WorldRanks(job.Order, job.Layout(), e.Cluster)
			}
			var said complaint
			so, se := stdout.Source(nil), stderr.Source(said.listen)
			e.Status, e.err = h.start(ctx, stdin, so, se)
			so.Close()
			se.Close()
			e.said = said.String()
			e.Seconds = time.Since(begin).Seconds()
			ended <- e
		}()
	}
	w := waiter{job: job, relay: relay, stop: cancel}
	for range halves {
		w.ended(<-ended)
	}
	w.close()
	if relay != nil {
		relay.Settle(job.ID)
	}
	out.Clusters = w.inOrder()
	out.Status, err = w.verdict()
	if relay != nil {
		v := relay.View(job.ID)
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

// halves prepares every cluster's part; those that are started from here are checked.
func (j *Job) halves(ctx context.Context, o Options) ([]*runner, error) {
	var rs []*runner
	for _, c := range j.Clusters {
		r := &runner{Half: Half{Cluster: c, Env: j.Env, Tag: o.Tag, RunDir: o.RunDir}}
		var err error
		if r.rsh, err = j.login(c); err != nil {
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
	return rs, nil
}

// startRelay starts a forwarder if the job names none, and gives every half its addresses.
func (j *Job) startRelay(ctx context.Context, halves []*runner, o Options) (relay Relay, err error) {
	if len(j.Zippers) == 0 && len(halves) > 1 {
		local := true
		for _, h := range halves {
			local = local && h.rsh == nil && h.Cluster.here()
		}
		if relay, err = o.StartRelay(ctx, local, j.Protocol); err != nil {
			return nil, fmt.Errorf("cannot start a forwarder on this host: %w", err)
		}
		z := Zipper{Per: map[string]string{}}
		for _, h := range halves {
			z.Per[h.Cluster.Name] = relay.Address(j.SeenFrom(h.Cluster))
		}
		j.Zippers = []Zipper{z}
	}
	for _, h := range halves {
		h.Share = j.Share(h.Cluster.Name)
	}
	return relay, nil
}

// login is the remote shell's command line up to the host where the cluster's launcher runs; nil: it runs here.
func (j *Job) login(c Cluster) ([]string, error) {
	if c.Launcher != "ssh" {
		return nil, nil
	}
	host := c.Login
	if host == "" {
		if c.Hosts == "" {
			return nil, errors.New("launcher=ssh needs a host to log in to: login=HOST, or hosts=FILE with that host first")
		}
		var err error
		if host, err = firstHost(c.Hosts); err != nil {
			return nil, err
		}
	}
	return append(append([]string{}, j.Rsh...), host), nil
}

// LoginTo is the remote shell's command line up to a host of the cluster: that where its launcher runs or, if that
// is this one, the first of its host file; nil: the cluster is on this host.
func (j *Job) LoginTo(c Cluster) ([]string, error) {
	if c.Launcher != "ssh" && c.Hosts != "" {
		c.Launcher = "ssh"
	}
	return j.login(c)
}

// ZipperPath is the zipper command on the cluster's hosts.
func (c Cluster) ZipperPath() string {
	if c.Zipper != "" {
		return c.Zipper
	}
	if self, err := os.Executable(); err == nil {
		return self
	}
	return "zipper"
}

// SeenFrom is this host's address as the cluster's hosts reach it.
func (j *Job) SeenFrom(c Cluster) string {
	peer := c.Login
	if peer == "" && c.Hosts != "" {
		peer, _ = firstHost(c.Hosts)
	}
	if peer == "" && c.here() {
		return "127.0.0.1"
	}
	if peer = peer[strings.LastIndexByte(peer, '@')+1:]; peer != "" {
		// Connecting a datagram socket sends nothing; it asks the kernel which way the peer is.
		if c, err := net.Dial("udp", net.JoinHostPort(peer, "9")); err == nil {
			defer c.Close()
			if a, ok := c.LocalAddr().(*net.UDPAddr); ok {
				return a.IP.String()
			}
		}
	}
	host, err := os.Hostname()
	if err != nil {
		return "127.0.0.1"
	}
	return host
}
