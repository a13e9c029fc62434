// Package submit gives the halves of a job to the batch systems of their clusters: here, and over a
// remote shell elsewhere. It watches them as one job, with one output and one status, in which no
// half goes on without the others unless the job outlives clusters. At a cluster it needs only a
// small script for /bin/sh.
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
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leidenzipper/zipper/internal/jobenv"
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
	// SurvivesLoss says that the job goes on when another half is lost.
	SurvivesLoss bool
	// ID is the batch job's id, once it is submitted.
	ID string

	// shell runs a script from its standard input, at the cluster.
	shell  []string
	system system
	// name is the name of its batch job, and tried tells that it has been submitted, perhaps
	// without an answer.
	name  string
	tried bool
	// dir is the job's directory in the user's home there.
	dir string
	// cancelled says that Watch ends the batch job.
	cancelled bool
	// read is the number of bytes of its output that have been read.
	read int
	// now is the last answer of its batch system.
	now answer
}

// Name returns the name of the half's batch job, such as "Slurm job 12".
func (h *Half) Name() string { return h.system.name() + " job " + h.ID }

// on returns the place of a half for messages.
func on(host string) string {
	if host == "" {
		return ""
	}
	return " on " + host
}

// Where returns the host to which the half is submitted, or an empty string for this host.
func (h *Half) Where() string {
	if len(h.shell) < 2 {
		return ""
	}
	return h.shell[len(h.shell)-2]
}

// Prepare makes the halves of a job, which names forwarders that run already. gate is a part of the
// batch scripts for halves that begin together, or nil. The error says what to change.
func Prepare(job *spec.Job, timeout time.Duration, gate func(h *Half) string) ([]*Half, error) {
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
		sys, err := systemOf(c.System)
		if err != nil {
			return nil, fmt.Errorf("cluster %s: %w", c.Name, err)
		}
		if i := slices.IndexFunc(c.Batch, func(o string) bool { return !sys.valid(o) }); i >= 0 {
			return nil, fmt.Errorf("cluster %s: batch: %q: want options of %s, one an entry, such as --time=10 for Slurm; a half alone is not put back into the queue", c.Name, c.Batch[i], sys.name())
		}
		h := &Half{Cluster: c, SurvivesLoss: job.OnLoss == jobenv.LossContinues, shell: []string{"sh"}, system: sys,
			name: "zipper-" + job.ID, dir: ".zipper/jobs/" + job.ID}
		rsh, err := job.Login(c)
		if err != nil {
			return nil, fmt.Errorf("cluster %s: %w", c.Name, err)
		}
		if rsh != nil {
			h.shell = append(rsh, "sh")
		}
		h.Env = strings.Join(job.Share(c.Name).Environ(), "\n") + "\n"
		h.Script = h.script(job, gate)
		halves = append(halves, h)
	}
	return halves, nil
}

