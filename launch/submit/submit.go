// Package submit gives the halves of a job to the batch systems of their clusters: to Slurm here,
// and over a remote shell elsewhere. It watches them as one job, with one output and one status, in
// which no half goes on without the others. At a cluster it needs only a small script for /bin/sh.
package submit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leidenzipper/zipper/launch/batch"
	"github.com/leidenzipper/zipper/launch/output"
	"github.com/leidenzipper/zipper/launch/spec"
)

// Half is one cluster's part of a job: a batch job.
type Half struct {
	Cluster spec.Cluster
	// Env is the description of the job for its processes, in lines of NAME=VALUE; it is secret.
	Env string
	// Script is the script for sbatch.
	Script string
	// ID is the batch job's id, once it is submitted.
	ID string

	// shell runs a script from its standard input, at the cluster.
	shell []string
	// dir is the job's directory in the user's home there.
	dir string
	// read is the number of bytes of its output that have been read.
	read  int
	state string
	// why is the batch system's reason for its end, as a clause without a subject; it is empty if
	// there is none.
	why  string
	code int
}

// Where returns the host to which the half is submitted, or an empty string for this host.
func (h *Half) Where() string {
	if len(h.shell) < 2 {
		return ""
	}
	return h.shell[len(h.shell)-2]
}

// Prepare makes the halves of a job, which names forwarders that run already. The error says what
// to change.
func Prepare(job *spec.Job, timeout time.Duration) ([]*Half, error) {
	if job.Timeout == 0 {
		job.Timeout = timeout
	}
	if err := job.Normalize(); err != nil {
		return nil, err
	}
	if len(job.Zippers) == 0 {
		return nil, errors.New("zipper submit needs a forwarder that runs already: name it under zippers: (batch jobs begin when they can)")
	}
	var halves []*Half
	for _, c := range job.Clusters {
		if c.Hosts != "" {
			return nil, fmt.Errorf("cluster %s: hosts: the batch system chooses them; leave it out, or say which under batch: (--nodelist)", c.Name)
		}
		if i := slices.IndexFunc(c.Batch, func(o string) bool {
			return o == "--requeue" || !strings.HasPrefix(o, "-") || strings.ContainsAny(o, "\n")
		}); i >= 0 {
			return nil, fmt.Errorf("cluster %s: batch: %q: want options of sbatch, one an entry, such as --time=10; a half alone is not put back into the queue", c.Name, c.Batch[i])
		}
		h := &Half{Cluster: c, shell: []string{"sh"}, dir: ".zipper/jobs/" + job.ID}
		rsh, err := job.Login(c)
		if err != nil {
			return nil, fmt.Errorf("cluster %s: %w", c.Name, err)
		}
		if rsh != nil {
			h.shell = append(rsh, "sh")
		}
		h.Env = strings.Join(job.Share(c.Name).Environ(), "\n") + "\n"
		h.Script = script(job, c, h.dir)
		halves = append(halves, h)
	}
	return halves, nil
}

// script returns the batch script of a cluster. It becomes zipper join by exec, so that signals
// reach zipper join.
func script(job *spec.Job, c spec.Cluster, dir string) string {
	var b strings.Builder
	b.WriteString("#!/bin/sh\n")
	for _, o := range append([]string{"--no-requeue", "--job-name=zipper-" + job.ID,
		fmt.Sprintf("--ntasks=%d", c.Ranks)}, c.Batch...) {
		fmt.Fprintf(&b, "#SBATCH %s\n", o)
	}
	for _, m := range []map[string]string{job.Env, c.Env} {
		for _, k := range sorted(m) {
			fmt.Fprintf(&b, "export %s=%s\n", k, quote(m[k]))
		}
	}
	if c.Dir != "" {
		fmt.Fprintf(&b, "cd %s || exit\n", quote(c.Dir))
	}
	fmt.Fprintf(&b, "exec %s join --env \"$HOME/%s/%s.env\"", quote(c.ZipperPath()), dir, c.Name)
	if c.MPI != "" {
		fmt.Fprintf(&b, " --mpi %s", string(c.MPI))
	}
	if c.Mpirun != "" {
		fmt.Fprintf(&b, " --mpirun %s", quote(c.Mpirun))
	}
	for _, a := range c.Args {
		fmt.Fprintf(&b, " --arg %s", quote(a))
	}
	b.WriteString(" --")
	for _, w := range c.Program {
		b.WriteString(" " + quote(w))
	}
	b.WriteString("\n")
	return b.String()
}

