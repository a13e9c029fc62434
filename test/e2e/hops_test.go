package e2e

import (
	"fmt"
	"os"
	"path/filepath"
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

// Windows over three clusters in a row.
func TestWindowsHops(t *testing.T) {
	b := New(t)
	ab, bc := b.StartForwarder(), b.StartForwarder()
	windows(b, hopFlags(ab, bc), []split{oneOneOne, mixedThree})
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

// Three clusters on networks of their own, each zipper node known by a different address on each of its two: nothing but the forwarders joins them.
func TestHopsLab(t *testing.T) {
	b := New(t)
	if os.Geteuid() != 0 {
		t.Skip("the isolated lab needs root")
	}
	name := fmt.Sprintf("zh%d", os.Getpid())
	env := []string{"LAB=" + name, "LAB_RUN=/run/" + name, "NODES_A=a1", "NODES_B=b1", "NODES_C=c1", "ZIPPERS=z1", "ZIPPERS_BC=z2"}
	b.OK(b.Run(nil, env, "scripts/lab", "up"))
	t.Cleanup(func() { b.OK(b.Run(nil, env, "scripts/lab", "down")) })
	r := b.OK(b.Run(nil, env, "scripts/lab", "prove"))
	for _, want := range []string{"a1 does not reach c1", "c1 does not reach a1", "b1 does not reach c1", "z1 does not reach c1", "z2 does not reach a1"} {
		if !strings.Contains(r.Stdout, "ok: "+want) {
			t.Fatalf("not proven: %s\n%v", want, r)
		}
	}
	for _, z := range []string{"z1", "z2"} {
		f := b.Start(nil, env, "scripts/lab", "on", z, b.Zipper, "forwarder", "--log", "info")
		b.WaitFor(20*time.Second, "the forwarder on "+z, func() bool { return strings.Contains(f.Stderr(), "listening") })
	}
	file := filepath.Join(t.TempDir(), "job.yaml")
	text := fmt.Sprintf("rsh: %s/scripts/lab-rsh\nzippers:\n- addresses: {a: 10.81.1.1, b: 10.81.2.1}\n- addresses: {b: 10.81.2.101, c: 10.81.3.1}\nclusters:\n", b.Root)
	for _, c := range []string{"a", "b", "c"} {
		text += fmt.Sprintf("- {name: %s, login: %s1, ranks: %d, mpi: openmpi}\n", c, c, map[string]int{"a": 2, "b": 1, "c": 1}[c])
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r = b.OK(b.Run(nil, env, b.Zipper, "run", "--file", file, "--", b.Compile(OpenMPI, "examples/c/cg.c"), "64"))
	if !strings.Contains(r.Stdout, "on 4 ranks") || !strings.Contains(r.Stdout, ": verified") {
		t.Errorf("no verified result on 4 ranks:\n%v", r)
	}
}
