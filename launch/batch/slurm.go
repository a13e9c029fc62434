package batch

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// command returns the output of a command, which is empty if the command fails.
func command(ctx context.Context, words ...string) string {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.WaitDelay = waitDelay
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return string(out)
}

// slurmCause returns the Cause that Slurm's controller tells.
func (j Job) slurmCause(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, slurmTime)
	defer cancel()
	f := fields(j.run(ctx, "scontrol", "-o", "show", "job", j.ID))
	return j.explain(ctx, j.state(f), f)
}

// OfSlurm returns the Cause of another job of Slurm, from the output of scontrol about that job.
func OfSlurm(id, output string) string {
	j := Job{System: "Slurm", ID: id, get: func(string) string { return "" }}
	f := fields(output)
	return j.explain(context.Background(), j.state(f), f)
}

// state returns the state that the job will have. While the job's processes end Slurm says
// COMPLETING, but has noted the rest: the controller notes it before it has processes killed, so no
// signal comes earlier.
func (j Job) state(f map[string]string) string {
	state := f["JobState"]
	if state != "COMPLETING" {
		return state
	}
	switch reason := f["Reason"]; {
	case reasons[reason] != "":
		return reasons[reason]
	case f["ExitCode"] == "0:125": // a step reports with this status that the kernel has killed for memory
		return "OUT_OF_MEMORY"
	case f["PreemptTime"] != "" && f["PreemptTime"] != "None":
		return "PREEMPTED"
	case number(f["Restarts"]) > number(j.get("SLURM_RESTART_COUNT")): // Slurm counts a restart when it orders it
		return "REQUEUED"
	case reason != "None":
		return reason
	}
	return "CANCELLED" // the job is ended although this process, which belongs to it, still runs
}

// reasons has the clause for each state.
var reasons = map[string]string{
	"TimeLimit":   "TIMEOUT",
	"DeadLine":    "DEADLINE",
	"NodeDown":    "NODE_FAIL",
	"OutOfMemory": "OUT_OF_MEMORY",

	"NonZeroExitCode": "FAILED",
}

// number returns the number in s, or 0 if s is not a number.
func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

func (j Job) explain(ctx context.Context, state string, f map[string]string) string {
	switch state {
	case "CANCELLED":
		return fmt.Sprintf("was cancelled by its batch system (scancel, %v)", j)
	case "TIMEOUT", "DEADLINE":
		return fmt.Sprintf("reached its time limit of %s (%v: ask for more time, as with sbatch --time)",
			f["TimeLimit"], j)
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
	if state != strings.ToUpper(state) { // a reason, not a state
		return fmt.Sprintf("was ended by its batch system (%s, %v)", state, j)
	}
	return "" // the job ended by itself, or has not ended
}

// downNodes returns the nodes of the job that are down.
func (j Job) downNodes(ctx context.Context) (down []string) {
	list := j.get("SLURM_JOB_NODELIST")
	if list == "" {
		return nil
	}
	for line := range strings.Lines(j.run(ctx, "sinfo", "-N", "-h", "-n", list, "-o", "%N %T")) {
		f := strings.Fields(line)
		if len(f) == 2 && (strings.HasPrefix(f[1], "down") || strings.HasPrefix(f[1], "fail") ||
			strings.HasSuffix(f[1], "*")) {
			down = append(down, f[0])
		}
	}
	return down
}