// script returns the batch script. It becomes zipper join by exec, so that signals reach zipper
// join.
func (h *Half) script(job *spec.Job, gate func(h *Half) string) string {
	c := h.Cluster
	var b strings.Builder
	b.WriteString("#!/bin/sh\n" + h.system.header(h.name, "$HOME/"+h.dir+"/"+c.Name+".out", c.Ranks, c.Batch, gate != nil))
	for _, m := range []map[string]string{job.Env, c.Env} {
		for _, k := range sorted(m) {
			fmt.Fprintf(&b, "export %s=%s\n", k, quote(m[k]))
		}
	}
	if c.Dir != "" {
		fmt.Fprintf(&b, "cd %s || exit\n", quote(c.Dir))
	}
	if gate != nil {
		b.WriteString(gate(h))
	}
	fmt.Fprintf(&b, "exec %s join --env \"$HOME/%s/%s.env\"", h.zipper(), h.dir, c.Name)
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

// zipper returns the path of the zipper command for the batch job's shell, which replaces {arch}.
func (h *Half) zipper() string {
	return strings.ReplaceAll(quote(h.Cluster.ZipperPath()), spec.Arch, `'"$(uname -m)"'`)
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

// Submit gives the half to its batch system, where it waits for at least a time.
func (h *Half) Submit(ctx context.Context, wait time.Duration) error {
	name := h.Cluster.Name
	h.tried = true
	out, err := h.here(ctx, fmt.Sprintf("set -eu\numask 077\nd=$HOME/%s\nmkdir -p \"$d\"\n", h.dir)+
		document(name+".env", h.Env)+document(name+".sh", h.Script)+document(name+".go", "wait\n")+
		"cd\n"+h.system.submit(name+".sh", name+".out", wait)+"\n")
	if err != nil {
		return err
	}
	id, ok := h.system.id(out)
	if !ok {
		return fmt.Errorf("cluster %s: %s printed %q, which is not a job's id", name, h.system.name(), out)
	}
	h.ID = id
	return nil
}

const outputMark = "\nZIPPER-OUTPUT\n"

// look asks for the half's state and passes on its new output.
func (h *Half) look(ctx context.Context, to io.Writer) error {
	out, err := h.here(ctx, fmt.Sprintf("%s\nprintf '%s'\ntail -c +%d \"$HOME/%s/%s.out\" 2>/dev/null\n:\n",
		h.system.show(h.ID, ""), strings.ReplaceAll(outputMark, "\n", `\n`), h.read+1, h.dir, h.Cluster.Name))
	if err != nil {
		return err
	}
	text, printed, ok := strings.Cut(out, outputMark)
	if !ok {
		return fmt.Errorf("cluster %s: no answer about job %s: %s", h.Cluster.Name, h.ID, out)
	}
	h.read += len(printed)
	_, _ = io.WriteString(to, printed)
	a, err := h.system.read(h.ID, text)
	if err != nil {
		return fmt.Errorf("cluster %s: %w", h.Cluster.Name, err)
	}
	h.now = a
	return nil
}

// cancel ends the batch job.
func (h *Half) cancel() error {
	_, err := h.here(context.Background(), h.system.cancel(h.ID)+"\n")
	return err
}

// clear removes the half's files at its cluster.
func (h *Half) clear() error {
	_, err := h.here(context.Background(),
		fmt.Sprintf("d=$HOME/%s\ncd \"$d\" && rm -f %s.env %[2]s.sh %[2]s.out %[2]s.go\ncd\nrmdir \"$d\" 2>/dev/null\n:\n",
			h.dir, h.Cluster.Name))
	return err
}

// Cancel cancels the halves that were submitted, and removes their files. A batch system that does
// not answer is asked again for a minute. The error names the jobs that are left.
func Cancel(halves []*Half) error {
	errs := make([]error, len(halves))
	var all sync.WaitGroup
	for i, h := range halves {
		all.Go(func() { errs[i] = errors.Join(h.end(), h.clear()) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// end cancels the batch job and waits until it has left the queue and its nodes.
func (h *Half) end() (err error) {
	if h.ID == "" {
		return h.endNamed()
	}
	for until := time.Now().Add(endTime); time.Now().Before(until); time.Sleep(lookTime) {
		if err = h.look(context.Background(), io.Discard); err == nil && h.now.phase == over {
			return nil
		}
		err = errors.Join(err, h.cancel())
	}
	return fmt.Errorf("cluster %s: %s is perhaps left%s: cancel it there (%s): %w", h.Cluster.Name, h.Name(), on(h.Where()),
		h.system.cancel(h.ID), cmp.Or(err, errors.New("it does not end")))
}

// endNamed cancels the batch job of a half whose submission had no answer. The batch system may
// have got the request all the same, and may carry it out after the first cancellation.
func (h *Half) endNamed() (err error) {
	if !h.tried {
		return nil
	}
	cancel := h.system.cancelNamed(h.name)
	answers := 0
	for until := time.Now().Add(endTime); time.Now().Before(until); time.Sleep(lookTime) {
		if _, err = h.here(context.Background(), cancel+"\n"); err == nil {
			if answers++; answers == 2 {
				return nil
			}
		}
	}
	return fmt.Errorf("cluster %s: job %s is perhaps in the queue%s: cancel it there (%s), or it ends by itself when it starts: %w",
		h.Cluster.Name, h.name, on(h.Where()), cancel, cmp.Or(err, errors.New("it is not known")))
}

// Watch waits for the end of all halves and passes their output on. It returns the job's exit
// status, and the reason if that is not 0. The first half that fails has the others cancelled: at
// once if they wait in a queue, else after the time in which they end by themselves. In a job that
// goes on without lost clusters, halves that have begun are not cancelled, and one that succeeds is
// enough for the job's success. tell reports the failure to the job's forwarders, for a half that
// could not do so, because it never began or had no time. The end of ctx cancels all halves.
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
		if h.now.code == 0 || first != nil && !h.SurvivesLoss {
			continue
		}
		if first == nil {
			first = h
			fail()
		}
		tell(h.Cluster.Name, cmp.Or(h.now.why, "ended as "+h.Name()+": "+h.now.state))
	}
	for _, h := range halves {
		err = errors.Join(err, h.clear())
	}
	if first == nil {
		return 0, err
	}
	if first.SurvivesLoss && slices.ContainsFunc(halves, func(h *Half) bool { return h.now.code == 0 }) {
		for _, h := range halves {
			if h.now.code != 0 {
				fmt.Fprintf(os.Stderr, "zipper: cluster %s is lost: %s: %s; the job went on without it\n", h.Cluster.Name,
					h.Name(), h.now.state)
			}
		}
		return 0, err
	}
	status = first.now.code
	for _, h := range halves {
		if status == 1 && !h.cancelled { // 1 says least, but what Watch has ended did not fail
			status = max(status, h.now.code)
		}
	}
	return status, errors.Join(fmt.Errorf("cluster %s: %s: %s", first.Cluster.Name, first.Name(), first.now.state),
		err)
}

// watch follows one half until it is over.
func (h *Half) watch(ctx context.Context, failed <-chan struct{}, out io.Writer) {
	taken := false // The batch system has taken the cancellation.
	refused, unanswered := 0, 0
	var grace <-chan time.Time
	stop := ctx.Done()
	for {
		looking, done := context.WithTimeout(context.Background(), shellTime)
		err := h.look(looking, out)
		done()
		if err != nil {
			if unanswered++; unanswered == maxUnanswered {
				fmt.Fprintln(os.Stderr, "zipper:", err)
				h.now = answer{state: "OUT OF REACH", phase: over, code: 1}
				return
			}
		} else {
			unanswered = 0
		}
		if h.now.phase == over {
			return
		}
		if h.cancelled && !taken {
			err := h.cancel()
			if taken = err == nil; taken {
				continue
			}
			if refused++; refused == 1 {
				fmt.Fprintf(os.Stderr, "zipper: cluster %s: cannot cancel %s, trying again: %v\n", h.Cluster.Name, h.Name(), err)
			}
		}
		select {
		case <-stop:
			stop, h.cancelled = nil, true
		case <-failed:
			failed = nil
			h.cancelled = h.cancelled || h.now.phase == queued
			if !h.SurvivesLoss {
				grace = time.After(graceTime)
			}
		case <-grace:
			h.cancelled = true
		case <-time.After(lookTime):
		}
	}
}