func sorted(m map[string]string) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// quote quotes any text as one word for a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// here runs a script at the half's cluster and returns its output.
func (h *Half) here(ctx context.Context, script string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, shellTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.shell[0], h.shell[1:]...)
	cmd.Stdin = strings.NewReader(script)
	cmd.WaitDelay = shellDelay
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cluster %s: %s: %w: %s", h.Cluster.Name, strings.Join(h.shell, " "), err,
			strings.TrimSpace(errs.String()))
	}
	return string(out), nil
}

// document returns a here-document of the shell with any text.
func document(file, text string) string {
	const end = "END-OF-WHAT-ZIPPER-SUBMITS"
	return fmt.Sprintf("cat >\"$d/%s\" <<'%s'\n%s%s\n", file, end, text, end)
}

// Submit gives the half to its batch system.
func (h *Half) Submit(ctx context.Context) error {
	name := h.Cluster.Name
	out, err := h.here(ctx, fmt.Sprintf("set -eu\numask 077\nd=$HOME/%s\nmkdir -p \"$d\"\n", h.dir)+
		document(name+".env", h.Env)+document(name+".sh", h.Script)+
		fmt.Sprintf("cd\nsbatch --parsable --output=\"$d/%s.out\" \"$d/%[1]s.sh\"\n", name))
	if err != nil {
		return err
	}
	id, _, _ := strings.Cut(strings.TrimSpace(out), ";")
	if !number.MatchString(id) {
		return fmt.Errorf("cluster %s: sbatch printed %q, which is not a job's id", name, out)
	}
	h.ID = id
	return nil
}

var (
	number   = regexp.MustCompile(`^[0-9]+$`)
	stateOf  = regexp.MustCompile(`\bJobState=([A-Z_]+)`)
	statusOf = regexp.MustCompile(`\bExitCode=([0-9]+):([0-9]+)`)
)

const outputMark = "\nZIPPER-OUTPUT\n"

// look asks for the half's state and passes on its new output.
func (h *Half) look(ctx context.Context, to io.Writer) error {
	out, err := h.here(ctx, fmt.Sprintf("scontrol -o show job %s 2>&1\nprintf '%s'\ntail -c +%d \"$HOME/%s/%s.out\" 2>/dev/null\n:\n",
		h.ID, strings.ReplaceAll(outputMark, "\n", `\n`), h.read+1, h.dir, h.Cluster.Name))
	if err != nil {
		return err
	}
	answer, printed, ok := strings.Cut(out, outputMark)
	if !ok {
		return fmt.Errorf("cluster %s: no answer about job %s: %s", h.Cluster.Name, h.ID, out)
	}
	h.read += len(printed)
	_, _ = io.WriteString(to, printed)
	m := stateOf.FindStringSubmatch(answer)
	switch {
	case m != nil:
		h.state = m[1]
	case strings.Contains(answer, "Invalid job id"): // it ended long ago
		h.state = "FORGOTTEN"
	default:
		return fmt.Errorf("cluster %s: no state of job %s: %s", h.Cluster.Name, h.ID, strings.TrimSpace(answer))
	}
	h.code = code(h.state, statusOf.FindStringSubmatch(answer))
	h.why = batch.OfSlurm(h.ID, answer)
	return nil
}

