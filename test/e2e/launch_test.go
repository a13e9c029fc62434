package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder"
)

func TestTwoHalvesInAnyOrder(t *testing.T) {
	b := New(t)
	prog := bad(b)
	f := b.StartForwarder("--status", "none")
	for i, order := range [][]string{{"a", "b"}, {"b", "a"}} {
		id := fmt.Sprintf("%s-%d", JobID(t), i)
		env := []string{"ZIPPER_JOB=" + id, "ZIPPER_SECRET=" + SecretOf("s"), "ZIPPER_LAYOUT=a=2,b=1",
			"ZIPPER_FORWARDERS=" + f.Addr, "ZIPPER_TIMEOUT=60s"}
		var procs []*Proc
		for k, name := range order {
			mpirun := []string{"mpirun.mpich", "-n", "1"}
			exe := strings.Replace(prog, "{mpi}", MPICH, 1)
			if name == "a" {
				exe = strings.Replace(prog, "{mpi}", OpenMPI, 1)
				mpirun = []string{"mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-n", "2"}
				if os.Geteuid() == 0 {
					mpirun = append(mpirun, "--allow-run-as-root")
				}
			}
			procs = append(procs, b.Start(nil, append(env, "ZIPPER_CLUSTER="+name),
				append(mpirun, b.Zipper, "exec", "--", exe, "finish")...))
			if k == 0 {
				b.WaitFor(time.Minute, "the first half to join",
					func() bool { return strings.Count(f.Stderr(), "job begins to gather") == i+1 })
			}
		}
		all := ""
		for _, p := range procs {
			all += b.OK(p.Wait()).Stdout
		}
		for r := range 3 {
			if want := fmt.Sprintf("finished %d of 3\n", r); !strings.Contains(all, want) {
				t.Errorf("order %v: no %q in %q", order, want, all)
			}
		}
		b.NothingLeft(id)
	}
}

// TestSlowClusterStartIsNoWarning checks that a cluster whose start takes long causes no warning
// while zipper run sees that it is still starting. The start takes longer than a forwarder that is
// not the run's own waits.
func TestSlowClusterStartIsNoWarning(t *testing.T) {
	b := New(t)
	script := fmt.Sprintf(`[ "$ZIPPER_CLUSTER" = a ] || sleep %d; exec "$@"`, forwarder.Patience/time.Second+1)
	r := b.OK(b.Zipped(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, MPICH)}, Timeout: "10m"}, "/bin/sh", "-c", script,
		"-", bad(b), "finish"))
	if strings.Contains(r.Stderr, "not complete yet") {
		t.Errorf("it warns of a half that is starting:\n%v", r)
	}
}

