package slurm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/freeport"
)

// TestPlugin runs a heterogeneous job whose tasks the SPANK plug-in wraps, over a forwarder that
// the prolog starts on the job's gateway node for a licence, and that ends with the job. The epilog
// ends a forwarder that its job does not use.
func TestPlugin(t *testing.T) {
	long(t)
	s := site(t)
	root, err := filepath.Abs("../..")
	s.do(err)
	dist := filepath.Join(root, "dist", "slurm")
	for _, name := range []string{"prolog", "epilog", "zipper-task"} {
		text, err := os.ReadFile(filepath.Join(dist, name))
		s.do(err)
		head := fmt.Sprintf("#!/bin/sh\nexport ZIPPER=%s ZIPPER_GATEWAYS=%s ZIPPER_RUN=%s\n", s.Zipper(),
			s.path("gateways"), s.path("run"))
		if name == "zipper-task" {
			head = "" // the user's environment must not have these
		}
		s.do(os.WriteFile(s.path(name), []byte(head+string(text)), 0o755)) //nolint:gosec // Slurm runs it
	}
	s.do(os.WriteFile(s.path("gateways"), []byte("a1\n"), 0o600))
	if out, err := exec.Command("gcc", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", s.path("zipper.so"),
		filepath.Join(dist, "zipper.c")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.do(os.WriteFile(s.path("plugstack.conf"),
		[]byte(fmt.Sprintf("required %s zipper=%s task=%s\n", s.path("zipper.so"), s.Zipper(), s.path("zipper-task"))), 0o644)) //nolint:gosec // all read it
	a := s.Cluster("a", "PlugStackConfig="+s.path("plugstack.conf")+"\n", "PrologFlags=Alloc\n",
		"Prolog="+s.path("prolog")+"\n", "Epilog="+s.path("epilog")+"\n", "Licenses=zipper:1\n")
	port := freeport.Of(t, 1)[0]
	secret, env := s.path("home", "secret"), s.path("home", "job.env")
	if out, err := exec.Command(s.Zipper(), "secret", secret).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.do(os.Chown(secret, uid, gid))
	s.do(os.WriteFile(env, []byte(fmt.Sprintf("ZIPPER_JOB=j\nZIPPER_SECRET_FILE=%s\nZIPPER_LAYOUT=a=2,b=2\nZIPPER_FORWARDERS=127.0.0.1:%d\nZIPPER_TIMEOUT=60s\n", secret, port)), 0o644)) //nolint:gosec // the user reads it
	// a group is a cluster: one of Open MPI, one of MPICH
	script := fmt.Sprintf("export ZIPPER_JOB_FILE=%s\n", env)
	for i, c := range []struct{ name, mpi, library string }{{"a", "pmix", "openmpi"}, {"b", "pmi2", "mpich"}} {
		script += fmt.Sprintf("srun --het-group=%d --mpi=%s --zipper-cluster=%s %s &\npid%d=$!\n", i, c.mpi, c.name,
			s.path("cg-"+c.library), i)
	}
	ended := "for i in $(seq 50); do pgrep -u nobody -f 'forwarder --job j ' >pids || exit 0; sleep 0.1; done; echo still there; cat pids; exit 1\n"
	groups := []string{"-N", "1", "-n", "2", "-L", "zipper", "--zipper-forwarder=job.env", ":", "-N", "1", "-n", "2"}
	state, output := a.Submit(script+"wait $pid0 && wait $pid1 || exit\n"+ended, groups...).Wait()
	solved(t, state, output)
	// a job that never joins: the forwarder runs while the job runs
	alone := a.Submit("for i in $(seq 100); do pgrep -u nobody -f 'forwarder --job j ' && sleep 600; sleep 0.1; done\necho none; exit 1\n", groups...)
	s.until("its forwarder runs", func() bool { return strings.TrimSpace(alone.Output()) != "" })
	alone.Cancel()
	if state, output := alone.Wait(); state != "CANCELLED" {
		t.Errorf("%s:\n%s", state, output)
	}
	s.until("the epilog has ended the forwarder", func() bool {
		left, _ := os.ReadDir(s.path("run"))
		return exec.Command("pgrep", "-u", "nobody", "-f", "forwarder --job j ").Run() != nil && len(left) == 0
	})
}
