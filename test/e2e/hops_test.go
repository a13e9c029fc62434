package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// hopFlags are zipper run's flags for clusters a - b - c in a row, where a and c share no forwarder.
func hopFlags(ab, bc *Forwarder) []string {
	return []string{"--zipper", ab.Addr + "=a,b", "--zipper", bc.Addr + "=b,c"}
}

// Three clusters in a row: the same output as native, with point to point, collectives and communicators at random.
func TestHops(t *testing.T) {
	b := New(t)
	ab, bc := b.StartForwarder(), b.StartForwarder()
	clusters := []Cluster{A(1, OpenMPI), B(2, OpenMPI), C(1, MPICH)}
	for _, p := range [][]string{{"test/programs/c/random.c", "6", "200"}, {"test/programs/c/coll_basic.c"}, {"test/programs/c/p2p_wildcard.c"}} {
		t.Run(p[0], func(t *testing.T) {
			b := *b
			b.T = t
			path := strings.Replace(b.Compile(OpenMPI, p[0]), "/"+OpenMPI+"/", "/{mpi}/", 1)
			b.Compile(MPICH, p[0])
			native := b.OK(b.Native(OpenMPI, 4, append([]string{strings.ReplaceAll(path, "{mpi}", OpenMPI)}, p[1:]...)...))
			b.Same(native, b.OK(b.Zipped(Job{Clusters: clusters, Flags: hopFlags(ab, bc)}, append([]string{path}, p[1:]...)...)), nil)
		})
	}
	for name, f := range map[string]*Forwarder{"a-b": ab, "b-c": bc} {
		b.WaitFor(10*time.Second, "the forwarder "+name+" to see three jobs end well", func() bool { return strings.Count(f.Stderr(), `job ended`) == 3 })
		if strings.Contains(f.Stderr(), `"ok": false`) {
			t.Errorf("forwarder %s:\n%s", name, f.Stderr())
		}
	}
}

// A rank, or a forwarder, that is killed ends the job in all clusters, with an error that names it.
func TestHopsKilled(t *testing.T) {
	b := New(t)
	prog := b.Compile(OpenMPI, "test/programs/c/stream.c")
	clusters := []Cluster{A(2, OpenMPI), B(1, OpenMPI), C(1, OpenMPI)} // pairs 0 - 2 and 1 - 3: one of them over both forwarders
	begin := func(ab, bc *Forwarder) (*Proc, string) {
		args, id := b.runArgs(Job{Clusters: clusters, Flags: hopFlags(ab, bc)})
		p := b.Start(nil, nil, append(args, "--", prog, "/nonexistent")...)
		b.WaitFor(time.Minute, "the stream to run", func() bool { return strings.Contains(p.Stdout(), "round ") })
		return p, id
	}
	t.Run("rank", func(t *testing.T) {
		ab, bc := b.StartForwarder(), b.StartForwarder()
		p, id := begin(ab, bc)
		pid, err := Victim(id, prog)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		r := p.Wait()
		if r.Status == 0 {
			t.Errorf("status 0:\n%v", r)
		}
		for _, f := range []*Forwarder{ab, bc} {
			b.WaitFor(10*time.Second, "the forwarder to name the rank", func() bool { return strings.Contains(f.Stderr(), "is lost") })
		}
		b.NothingLeft(id)
	})
	t.Run("forwarder", func(t *testing.T) {
		ab, bc := b.StartForwarder(), b.StartForwarder()
		p, id := begin(ab, bc)
		bc.Signal(syscall.SIGKILL)
		bc.Wait()
		r := p.Wait()
		if r.Status == 0 || !strings.Contains(r.Stderr, bc.Addr) || !strings.Contains(r.Stderr, "lost") {
			t.Errorf("not told that the forwarder %s is lost:\n%v", bc.Addr, r)
		}
		b.WaitFor(10*time.Second, "the other forwarder to end the job", func() bool { return strings.Contains(ab.Stderr(), "job ended") })
		b.NothingLeft(id)
	})
}

// What cannot work is said before anything starts, or by those who wait in vain.
func TestHopsRefused(t *testing.T) {
	b := New(t)
	prog := b.Compile(OpenMPI, "examples/c/cg.c")
	clusters := []Cluster{A(1, OpenMPI), B(1, OpenMPI), C(1, OpenMPI)}
	run := func(timeout string, flags ...string) Result {
		return b.Zipped(Job{Clusters: clusters, Flags: flags, Timeout: timeout}, prog, "32")
	}
	b.Fails(run("", "--zipper", "z1=a,b", "--zipper", "z2=b,c", "--zipper", "z3=a,c"), 2, "zipper 3 closes a loop")
	b.Fails(run("", "--zipper", "z1=a,b"), 2, "no zipper leads from cluster a to cluster c")
	ab := b.StartForwarder()
	r := run("3s", "--zipper", ab.Addr+"=a,b", "--zipper", "127.0.0.1:9=b,c")
	b.Fails(r, 1, "127.0.0.1:9")
}
