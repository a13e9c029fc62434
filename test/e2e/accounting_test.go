package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder"
)

// TestAccounting checks that a forwarder writes a record of each job that has run: its user, its
// batch job, its traffic and its result. zipper status and the log name the user too.
func TestAccounting(t *testing.T) {
	b := New(t)
	file := filepath.Join(t.TempDir(), "jobs")
	status := freePort(t)
	f := b.StartForwarder("--accounting", file, "--status", status)
	b.Compile(MPICH, "test/programs/c/stream.c")
	b.Compile(OpenMPI, "test/programs/c/stream.c")
	who := []string{"USER=alice", "SLURM_JOB_ID=4711"}
	prog, stop := b.Compile(OpenMPI, "test/programs/c/stream.c"), filepath.Join(t.TempDir(), "stop")
	args, id := b.runArgs(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, OpenMPI)}, Flags: []string{"--zipper", f.Addr}})
	// Some of Slurm's variables are left out, because with all of them Open MPI would ask Slurm for
	// hosts.
	p := b.Start(nil, []string{"ZIPPER_ORIGIN=user=alice slurm=4711"}, append(args, "--", prog, stop)...)
	b.WaitFor(time.Minute, "the job to run", func() bool { return strings.Contains(p.Stdout(), "round 2") })
	if r := b.OK(b.Run(nil, nil, b.Zipper, "status", status)); !strings.Contains(r.Stdout, "user=alice slurm=4711") {
		t.Errorf("status does not name the user:\n%s", r.Stdout)
	}
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.OK(p.Wait())
	bad := b.Run(nil, who[:1], b.Zipper, "run", "--zipper", f.Addr, "--cluster", "a=1,mpi=openmpi", "--cluster",
		"b=1,mpi=openmpi", "--",
		b.Compile(OpenMPI, "test/programs/c/badluck.c"), "exit", "3", "1")
	if bad.Status == 0 {
		t.Errorf("the bad job ended well:\n%v", bad)
	}
	var records []forwarder.Summary
	b.WaitFor(20*time.Second, "two records", func() bool {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		records = nil
		for d := json.NewDecoder(strings.NewReader(string(text))); d.More(); {
			var s forwarder.Summary
			if d.Decode(&s) != nil {
				break // in the middle of a line
			}
			records = append(records, s)
		}
		return len(records) == 2
	})
	s := records[0]
	if s.Job != id || !s.OK || s.Ranks != 2 || len(s.Clusters) != 2 ||
		s.Clusters[0].Origin != "user=alice slurm=4711" || s.Clusters[0].Host == "" ||
		s.Messages < 100 || s.Bytes < 8<<20 || len(s.Traffic) != 2 || s.Started.IsZero() || !s.Ended.After(s.Started) {
		t.Errorf("the first job's record: %+v", s)
	}
	if s.Traffic[0].PayloadBytes+s.Traffic[1].PayloadBytes != s.Bytes {
		t.Errorf("bytes of the directions do not add up: %+v", s)
	}
	if s := records[1]; s.OK || s.Code == 0 || s.Reason == "" || !strings.HasPrefix(s.Clusters[0].Origin,
		"user=alice") {
		t.Errorf("the second job's record: %+v", s)
	}
	if !strings.Contains(f.Stderr(), "user=alice slurm=4711") {
		t.Errorf("the log does not name the user:\n%s", f.Stderr())
	}
}
