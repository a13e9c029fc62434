package slurm

import (
	"cmp"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// endsIn is the longest time until the other half has ended.
const endsIn = 5 * time.Second

// ending is a way in which a half ends.
type ending struct {
	name string
	// program is that of the half that ends, if it is not the usual one.
	program string
	// usual is the program of both halves, if it is not a long calculation.
	usual string
	// options are those of the ending half's batch job.
	options []string
	// end ends the half, once the job runs, and returns the time of the end; nil: the half ends by
	// itself.
	end func(half Job) (at time.Time)
	// state is that of the ending half's batch job.
	state string
	// cause is in the other half's output, after "cluster NAME ".
	cause string
	// env is that of both halves.
	env map[string]string
}

// TestEnds checks that however a half ends, with either MPI library, the other one ends within
// seconds and names the cause.
func TestEnds(t *testing.T) {
	long(t)
	s := site(t)
	a, b := s.Cluster("a"), s.Cluster("b")
	limited := a.limitMemory(600<<20) && b.limitMemory(600<<20)
	const patience = 3 * time.Second
	hog := s.path("hog-{mpi}") + " "
	for _, e := range []ending{
		{name: "cancelled", state: "CANCELLED", cause: "was cancelled by its batch system (scancel, Slurm job ",
			end: func(j Job) time.Time { j.Cancel(); return time.Now() }},
		{name: "time limit", state: "TIMEOUT", cause: "reached its time limit of ",
			end: func(j Job) time.Time {
				j.cluster.Administer("scontrol", "update", "jobid="+j.ID, "EndTime=now+2")
				// Slurm checks twice a minute
				s.until("Slurm ends the job", func() bool { return j.State() != "RUNNING" })
				return time.Now()
			}},
		{name: "node failure", options: []string{"-N", "2", "--no-requeue"}, state: "NODE_FAIL",
			cause: "lost its node ",
			end:   func(j Job) time.Time { j.cluster.secondNode("state=down", "reason=test"); return time.Now() }},
		{name: "memory", usual: hog + s.path("never"), program: hog + s.path("grow"), state: "FAILED",
			cause: "ran out of memory: the kernel has killed ",
			end: func(j Job) time.Time {
				before := j.cluster.killed()
				s.do(os.WriteFile(s.path("grow"), nil, 0o644)) //nolint:gosec // the user looks for it
				s.until("the kernel kills", func() bool { return j.cluster.killed() > before })
				s.do(os.Remove(s.path("grow")))
				return time.Now()
			}},
		{name: "suspended", env: map[string]string{"ZIPPER_PATIENCE": patience.String()}, state: "FAILED",
			cause: "is suspended by its batch system (Slurm job ",
			end: func(j Job) time.Time {
				j.cluster.Administer("scontrol", "suspend", j.ID)
				return time.Now().Add(patience)
			}},
		{name: "no program", program: "/nonexistent", state: "FAILED", cause: "could not be started"},
		{name: "fails", program: "/bin/false", state: "FAILED", cause: "ended with exit status 1"},
	} {
		for _, c := range []struct{ ends, other *Cluster }{{b, a}, {a, b}} {
			t.Run(e.name+" "+c.ends.Name, func(t *testing.T) {
				s.t = t
				if e.name == "memory" && !limited {
					t.Skip("needs a memory controller of control groups that root may use")
				}
				e.try(t, s, c.ends, c.other)
			})
		}
	}
}

func (e ending) try(t *testing.T, s *Site, ends, other *Cluster) {
	t.Helper()
	var env strings.Builder
	for k, v := range e.env {
		env.WriteString("export " + k + "=" + v + "\n")
	}
	scripts, status := halves(s, cmp.Or(e.usual, s.path("cg-{mpi}")+" 2000 1e-300"))
	if e.program != "" {
		command, _, _ := strings.Cut(scripts[ends.Name], " -- ")
		scripts[ends.Name] = command + " -- " + strings.ReplaceAll(e.program, "{mpi}", mpiOf[ends.Name])
	}
	script := func(c *Cluster) string {
		return env.String() + scripts[c.Name] + "\nstatus=$?\necho ended at $(date +%s%N)\nexit $status"
	}
	j := other.Submit(script(other), "-n", "2")
	if e.end == nil {
		s.until("the other half gathers", func() bool { return strings.Contains(jobs(s, status), `"gathering"`) })
	}
	half := ends.Submit(script(ends), append([]string{"-n", "2"}, e.options...)...)
	var at time.Time
	if e.end != nil {
		s.until("the job runs", func() bool { return strings.Contains(jobs(s, status), `"running"`) })
		at = e.end(half)
	}
	state, output := j.Wait()
	if e.end == nil {
		_, outputHalf := half.Wait()
		at = endedAt(outputHalf)
	}
	took := endedAt(output).Sub(at)
	if want := "cluster " + ends.Name + " " + e.cause; state != "FAILED" || !strings.Contains(output, want) ||
		took > endsIn {
		t.Errorf("the other half: %s after %v, want %q:\n%s", state, took, want, output)
	}
	if e.name == "suspended" {
		ends.Administer("scontrol", "resume", half.ID)
	}
	stateHalf, outputHalf := half.Wait()
	if stateHalf != e.state {
		t.Errorf("the half that ends: %s\n%s", stateHalf, outputHalf)
	}
	t.Logf("the other half ended %v later\n%s\nthe half that ends: %s", took.Round(time.Millisecond), output,
		outputHalf)
	if e.name == "node failure" {
		ends.secondNode("state=idle")
	}
}

// endedAt returns the time at which a half's launcher had ended, according to its script.
func endedAt(output string) time.Time {
	_, at, _ := strings.Cut(output, "ended at ")
	ns, _ := strconv.ParseInt(strings.TrimSpace(at), 10, 64)
	return time.Unix(0, ns)
}

func jobs(s *Site, status string) string {
	out, _ := exec.Command(s.Zipper(), "status", "--json", status).Output()
	return string(out)
}
