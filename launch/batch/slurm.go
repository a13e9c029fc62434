package batch

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// command is what a command prints; empty if it fails.
func command(ctx context.Context, words ...string) string {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.WaitDelay = waitDelay
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return string(out)
}

// slurmCause asks the controller. While the job's processes are ending it says COMPLETING, which
// hides the state that the job will have; newer ones, and their JSON, say both.
func (j Job) slurmCause(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, slurmTime)
	defer cancel()
	f := fields(j.run(ctx, "scontrol", "-o", "show", "job", j.ID))
	state := f["JobState"]
	if state == "COMPLETING" || state == "" {
		if s := j.baseState(ctx); s != "" {
			state = s
		}
	}
	if state == "COMPLETING" {
		state = j.guess(ctx, f)
	}
	return j.explain(ctx, state, f)
}

// baseState is the state beside COMPLETING, from squeue's JSON: a word, or since 23.11 several.
func (j Job) baseState(ctx context.Context) string {
	var all struct {
		Jobs []struct {
			ID    int             `json:"job_id"`
			State json.RawMessage `json:"job_state"`
		} `json:"jobs"`
	}
	if json.Unmarshal([]byte(j.run(ctx, "squeue", "--json", "-j", j.ID)), &all) != nil {
		return "" // it was built without
	}
	for _, job := range all.Jobs {
		if strconv.Itoa(job.ID) != j.ID {
			continue
		}
		var one string
		var several []string
		if json.Unmarshal(job.State, &one) != nil && json.Unmarshal(job.State, &several) != nil {
			return ""
		}
		for _, s := range append(several, one) {
			if s != "" && s != "COMPLETING" {
				return s
			}
		}
	}
	return ""
}

// guess tells the state of a job that is completing from what else is said of it.
func (j Job) guess(ctx context.Context, f map[string]string) string {
	limit, limited := duration(f["TimeLimit"])
	ran, _ := duration(f["RunTime"])
	switch {
	case f["ExitCode"] == "0:125" || strings.Contains(f["Reason"], "OutOfMemory"):
		return "OUT_OF_MEMORY"
	case f["PreemptTime"] != "" && f["PreemptTime"] != "None":
		return "PREEMPTED"
	case limited && ran >= limit:
		return "TIMEOUT"
	case len(j.downNodes(ctx)) > 0:
		return "NODE_FAIL"
	}
	return "CANCELLED" // it is ended although this process, which belongs to it, is here
}

func (j Job) explain(ctx context.Context, state string, f map[string]string) string {
	switch state {
	case "CANCELLED":
		return fmt.Sprintf("was cancelled by its batch system (scancel, %v)", j)
	case "TIMEOUT", "DEADLINE":
		return fmt.Sprintf("reached its time limit of %s (%v: ask for more time, as with sbatch --time)", f["TimeLimit"], j)
	case "NODE_FAIL", "BOOT_FAIL":
		node := ""
		if down := j.downNodes(ctx); len(down) > 0 {
			node = " " + strings.Join(down, ", ")
		}
		return fmt.Sprintf("lost its node%s (%v)", node, j)
	case "OUT_OF_MEMORY":
		return fmt.Sprintf("ran out of memory (%v: ask for more, as with sbatch --mem)", j)
	case "PREEMPTED":
		return fmt.Sprintf("was preempted by another job (%v)", j)
	case "REQUEUED", "PENDING":
		return fmt.Sprintf("was put back into the queue (%v: submit halves with sbatch --no-requeue)", j)
	}
	return ""
}

// downNodes are those of the job's nodes that are down.
func (j Job) downNodes(ctx context.Context) (down []string) {
	list := j.get("SLURM_JOB_NODELIST")
	if list == "" {
		return nil
	}
	for line := range strings.Lines(j.run(ctx, "sinfo", "-N", "-h", "-n", list, "-o", "%N %T")) {
		f := strings.Fields(line)
		if len(f) == 2 && (strings.HasPrefix(f[1], "down") || strings.HasPrefix(f[1], "fail") || strings.HasSuffix(f[1], "*")) {
			down = append(down, f[0])
		}
	}
	return down
}

// duration reads Slurm's [DAYS-]HH:MM:SS; ok is false for UNLIMITED.
func duration(s string) (d time.Duration, ok bool) {
	days, rest, some := strings.Cut(s, "-")
	if !some {
		days, rest = "0", s
	}
	n, err := strconv.Atoi(days)
	parts := strings.Split(rest, ":")
	if err != nil || len(parts) != 3 {
		return 0, false
	}
	d = time.Duration(n) * 24 * time.Hour
	for i, unit := range []time.Duration{time.Hour, time.Minute, time.Second} {
		k, err := strconv.Atoi(parts[i])
		if err != nil {
			return 0, false
		}
		d += time.Duration(k) * unit
	}
	return d, true
}
