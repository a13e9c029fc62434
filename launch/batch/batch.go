// Package batch asks a batch system about the job that this process is in: which job it is, and why
// it ends. It uses the system's own commands and the kernel, and changes nothing. Every question
// has a time limit; an answer that cannot be found is empty.
package batch

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// Job is a job of a batch system.
type Job struct {
	System string // "Slurm", "PBS", "LSF" or "Grid Engine"
	ID     string

	get    func(string) string
	run    func(ctx context.Context, command ...string) string
	killed killed
}

// ids are the variables by which batch systems tell a job its id. sign is a variable that only this
// system sets, for ids whose name several systems share.
var ids = []struct{ system, id, sign string }{
	{"Slurm", "SLURM_JOB_ID", "SLURM_JOB_ID"},
	{"PBS", "PBS_JOBID", "PBS_JOBID"},
	{"LSF", "LSB_JOBID", "LSB_JOBID"},
	{"Grid Engine", "JOB_ID", "SGE_ROOT"},
}

// Here returns the batch job that this process is in; ok is false if it is in none.
func Here() (j Job, ok bool) { return from(os.Getenv, command, readKilled()) }

func from(get func(string) string, run func(context.Context, ...string) string, k killed) (Job, bool) {
	for _, s := range ids {
		if id := get(s.id); id != "" && get(s.sign) != "" {
			return Job{System: s.system, ID: id, get: get, run: run, killed: k}, true
		}
	}
	return Job{}, false
}

// String returns the job's name, such as "Slurm job 12".
func (j Job) String() string { return fmt.Sprintf("%s job %s", j.System, j.ID) }

// Cause returns why the batch system has ended the job, or one of its processes, as a clause
// without a subject: "was cancelled by its batch system (scancel, Slurm job 12)". It returns an
// empty string if the batch system has not ended it, or does not say so. It takes at most the time
// that ctx has.
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

// Ending returns the Cause for a process that has received a signal. It asks repeatedly for a short
// time, because the batch system may say more a moment later.
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

// Signalled returns the meaning of a signal to the launcher itself, for a job of which Cause says
// nothing.
func (j Job) Signalled(signal string) string {
	if j.ID == "" {
		return "was ended by " + signal
	}
	return fmt.Sprintf("was ended by %s from its batch system (%v)", signal, j)
}

// Suspended returns the meaning of a stop signal.
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