// standIn writes a remote shell that runs its words on this host as ssh would: in another
// directory, with a fresh environment.
func standIn(t *testing.T) string {
	rsh := filepath.Join(t.TempDir(), "rsh")
	script := "#!/bin/sh\nshift\ncd /\nexec env -i HOME=\"$HOME\" PATH=\"$PATH\" sh -c \"$*\"\n"
	if err := os.WriteFile(rsh, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return rsh
}

func TestJobFileOverRemoteShell(t *testing.T) {
	b := New(t)
	prog := bad(b)
	id := JobID(t)
	file := filepath.Join(t.TempDir(), "job.yaml")
	job := fmt.Sprintf("job: %s\nprogram: \"%s stdin\"\nrsh: %s\nenv: {FROM_JOB: x}\nclusters:\n- {name: a, ranks: 2, mpi: openmpi, login: here}\n- {name: b, ranks: 1, mpi: mpich, launcher: ssh, login: here}\n",
		id, prog, standIn(t))
	if err := os.WriteFile(file, []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
	r := b.OK(b.Run([]byte("over\nthe wire\n"), nil, b.Zipper, "run", "--file", file))
	if r.Stdout != "others read 0 bytes\nover\nthe wire\n" {
		t.Errorf("got %q", r.Stdout)
	}
	b.NothingLeft(id)
}

// TestRemoteClusterThatCannotStartEndsJob checks that a cluster whose directory does not exist on
// its host, or whose host cannot be reached, ends a job over a named forwarder at once, also a job
// that goes on without lost clusters.
func TestRemoteClusterThatCannotStartEndsJob(t *testing.T) {
	b := New(t)
	f := b.StartForwarder()
	unreachable := filepath.Join(t.TempDir(), "rsh")
	if err := os.WriteFile(unreachable, []byte("#!/bin/sh\necho no route to host >&2\nexit 255\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, rsh, dir, want string }{
		{"no directory", standIn(t), ",dir=/nowhere", "dir=/nowhere: there is no such directory"},
		{"no host", unreachable, "", "ended with 255"},
	} {
		for _, loss := range []string{"end", "continue"} {
			flags := []string{"--zipper", f.Addr, "--on-loss", loss, "--rsh", c.rsh, "--cluster", "b=1,mpi=mpich,login=here" + c.dir}
			args, id := b.runArgs(Job{Clusters: []Cluster{A(1, OpenMPI)}, Timeout: "10m", Flags: flags})
			begin := time.Now()
			r := b.Run(nil, nil, append(append(args, "--"), bad(b), "finish")...)
			if r.Status == 0 || !strings.Contains(r.Stderr, c.want) || strings.Contains(r.Stdout, "finished") ||
				time.Since(begin) > time.Minute {
				t.Errorf("%s, %s, after %v:\n%v", c.name, loss, time.Since(begin), r)
			}
			b.NothingLeft(id)
		}
	}
}

// TestLostRemoteShellEndsJob cuts the connection to one cluster, and checks that both clusters'
// processes end.
func TestLostRemoteShellEndsJob(t *testing.T) {
	b := New(t)
	args, id := b.runArgs(Job{Flags: []string{"--rsh", standIn(t), "--cluster", "a=1,mpi=openmpi,login=here",
		"--cluster", "b=1,mpi=mpich,login=here"}})
	p := b.Start(nil, nil, append(append(args, "--"), bad(b), "wait")...)
	b.waiting(p, 2)
	p.Signal(9) // with zipper run both pipes break
	b.WaitFor(30*time.Second, "everything to end when the connections break",
		func() bool { return len(Processes(id)) == 0 })
	b.WaitFor(10*time.Second, "the files to go", func() bool {
		left, _ := filepath.Glob(filepath.Join(os.TempDir(), "zipper*"+id+"*"))
		return len(left) == 0
	})
}

func TestLinkedProgram(t *testing.T) {
	for mpi, ranks := range map[string]int{OpenMPI: 2, MPICH: 2} {
		t.Run(mpi, func(t *testing.T) {
			b := New(t)
			out := filepath.Join(t.TempDir(), "linked")
			b.OK(b.Run(nil, nil, b.Zipper, "cc", "--mpi", mpi, "-O1", "-o", out, badluck))
			r := b.OK(b.Run(nil, nil, "readelf", "-d", out))
			if !strings.Contains(r.Stdout, "libmmpi-"+mpi+".so") {
				t.Fatalf("not linked with MMPI:\n%v", r)
			}
			r = b.OK(b.Zipped(Job{Clusters: []Cluster{A(1, mpi), B(ranks-1, mpi)}}, out, "finish"))
			if !strings.Contains(r.Stdout, "finished 1 of 2") {
				t.Errorf("did not join:\n%v", r)
			}
			// Without a job it is a plain MPI program.
			r = b.OK(b.Native(mpi, 2, out, "finish"))
			if !strings.Contains(r.Stdout, "finished 1 of 2") {
				t.Errorf("does not run natively:\n%v", r)
			}
		})
	}
}

// TestExamplePrograms checks that the examples in each language, linked by its wrapper, run with a
// different MPI library in each cluster and verify their own results.
func TestExamplePrograms(t *testing.T) {
	b := New(t)
	for _, e := range []struct{ wrapper, source, want string }{
		{"cc", "examples/cg/cg.c", "verified"},
		{"cxx", "examples/sort/sort.cpp", "80000 numbers, sorted"},
		{"fc", "examples/heat/heat.f90", "steps on 4 processes the temperature is a straight line"},
	} {
		dir := t.TempDir()
		for _, mpi := range []string{OpenMPI, MPICH} {
			b.OK(b.Run(nil, nil, b.Zipper, e.wrapper, "--mpi", mpi, "-O2", "-o", filepath.Join(dir, mpi),
				filepath.Join(b.Root, e.source), "-lm"))
		}
		r := b.OK(b.Zipped(Job{Clusters: []Cluster{A(2, OpenMPI), B(2, MPICH)}}, filepath.Join(dir, "{mpi}")))
		if !strings.Contains(r.Stdout, e.want) {
			t.Errorf("%s: want %q:\n%v", e.source, e.want, r)
		}
	}
	r := b.OK(b.Zipped(Job{Clusters: []Cluster{A(2, OpenMPI), B(2, OpenMPI)}}, python3,
		filepath.Join(b.Root, "examples/pi/pi.py")))
	if !strings.Contains(r.Stdout, "pi is about 3.1") {
		t.Error(r)
	}
}

func TestManyClusters(t *testing.T) {
	b := New(t)
	for _, clusters := range [][]Cluster{
		{A(3, OpenMPI)},
		{A(1, OpenMPI), B(2, MPICH)},
		{A(2, OpenMPI), B(1, OpenMPI), C(1, MPICH)},
	} {
		n := 0
		for _, c := range clusters {
			n += c.Ranks
		}
		r := b.OK(b.Zipped(Job{Clusters: clusters}, bad(b), "finish"))
		for i := range n {
			if want := fmt.Sprintf("finished %d of %d\n", i, n); !strings.Contains(r.Stdout, want) {
				t.Errorf("%v: no %q:\n%v", clusters, want, r)
			}
		}
	}
}

// TestSeveralJobs runs two jobs at a time over one forwarder, each with a secret of its own.
func TestSeveralJobs(t *testing.T) {
	b := New(t)
	f := b.StartForwarder("--status", "none")
	var procs []*Proc
	var ids []string
	for range 2 {
		args, id := b.runArgs(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, OpenMPI)},
			Flags: []string{"--zipper", f.Addr}})
		ids = append(ids, id)
		procs = append(procs, b.Start(nil, nil, append(append(args, "--"), bad(b), "finish")...))
	}
	for i, p := range procs {
		b.OK(p.Wait())
		b.NothingLeft(ids[i])
	}
}

// TestRanksUseTheUsersPath checks that ranks find programs and libraries in the user's path. Open
// MPI's mpirun, called by its path, puts its own directories first.
func TestRanksUseTheUsersPath(t *testing.T) {
	b := New(t)
	path := t.TempDir() + ":" + os.Getenv("PATH")
	for _, mpi := range []string{OpenMPI, MPICH} {
		r := b.OK(b.Zipped(Job{Clusters: []Cluster{A(1, mpi), B(1, OpenMPI)},
			Env: []string{"PATH=" + path, "LD_LIBRARY_PATH=/nowhere"}},
			"sh", "-c", `echo "$PATH $LD_LIBRARY_PATH"; exec `+bad(b)+" finish"))
		if got := strings.Count(r.Stdout, path+" /nowhere\n"); got != 2 {
			t.Errorf("%s: %d of 2 ranks have the user's PATH and LD_LIBRARY_PATH:\n%v", mpi, got, r)
		}
	}
}
