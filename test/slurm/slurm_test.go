package slurm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/freeport"
	"github.com/leidenzipper/zipper/internal/optional"
)

var wanted = optional.Tests{Variable: "ZIPPER_SLURM", Why: "needs Slurm and root: scripts/test slurm runs it"}

func TestMain(m *testing.M) { wanted.Main(m) }

func site(t *testing.T) *Site {
	t.Helper()
	wanted.Skip(t)
	return NewSite(t)
}

// solved checks that a job has printed the result of examples/cg/cg.c on four ranks.
func solved(t *testing.T, state, output string) {
	t.Helper()
	if state != "COMPLETED" || !strings.Contains(output, "on 4 ranks") || !strings.Contains(output, "verified") {
		t.Errorf("%s:\n%s", state, output)
	}
}

// TestSharedAllocation checks a job of zipper run whose clusters share one allocation of two nodes.
// The two launchers' steps do not wait for each other.
func TestSharedAllocation(t *testing.T) {
	s := site(t)
	a := s.Cluster("a")
	state, output := a.Submit(s.Zipper()+" run --cluster a=2,mpi=openmpi --cluster b=2,mpi=mpich -- '"+s.path("cg-{mpi}")+"'",
		"-N", "2", "--ntasks-per-node=2").Wait()
	solved(t, state, output)
}

// mpiOf are the MPI libraries of a job's clusters, by name.
var mpiOf = map[string]string{"a": "openmpi", "b": "mpich"}

// halves returns the scripts, by cluster, of a job whose halves are batch jobs of two controllers,
// and the address of its forwarder's status.
func halves(s *Site, program string) (scripts map[string]string, status string) {
	s.t.Helper()
	ports := freeport.Of(s.t, 2)
	port := ports[0]
	status = fmt.Sprintf("127.0.0.1:%d", ports[1])
	s.daemon(s.Zipper(), "forwarder", "--listen", fmt.Sprintf("127.0.0.1:%d", port), "--status", status)
	dir, err := os.MkdirTemp(s.Home, "job")
	s.do(err)
	s.do(os.Chmod(dir, 0o755)) //nolint:gosec // the user reads it
	secret, env := filepath.Join(dir, "secret"), filepath.Join(dir, "env")
	if out, err := exec.Command(s.Zipper(), "secret", secret).CombinedOutput(); err != nil {
		s.t.Fatalf("%v\n%s", err, out)
	}
	s.do(os.Chown(secret, uid, gid))
	text := fmt.Sprintf("ZIPPER_JOB=j\nZIPPER_SECRET_FILE=%s\nZIPPER_LAYOUT=a=2,b=2\nZIPPER_FORWARDERS=127.0.0.1:%d\nZIPPER_TIMEOUT=60s\n", secret, port)
	s.do(os.WriteFile(env, []byte(text), 0o644)) //nolint:gosec // the user reads it
	scripts = map[string]string{}
	for cluster, mpi := range mpiOf {
		scripts[cluster] = fmt.Sprintf("%s join --env %s --cluster %s --mpi %s -- %s", s.Zipper(), env, cluster, mpi,
			strings.ReplaceAll(program, "{mpi}", mpi))
	}
	return scripts, status
}

// TestTwoJobs checks a job of which each half is a batch job of its own controller, started in
// either order.
func TestTwoJobs(t *testing.T) {
	s := site(t)
	a, b := s.Cluster("a"), s.Cluster("b")
	scripts, _ := halves(s, s.path("cg-{mpi}"))
	for _, first := range []*Cluster{a, b} {
		var jobs [2]Job
		for i := range 2 {
			if (first == a) == (i == 0) {
				jobs[0] = a.Submit(scripts["a"], "-n", "2")
			} else {
				jobs[1] = b.Submit(scripts["b"], "-N", "2", "--ntasks-per-node=1")
			}
			if i == 0 {
				s.until("the first half runs", func() bool { return max(jobs[0].state(), jobs[1].state()) == "RUNNING" })
			}
		}
		state, output := jobs[0].Wait()
		solved(t, state, output)
		if state, output := jobs[1].Wait(); state != "COMPLETED" {
			t.Errorf("%s:\n%s", state, output)
		}
	}
}

// TestPair checks that the two batch scripts of examples/slurm do what its README describes.
func TestPair(t *testing.T) {
	s := site(t)
	port := freeport.Of(t, 1)[0]
	s.daemon(s.Zipper(), "forwarder", "--listen", fmt.Sprintf("127.0.0.1:%d", port), "--status", "none")
	dir := filepath.Join("..", "..", "examples", "slurm")
	env, err := os.ReadFile(filepath.Join(dir, "job.env"))
	s.do(err)
	text := strings.Replace(string(env), "zip1:7475", fmt.Sprintf("127.0.0.1:%d", port), 1)
	jobs := map[string]Job{}
	for cluster, mpi := range mpiOf {
		c := s.Cluster(cluster)
		home := filepath.Join(s.Home, cluster)
		s.do(os.Mkdir(home, 0o755))
		s.do(os.WriteFile(filepath.Join(home, "job.env"), []byte(text), 0o644)) //nolint:gosec // the user reads it
		s.do(os.Symlink(s.path("cg-"+mpi), filepath.Join(home, "cg")))
		secret := filepath.Join(home, "job.secret")
		if len(jobs) == 0 {
			s.do(exec.Command(s.Zipper(), "secret", secret).Run())
		} else {
			b, err := os.ReadFile(filepath.Join(s.Home, other(cluster), "job.secret"))
			s.do(err)
			s.do(os.WriteFile(secret, b, 0o600))
		}
		s.do(os.Chown(secret, uid, gid))
		script, err := os.ReadFile(filepath.Join(dir, cluster+".sh"))
		s.do(err)
		jobs[cluster] = c.SubmitIn(home, string(script))
	}
	state, output := jobs["a"].Wait()
	solved(t, state, output)
	if state, output := jobs["b"].Wait(); state != "COMPLETED" {
		t.Errorf("%s:\n%s", state, output)
	}
}

// other returns the other one of two clusters.
func other(cluster string) string { return map[string]string{"a": "b", "b": "a"}[cluster] }

// state returns the state of a job that may not have been submitted yet.
func (j Job) state() string {
	if j.cluster == nil {
		return ""
	}
	return j.State()
}

// long skips a test unless the long ones are requested, because a batch system is slow.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("ZIPPER_LONG") == "" {
		t.Skip("long test: scripts/test --long slurm")
	}
}
