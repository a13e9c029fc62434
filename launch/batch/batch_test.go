package batch

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func env(kv ...string) func(string) string {
	return func(k string) string {
		for i := 0; i < len(kv); i += 2 {
			if kv[i] == k {
				return kv[i+1]
			}
		}
		return ""
	}
}

func TestJobIsFoundInTheEnvironment(t *testing.T) {
	for _, tc := range []struct {
		env  []string
		want string
	}{
		{[]string{"SLURM_JOB_ID", "12"}, "Slurm job 12"},
		{[]string{"PBS_JOBID", "7.host"}, "PBS job 7.host"},
		{[]string{"LSB_JOBID", "3"}, "LSF job 3"},
		{[]string{"JOB_ID", "4", "SGE_ROOT", "/opt/sge"}, "Grid Engine job 4"},
		{[]string{"JOB_ID", "4"}, ""}, // anybody's
	} {
		j, ok := from(env(tc.env...), nil, killed{})
		if ok != (tc.want != "") || ok && j.String() != tc.want {
			t.Errorf("%v: %v", tc.env, j)
		}
	}
}

// TestSlurmStateBecomesACause has the words of Slurm 22.05 about a job that ends, and while it
// ends.
func TestSlurmStateBecomesACause(t *testing.T) {
	const ending = "JobState=COMPLETING Restarts=0 ExitCode=0:0 RunTime=00:00:07 TimeLimit=00:01:00 "
	for _, tc := range []struct{ name, scontrol, want string }{
		{"cancelled", "JobState=CANCELLED Reason=None Restarts=0 ExitCode=0:15", "was cancelled by its batch system (scancel, Slurm job 12)"},
		{"being cancelled", ending + "Reason=None PreemptTime=None", "was cancelled by its batch system (scancel, Slurm job 12)"},
		{"time limit", "JobState=TIMEOUT Reason=TimeLimit TimeLimit=00:01:00", "reached its time limit of 00:01:00"},
		{"being over its time limit", ending + "Reason=TimeLimit PreemptTime=None", "reached its time limit of 00:01:00"},
		{"node failure", "JobState=NODE_FAIL Reason=NodeDown ExitCode=0:9", "lost its node b2 (Slurm job 12)"},
		{"losing a node", ending + "Reason=NodeDown PreemptTime=None", "lost its node b2 (Slurm job 12)"},
		{"memory", "JobState=COMPLETING Reason=OOM ExitCode=0:125", "ran out of memory"},
		{"preempted", "JobState=PREEMPTED Reason=None PreemptTime=2026-11-26T00:08:28", "was preempted"},
		{"being preempted", ending + "Reason=None PreemptTime=2026-11-26T00:08:28", "was preempted"},
		{"requeued", "JobState=PENDING Reason=BeginTime Restarts=3 ExitCode=0:0", "put back into the queue"},
		{"being requeued", "JobState=COMPLETING Reason=None Restarts=3 ExitCode=0:0", "put back into the queue"},
		{"cancelled in its third run", "JobState=COMPLETING Reason=None Restarts=2 ExitCode=0:0", "scancel"},
		{"another reason", ending + "Reason=InactiveLimit", "was ended by its batch system (InactiveLimit, Slurm job 12)"},
		{"running", "JobState=RUNNING Reason=None ExitCode=0:0", ""},
		{"failed", "JobState=FAILED Reason=NonZeroExitCode ExitCode=1:0", ""},
		{"failing", ending + "Reason=NonZeroExitCode", ""},
		{"no controller", "", ""},
	} {
		run := func(_ context.Context, w ...string) string {
			return map[string]string{"scontrol": tc.scontrol, "sinfo": "b1 idle\nb2 down*\n"}[w[0]]
		}
		j, _ := from(env("SLURM_JOB_ID", "12", "SLURM_JOB_NODELIST", "b[1-2]", "SLURM_RESTART_COUNT", "2"), run,
			killed{})
		if got := j.Cause(t.Context()); !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestKilledProcessesAreCounted has a process of another step of the job killed, in either kind of
// control groups.
func TestKilledProcessesAreCounted(t *testing.T) {
	root := t.TempDir()
	write := func(file, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct{ own, file, before, after string }{
		{"0::/system.slice/slurmstepd.scope/job_12/step_batch/user/task_0\n", "system.slice/slurmstepd.scope/job_12/memory.events", "low 0\noom 2\noom_kill 1\n", "low 0\noom 9\noom_kill 3\n"},
		{"12:pids:/x\n9:memory:/slurm/uid_1/job_12/step_batch\n", "memory/slurm/uid_1/job_12/step_0/memory.oom_control", "under_oom 0\noom_kill 1\n", "under_oom 0\noom_kill 3\n"},
	} {
		write(tc.file, tc.before)
		k := killed{files: killedFiles(root, tc.own)}
		if !slices.Contains(k.files, filepath.Join(root, tc.file)) {
			t.Errorf("%q: %v", tc.own, k.files)
		}
		k.at = k.now()
		if k.since() != 0 {
			t.Errorf("%q: %d before any", tc.own, k.since())
		}
		write(tc.file, tc.after)
		j, _ := from(env("PBS_JOBID", "1"), nil, k)
		if got := j.Cause(t.Context()); !strings.Contains(got, "killed 2 of its processes") {
			t.Errorf("%q: %q", tc.own, got)
		}
	}
}
