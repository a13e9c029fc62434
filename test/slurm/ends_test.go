package slurm

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// endsIn is how long the other half may take to end.
const endsIn = 5 * time.Second

// TestEnds: however one half ends, the other ends within seconds and names the cause.
func TestEnds(t *testing.T) {
	long(t)
	s := site(t)
	a, b := s.Cluster("a"), s.Cluster("b")
	forever := s.path("cg-{mpi}") + " 2000 1e-300"
	grow := s.path("grow")
	limited := b.limitMemory(600 << 20)
	for _, tc := range []struct {
		name    string
		program string            // of half b, if not the usual one
		options []string          // of its job
		end     func(half Job)    // ends it, once the job runs; nil: it ends by itself
		state   string            // of its job
		cause   string            // in what half a prints
		slow    time.Duration     // how long Slurm itself may take after end
		env     map[string]string // of both
	}{
		{name: "cancelled", end: Job.Cancel, state: "CANCELLED", cause: "job j ended: cluster b was cancelled by its batch system (scancel, Slurm job "},
		{name: "time limit", end: func(j Job) { j.cluster.Administer("scontrol", "update", "jobid="+j.ID, "EndTime=now") }, state: "TIMEOUT",
			cause: "cluster b reached its time limit", slow: 45 * time.Second},
		{name: "node failure", options: []string{"-N", "2", "--no-requeue"}, state: "NODE_FAIL", cause: "cluster b lost its node",
			end: func(j Job) { j.cluster.Administer("scontrol", "update", "nodename=b2", "state=down", "reason=test") }},
		{name: "memory", program: s.path("hog-mpich") + " " + grow, state: "FAILED", cause: "cluster b ran out of memory: the kernel has killed",
			end: func(Job) { s.do(os.WriteFile(grow, nil, 0o644)) }, slow: 10 * time.Second}, //nolint:gosec // the user looks for it
		{name: "suspended", env: map[string]string{"ZIPPER_PATIENCE": "3s"}, state: "FAILED", cause: "cluster b is suspended by its batch system (Slurm job ",
			end: func(j Job) { j.cluster.Administer("scontrol", "suspend", j.ID) }, slow: 3 * time.Second},
		{name: "no program", program: "/nonexistent", state: "FAILED", cause: "cluster b could not be started"},
		{name: "fails", program: "/bin/false", state: "FAILED", cause: "cluster b ended with exit status 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s.t = t
			if tc.name == "memory" && !limited {
				t.Skip("needs a memory controller of control groups that root may use")
			}
			var env strings.Builder
			for k, v := range tc.env {
				env.WriteString("export " + k + "=" + v + "\n")
			}
			scriptA, scriptB, status := halves(s, forever)
			if tc.program != "" {
				command, _, _ := strings.Cut(scriptB, " -- ")
				scriptB = command + " -- " + tc.program
			}
			ja := a.Submit(env.String()+scriptA+"\nstatus=$?\necho ended at $(date +%s%N)\nexit $status", "-n", "2")
			if tc.end == nil {
				s.until("half a gathers", func() bool { return strings.Contains(jobs(s, status), `"gathering"`) })
			}
			jb := b.Submit(env.String()+scriptB, append([]string{"-n", "2"}, tc.options...)...)
			begin := time.Now()
			if tc.end != nil {
				s.until("the job runs", func() bool { return strings.Contains(jobs(s, status), `"running"`) })
				begin = time.Now()
				tc.end(jb)
			}
			state, output := ja.Wait()
			took := endedAt(output).Sub(begin)
			if state != "FAILED" || !strings.Contains(output, tc.cause) || took > endsIn+tc.slow {
				t.Errorf("half a: %s after %v:\n%s", state, took, output)
			}
			if tc.name == "suspended" {
				b.Administer("scontrol", "resume", jb.ID)
			}
			stateB, outputB := jb.Wait()
			if stateB != tc.state {
				t.Errorf("half b: %s\n%s", stateB, outputB)
			}
			t.Logf("%v\na: %s\nb: %s", took, output, outputB)
			if tc.name == "node failure" {
				b.Administer("scontrol", "update", "nodename=b2", "state=idle")
			}
		})
	}
}

// endedAt is when a half's launcher had ended, as its script says.
func endedAt(output string) time.Time {
	_, at, _ := strings.Cut(output, "ended at ")
	ns, _ := strconv.ParseInt(strings.TrimSpace(at), 10, 64)
	return time.Unix(0, ns)
}

func jobs(s *Site, status string) string {
	out, _ := exec.Command(s.Zipper(), "status", "--json", status).Output()
	return string(out)
}
