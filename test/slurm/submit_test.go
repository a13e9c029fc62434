package slurm

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/freeport"
)

// TestSubmit checks zipper submit at cluster a, which submits b's half through a remote shell: with
// a job that ends well, and with one whose half on b is cancelled, while running and while queued.
func TestSubmit(t *testing.T) {
	long(t)
	s := site(t)
	a, b := s.Cluster("a"), s.Cluster("b")
	port := freeport.Of(t, 1)[0]
	s.daemon(s.Zipper(), "forwarder", "--listen", fmt.Sprintf("127.0.0.1:%d", port), "--status", "none")
	// takes a host and a command, as ssh does; the host is cluster b's
	rsh := s.path("rsh")
	s.do(os.WriteFile(rsh, []byte("#!/bin/sh\n[ \"$1\" = head-b ] || exit 255\nshift\nSLURM_CONF="+b.conf()+" exec \"$@\"\n"), 0o755)) //nolint:gosec // the user runs it
	start := func(program, batch string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
		job := fmt.Sprintf(`
program: "%s"
rsh: %s
zippers: ["127.0.0.1:%d"]
env: {OMPI_MCA_btl_vader_single_copy_mechanism: none, OMPI_MCA_mpi_yield_when_idle: "1"}
clusters:
  - {name: a, ranks: 2, mpi: openmpi, batch: [--time=3]}
  - {name: b, ranks: 2, mpi: mpich, login: head-b, batch: [--time=3%s]}
`, program, rsh, port, batch)
		s.do(os.WriteFile(s.path("job.yaml"), []byte(job), 0o644)) //nolint:gosec // the user reads it
		cmd := a.command(s.Zipper(), "submit", s.path("job.yaml"))
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		s.do(cmd.Start())
		return cmd, &out, &errs
	}
	cmd, out, errs := start(s.path("cg-{mpi}"), "")
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), "verified") ||
		!regexp.MustCompile(`cluster a: Slurm job [0-9]+\n.*cluster b: Slurm job [0-9]+ on head-b\n`).MatchString(errs.String()) {
		t.Errorf("%v\n%s\n%s", err, out, errs)
	}
	for _, tc := range []struct{ batch, state string }{{"", "RUNNING"}, {", --begin=now+1hour", "PENDING"}} {
		cmd, out, errs := start(s.path("cg-{mpi}")+" 2000 1e-300", tc.batch)
		id := ""
		s.until("b's half is "+tc.state, func() bool {
			list, _ := b.command("squeue", "-h", "-t", tc.state, "-o", "%i").Output()
			id = strings.TrimSpace(string(list))
			return id != ""
		})
		s.until("a's half runs", func() bool {
			list, _ := a.command("squeue", "-h", "-t", "RUNNING", "-o", "%i").Output()
			return len(bytes.TrimSpace(list)) > 0
		})
		Job{b, id}.Cancel()
		begin := time.Now()
		err := cmd.Wait()
		if took := time.Since(begin); err == nil || !strings.Contains(errs.String(), "Slurm job "+id+": CANCELLED") &&
			tc.state == "PENDING" || took > 30*time.Second {
			t.Errorf("%s: %v after %v\n%s\n%s", tc.state, err, took, out, errs)
		}
		// by the half itself, or by zipper submit if the half had no time for that, or never began
		if !strings.Contains(out.String(), "cluster b was cancelled by its batch system (scancel, Slurm job "+id) {
			t.Errorf("%s: a's half does not name the cause:\n%s\n%s", tc.state, out, errs)
		}
		s.until("a's half is gone", a.idle)
	}
	if left, _ := os.ReadDir(s.path("home", ".zipper", "jobs")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	// a half alone is not requeued, and the scripts can be printed without submitting
	script, err := a.command(s.Zipper(), "submit", "--script", s.path("job.yaml")).CombinedOutput()
	if err != nil || strings.Count(string(script), "#SBATCH --no-requeue") != 2 ||
		strings.Contains(string(script), "ZIPPER_SECRET") {
		t.Errorf("%v\n%s", err, script)
	}
}
