// Package batch knows what a batch system says of the job that this process is in: which it is, and
// why it ends. It asks the system's own commands and the kernel, and changes nothing. Every
// question is bounded in time; what cannot be found out is empty.
package batch

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// Job is one of a batch system's.
type Job struct {
	System string // "Slurm", "PBS", "LSF" or "Grid Engine"
	ID     string

	get    func(string) string
	run    func(ctx context.Context, command ...string) string
	killed killed
}

// ids are the variables by which batch systems tell a job its id; each with others that show whose
// it is.
var ids = []struct{ system, id, sign string }{
	{"Slurm", "SLURM_JOB_ID", "SLURM_JOB_ID"},
	{"PBS", "PBS_JOBID", "PBS_JOBID"},
	{"LSF", "LSB_JOBID", "LSB_JOBID"},
	{"Grid Engine", "JOB_ID", "SGE_ROOT"},
}

// Here gives the batch job that this process is in; ok: there is one.
func Here() (j Job, ok bool) { return from(os.Getenv, command, readKilled()) }

func from(get func(string) string, run func(context.Context, ...string) string, k killed) (Job, bool) {
	for _, s := range ids {
		if id := get(s.id); id != "" && get(s.sign) != "" {
			return Job{System: s.system, ID: id, get: get, run: run, killed: k}, true
		}
	}
	return Job{}, false
}

// String is "Slurm job 12".
func (j Job) String() string { return fmt.Sprintf("%s job %s", j.System, j.ID) }

// Cause says why the batch system has ended the job, or one of its processes, as a clause without
// its subject: "was cancelled by its batch system (scancel, Slurm job 12)". Empty: not the batch
// system, or it does not say. It takes at most the time that ctx has.
func (j Job) Cause(ctx context.Context) string {
	if j.System == "Slurm" {
		if s := j.slurmCause(ctx); s != "" {
			return s
		}
	}
	if n := j.killed.since(); n > 0 {
		return fmt.Sprintf("ran out of memory: the kernel has killed %d of its processes (%v: ask for more memory, as with sbatch --mem)", n, j)
	}
	return ""
}

// Ending is Cause for a process that a signal has come to: a moment later the batch system may say
// more.
func (j Job) Ending(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, endingTime)
	defer cancel()
	for {
		if s := j.Cause(ctx); s != "" || j.System != "Slurm" {
			return s
		}
		select {
		case <-ctx.Done():
			return ""
		case <-time.After(askAgain):
		}
	}
}

// Signalled is what a signal to the launcher itself means, if Cause says nothing.
func (j Job) Signalled(signal string) string {
	if j.ID == "" {
		return "was ended by " + signal
	}
	return fmt.Sprintf("was ended by %s from its batch system (%v)", signal, j)
}

// Suspended is what a stop signal means.
func (j Job) Suspended() string {
	if j.ID == "" {
		return "is stopped (SIGTSTP)"
	}
	return fmt.Sprintf("is suspended by its batch system (%v)", j)
}

func fields(text string) map[string]string {
	m := map[string]string{}
	for f := range strings.FieldsSeq(text) {
		if k, v, ok := strings.Cut(f, "="); ok {
			m[k] = v
		}
	}
	return m
}
