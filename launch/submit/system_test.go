package submit

import (
	"fmt"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/launch/together"
)

// at returns a local time at a cluster.
func at(s string) int64 { return localTime("2006-01-02 15:04:05", s) }

// TestAnswers checks how the answers of the batch systems are read. Those of Slurm are abridged
// from release 22.05; those of PBS and LSF have the forms of their manuals.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		system system
		text   string
		want   answer
	}{
		{"Slurm deferred", slurm{}, "JobId=2 JobName=zipper-j Priority=4294901758 JobState=PENDING Reason=BeginTime Dependency=(null) " +
			"ExitCode=0:0 EligibleTime=2026-11-27T15:00:00 StartTime=2026-11-27T15:00:00\nZIPPER-PLAN 2026-11-27T15:00:00\n" +
			"sbatch: Job 3 to start at 2026-11-27T14:05:00 using 4 processors on nodes a1 in partition a\n",
			answer{state: "PENDING", phase: queued, reason: "BeginTime", begin: at("2026-11-27 15:00:00"), start: at("2026-11-27 14:05:00")}},
		{"Slurm queued", slurm{}, "JobId=2 JobState=PENDING Reason=Resources ExitCode=0:0 EligibleTime=2026-11-27T14:00:00 StartTime=2026-11-27T16:00:00\n" +
			"ZIPPER-PLAN 2026-11-27T16:00:00\nsbatch: Job 3 to start at 2026-11-27T14:05:00 using 4 processors on nodes a1 in partition a\n",
			answer{state: "PENDING", phase: queued, reason: "Resources", begin: at("2026-11-27 14:00:00"), start: at("2026-11-27 16:00:00")}},
		{"Slurm held", slurm{}, "JobId=2 Priority=0 JobState=PENDING Reason=JobHeldAdmin ExitCode=0:0 EligibleTime=Unknown StartTime=Unknown\nZIPPER-PLAN N/A\nallocation failure: no\n",
			answer{state: "PENDING", phase: queued, reason: "JobHeldAdmin", held: true}},
		{"Slurm runs", slurm{}, "JobId=2 JobState=RUNNING Reason=None ExitCode=0:0 EligibleTime=2026-11-27T14:00:00 StartTime=2026-11-27T16:00:01",
			answer{state: "RUNNING", phase: started, start: at("2026-11-27 16:00:01")}},
		{"Slurm requeues", slurm{}, "JobId=2 JobState=COMPLETING Reason=BeginTime ExitCode=0:0 StartTime=2026-11-27T16:00:01",
			answer{state: "COMPLETING", phase: changing}},
		{"Slurm forgets", slurm{}, "slurm_load_jobs error: Invalid job id specified", answer{state: "FORGOTTEN", phase: over, code: 1}},

		{"PBS queued", pbs{}, "Job Id: 7013474.pbs\n    Job_Name = job-01.pbs\n    job_state = Q\n    comment = Not Running: Insufficient amount of resource: ncpus\n" +
			"    estimated.exec_vnode = (cx3-10-8.cx3:ncpus=4:mem=8388608kb:ngp\n\tus=1)\n    estimated.start_time = Tue Feb 14 02:10:01 2023\n",
			answer{state: "Q", phase: queued, reason: "Not Running: Insufficient amount of resource: ncpus", start: at("2023-02-14 02:10:01")}},
		{"PBS deferred", pbs{}, "Job Id: 12.pbs\n    job_state = W\n    Execution_Time = Fri Nov 27 15:00:00 2026\n",
			answer{state: "W", phase: queued, begin: at("2026-11-27 15:00:00")}},
		{"PBS runs", pbs{}, "Job Id: 12.pbs\n    job_state = R\n    stime = Thu Aug  6 10:00:00 2026\n", answer{state: "R", phase: started, start: at("2026-08-06 10:00:00")}},
		{"PBS ended by a signal", pbs{}, "Job Id: 12.pbs\n    job_state = F\n    Exit_status = 271\n", answer{state: "F", phase: over, code: 143}},
		{"PBS ended", pbs{}, "Job Id: 12.pbs\n    job_state = F\n    Exit_status = 0\n", answer{state: "F", phase: over}},
		{"PBS deleted", pbs{}, "Job Id: 12.pbs\n    job_state = F\n", answer{state: "F", phase: over, code: 1}},

		{"LSF deferred", lsf{}, "PEND|-|-|Nov 27 15:00:00 2026|-\n", answer{state: "PEND", phase: queued, begin: at("2026-11-27 15:00:00")}},
		{"LSF queued", lsf{}, "PEND|-|-|-|Nov 27 16:00 2026\n", answer{state: "PEND", phase: queued, start: at("2026-11-27 16:00:00")}},
		{"LSF runs", lsf{}, "RUN|-|Nov  7 16:00:02 2026|-|-\n", answer{state: "RUN", phase: started, start: at("2026-11-07 16:00:02")}},
		{"LSF ended", lsf{}, "EXIT|130|Nov 27 16:00:02 2026|-|-\n", answer{state: "EXIT", phase: over, code: 130}},
		{"LSF forgets", lsf{}, "Job <12> is not found\n", answer{state: "FORGOTTEN", phase: over, code: 1}},
	} {
		got, err := c.system.read("2", c.text)
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
	for _, s := range []system{slurm{}, pbs{}, lsf{}} {
		if _, err := s.read("2", "Connection refused"); err == nil {
			t.Errorf("%s: no error", s.name())
		}
	}
}

// TestIDs checks how the ids of jobs are found.
func TestIDs(t *testing.T) {
	for _, c := range []struct {
		system       system
		output, want string
	}{
		{slurm{}, "12;cluster\n", "12"}, {pbs{}, "12.pbs-1\n", "12.pbs-1"}, {lsf{}, "Job <12> is submitted to queue <normal>.\n", "12"},
		{slurm{}, "", ""}, {pbs{}, "", ""}, {lsf{}, "Job <12> is being requeued\n", ""},
	} {
		if id, ok := c.system.id(c.output); ok != (c.want != "") || ok && id != c.want {
			t.Errorf("%s: %q, %v", c.system.name(), id, ok)
		}
	}
}

// TestTranslate checks that times at a cluster are times here, whatever the zone and the clock
// there, and that a start stays the same from look to look.
func TestTranslate(t *testing.T) {
	const text = "ZIPPER-NOW %d\nJobId=2 JobState=RUNNING Reason=None ExitCode=0:0 StartTime=2026-11-27T16:00:00"
	h := &Half{ID: "2", system: slurm{}}
	s := site{}
	start := at("2026-11-27 16:00:00")
	// The seconds there begin at other times than here.
	for _, look := range []struct{ clock, here time.Duration }{{30, 10}, {33, 12}, {33, 14}} {
		if err := s.learn(h, fmt.Sprintf(text, start+int64(look.clock)), look.here*time.Second); err != nil {
			t.Fatal(err)
		}
		if want := (together.Seen{State: together.Running, Start: -20 * time.Second}); s.seen != want {
			t.Errorf("%+v, want %+v", s.seen, want)
		}
	}
}