func code(state string, m []string) (n int) {
	if m != nil {
		var signal int
		_, _ = fmt.Sscan(m[1], &n)
		_, _ = fmt.Sscan(m[2], &signal)
		if n == 0 && signal > 0 {
			n = 128 + signal
		}
	}
	if n == 0 && state != "COMPLETED" {
		n = 1
	}
	return n
}

// over tells whether the batch job has ended.
func (h *Half) over() bool {
	switch h.state {
	case "", "PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STOPPED", "STAGE_OUT", "SIGNALING",
		"RESIZING", "REQUEUED":
		return false
	}
	return true
}

// cancel ends the batch job.
func (h *Half) cancel() error {
	_, err := h.here(context.Background(), "scancel "+h.ID+"\n")
	return err
}

// clear removes the half's files at its cluster.
func (h *Half) clear() error {
	_, err := h.here(context.Background(),
		fmt.Sprintf("d=$HOME/%s\ncd \"$d\" && rm -f %s.env %[2]s.sh %[2]s.out\ncd\nrmdir \"$d\" 2>/dev/null\n:\n",
			h.dir, h.Cluster.Name))
	return err
}

// Cancel cancels the halves that were submitted when another one could not be.
func Cancel(halves []*Half) (err error) {
	for _, h := range halves {
		if h.ID != "" {
			err = errors.Join(err, h.cancel())
		}
		err = errors.Join(err, h.clear())
	}
	return err
}

// Watch waits for the end of all halves and passes their output on. It returns the job's exit
// status, and the reason if that is not 0. The first half that fails has the others cancelled: at
// once if they wait in a queue, else after the time in which they end by themselves. tell reports
// the failure to the job's forwarders, for a half that could not do so, because it never began or
// had no time. The end of ctx cancels all halves.
func Watch(ctx context.Context, halves []*Half, stdout io.Writer, tell func(cluster, why string)) (status int,
	err error) {
	merged := output.NewMerger(stdout)
	ended := make(chan *Half)
	failed := make(chan struct{})
	fail := sync.OnceFunc(func() { close(failed) })
	for _, h := range halves {
		go func() {
			out := merged.Source(nil)
			h.watch(ctx, failed, out)
			out.Close()
			ended <- h
		}()
	}
	var first *Half
	for range halves {
		h := <-ended
		if h.code != 0 && first == nil {
			first = h
			fail()
			tell(h.Cluster.Name, cmp.Or(h.why, "ended as Slurm job "+h.ID+": "+h.state))
		}
	}
	for _, h := range halves {
		err = errors.Join(err, h.clear())
	}
	if first == nil {
		return 0, err
	}
	status = first.code
	for _, h := range halves {
		if status == 1 {
			status = max(status, h.code)
		}
	}
	return status, errors.Join(fmt.Errorf("cluster %s: Slurm job %s: %s", first.Cluster.Name, first.ID, first.state),
		err)
}

// watch follows one half until it is over.
func (h *Half) watch(ctx context.Context, failed <-chan struct{}, out io.Writer) {
	cancelled, unanswered := false, 0
	cancel := func() {
		if !cancelled {
			cancelled = true
			_ = h.cancel() // the next look shows whether it has ended
		}
	}
	var grace <-chan time.Time
	stop := ctx.Done()
	for {
		looking, done := context.WithTimeout(context.Background(), shellTime)
		err := h.look(looking, out)
		done()
		if err != nil {
			if unanswered++; unanswered == maxUnanswered {
				fmt.Fprintln(os.Stderr, "zipper:", err)
				h.state, h.code = "OUT OF REACH", 1
				return
			}
		} else {
			unanswered = 0
		}
		if h.over() {
			return
		}
		select {
		case <-stop:
			stop = nil
			cancel()
		case <-failed:
			failed = nil
			if h.state == "PENDING" {
				cancel()
			}
			grace = time.After(graceTime)
		case <-grace:
			cancel()
		case <-time.After(lookTime):
		}
	}
}
