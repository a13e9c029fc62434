package batch

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
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

// slurmCause asks the controller.
func (j Job) slurmCause(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, slurmTime)
	defer cancel()
	f := fields(j.run(ctx, "scontrol", "-o", "show", "job", j.ID))
	return j.explain(ctx, j.state(f), f)
}

// OfSlurm is Cause for another job of Slurm, of which scontrol, there, has said this.
func OfSlurm(id, said string) string {
	j := Job{System: "Slurm", ID: id, get: func(string) string { return "" }}
	f := fields(said)
	return j.explain(context.Background(), j.state(f), f)
}

// state is the one that the job will have. While its processes end Slurm says COMPLETING instead,
// but has noted all else: the controller does so before it has anything killed, so no signal comes
// before.
func (j Job) state(f map[string]string) string {
	state := f["JobState"]
	if state != "COMPLETING" {
		return state
	}
	switch reason := f["Reason"]; {
	case reasons[reason] != "":
		return reasons[reason]
	case f["ExitCode"] == "0:125": // how a step says that the kernel has killed for memory
		return "OUT_OF_MEMORY"
	case f["PreemptTime"] != "" && f["PreemptTime"] != "None":
		return "PREEMPTED"
	case number(f["Restarts"]) > number(j.get("SLURM_RESTART_COUNT")): // it counts from the order on
		return "REQUEUED"
	case reason != "None":
		return reason
	}
	return "CANCELLED" // it is ended although this process, which belongs to it, is here
}

// reasons are those that go with a state.
var reasons = map[string]string{
	"TimeLimit":   "TIMEOUT",
	"DeadLine":    "DEADLINE",
	"NodeDown":    "NODE_FAIL",
	"OutOfMemory": "OUT_OF_MEMORY",

	"NonZeroExitCode": "FAILED",
}

// number is 0 for what is none.
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
	if state != strings.ToUpper(state) { // a reason
		return fmt.Sprintf("was ended by its batch system (%s, %v)", state, j)
	}
	return "" // by itself, or not at all
}

// downNodes are those of the job's nodes that are down.
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
