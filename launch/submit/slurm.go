package submit

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/leidenzipper/zipper/launch/batch"
)

// slurm is the batch system of that name.
type slurm struct{}

func (slurm) name() string { return "Slurm" }

func (slurm) valid(o string) bool {
	return o != "--requeue" && strings.HasPrefix(o, "-") && !strings.ContainsAny(o, "\n")
}

func (slurm) header(name, _ string, ranks int, options []string, again bool) string {
	var b strings.Builder
	requeue := "--no-requeue"
	if again {
		requeue = "--requeue"
	}
	for _, o := range append([]string{requeue, "--job-name=" + name, fmt.Sprintf("--ntasks=%d", ranks)}, options...) {
		fmt.Fprintf(&b, "#SBATCH %s\n", o)
	}
	return b.String()
}

func (slurm) submit(script, output string, wait time.Duration) string {
	begin := ""
	if wait > 0 {
		begin = fmt.Sprintf(" --open-mode=append --begin=now+%d", seconds(wait))
	}
	return fmt.Sprintf("sbatch --parsable%s --output=\"$d/%s\" \"$d/%s\"", begin, output, script)
}

var number = regexp.MustCompile(`^[0-9]+$`)

func (slurm) id(output string) (string, bool) {
	id, _, _ := strings.Cut(strings.TrimSpace(output), ";")
	return id, number.MatchString(id)
}

// show asks for an estimate in two ways: squeue has that of the last plan, for a job that is not
// deferred, and sbatch one that knows running jobs only, for one that is.
func (slurm) show(id, script string) string {
	show := "scontrol -o show job " + id + " 2>&1\n"
	if script != "" {
		show += "export SLURM_TIME_FORMAT=standard\necho ZIPPER-PLAN $(squeue --start -h -j " + id + " -o %S 2>/dev/null)\n" +
			"sbatch --test-only \"$d/" + script + "\" 2>&1\n"
	}
	return show + ":"
}

var (
	slurmState  = regexp.MustCompile(`\bJobState=([A-Z_]+)`)
	slurmStatus = regexp.MustCompile(`\bExitCode=([0-9]+):([0-9]+)`)
	slurmReason = regexp.MustCompile(`\bReason=([A-Za-z_]+)`)
	slurmStart  = regexp.MustCompile(`\bStartTime=(\S+)`)
	slurmBegin  = regexp.MustCompile(`\bEligibleTime=(\S+)`)
	slurmPlan   = regexp.MustCompile(`ZIPPER-PLAN (\S+)`)
	slurmTest   = regexp.MustCompile(`Job [0-9]+ to start at (\S+)`)
)

// first returns the first group that a pattern matches.
func first(pattern *regexp.Regexp, text string) string {
	if m := pattern.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

const slurmTime = "2006-01-02T15:04:05"

func (slurm) read(id, text string) (a answer, err error) {
	switch a.state = first(slurmState, text); {
	case a.state != "":
	case strings.Contains(text, "Invalid job id"): // it ended long ago
		a.state = "FORGOTTEN"
	default:
		return a, fmt.Errorf("no state of job %s: %s", id, strings.TrimSpace(text))
	}
	switch a.state {
	case "PENDING", "REQUEUED":
		a.phase = queued
		a.reason = first(slurmReason, text)
		a.held = strings.HasPrefix(a.reason, "JobHeld")
		a.begin = localTime(slurmTime, first(slurmBegin, text))
		if a.start = localTime(slurmTime, first(slurmPlan, text)); a.start == 0 || a.start == a.begin {
			a.start = localTime(slurmTime, first(slurmTest, text))
		}
	case "RUNNING", "CONFIGURING", "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING":
		a.phase = started
		a.start = localTime(slurmTime, first(slurmStart, text))
	case "COMPLETING", "STAGE_OUT":
		a.phase = changing
	default:
		a.phase = over
		a.code = code(a.state, slurmStatus.FindStringSubmatch(text))
		a.why = batch.OfSlurm(id, text)
	}
	return a, nil
}

// code returns the exit status of a job in a state, from the match of slurmStatus.
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

func (slurm) begin(id string, wait time.Duration) string {
	return fmt.Sprintf("scontrol update JobId=%s StartTime=now+%d", id, seconds(wait))
}

func (s slurm) requeue(id, _, _ string, wait time.Duration) string {
	// The begin time is set at the next look if the job's end takes a while.
	return fmt.Sprintf("scontrol requeue %s && { %s 2>/dev/null || :; }", id, s.begin(id, wait))
}

func (slurm) keep(id string) string { return "scontrol update JobId=" + id + " Requeue=0" }

func (slurm) cancel(id string) string { return "scancel " + id }

func (slurm) cancelNamed(name string) string {
	return "scancel --user=\"$(id -un)\" --name=" + name
}

func (slurm) reserve(id, name string, wait time.Duration) string {
	return fmt.Sprintf(`set -- $(squeue -h -j %s -o '%%D %%l %%u %%P')
scontrol create reservation Reservation=%s StartTime=now+%d NodeCnt=$1 Duration=$2 Users=$3 PartitionName=$4 &&
  { scontrol update JobId=%[1]s ReservationName=%[2]s || { scontrol delete ReservationName=%[2]s; false; }; }`,
		id, name, seconds(wait))
}

func (slurm) unreserve(id, name string) string {
	return fmt.Sprintf("scontrol update JobId=%s ReservationName= 2>/dev/null; scontrol delete ReservationName=%s", id, name)
}
