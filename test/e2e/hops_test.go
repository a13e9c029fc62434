package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder"
	"github.com/leidenzipper/zipper/forwarder/forwardertest"
	"github.com/leidenzipper/zipper/internal/dial"
)

// hopFlags returns zipper run's flags for clusters a - b - c in a row, where a and c share no
// forwarder.
func hopFlags(ab, bc *Forwarder) []string {
	return []string{"--zipper", ab.Addr + "=a,b", "--zipper", bc.Addr + "=b,c"}
}

// TestHops checks that three clusters in a row have the native output, with point to point,
// collectives and communicators at random.
func TestHops(t *testing.T) {
	b := New(t)
	ab, bc := b.StartForwarder(), b.StartForwarder()
	clusters := []Cluster{A(1, OpenMPI), B(2, OpenMPI), C(1, MPICH)}
	for _, p := range [][]string{{"test/programs/c/random.c", "6", "200"}, {"test/programs/c/coll_basic.c"},
		{"test/programs/c/p2p_wildcard.c"}} {
		t.Run(p[0], func(t *testing.T) {
			b := *b
			b.T = t
			path := strings.Replace(b.Compile(OpenMPI, p[0]), "/"+OpenMPI+"/", "/{mpi}/", 1)
			b.Compile(MPICH, p[0])
			native := b.OK(b.Native(OpenMPI, 4, append([]string{strings.ReplaceAll(path, "{mpi}", OpenMPI)},
				p[1:]...)...))
			b.Same(native, b.OK(b.Zipped(Job{Clusters: clusters, Flags: hopFlags(ab, bc)},
				append([]string{path}, p[1:]...)...)), nil)
		})
	}
	for name, f := range map[string]*Forwarder{"a-b": ab, "b-c": bc} {
		b.WaitFor(10*time.Second, "the forwarder "+name+" to see three jobs end well",
			func() bool { return strings.Count(f.Stderr(), `job ended`) == 3 })
		if strings.Contains(f.Stderr(), `"ok": false`) {
			t.Errorf("forwarder %s:\n%s", name, f.Stderr())
		}
	}
}

// TestWindowsHops checks windows over three clusters in a row.
func TestWindowsHops(t *testing.T) {
	b := New(t)
	ab, bc := b.StartForwarder(), b.StartForwarder()
	windows(b, hopFlags(ab, bc), byLength([]split{mixedThree}, []split{oneOneOne, mixedThree}))
}

// TestHopsKilled checks that a killed rank, or a killed forwarder that is not restarted, ends the
// job in all clusters with an error that names it.
func TestHopsKilled(t *testing.T) {
	b := New(t)
	prog := b.Compile(OpenMPI, "test/programs/c/stream.c")
	// pairs 0 - 2 and 1 - 3, of which one communicates over both forwarders
	clusters := []Cluster{A(2, OpenMPI), B(1, OpenMPI), C(1, OpenMPI)}
	begin := func(ab, bc *Forwarder) (*Proc, string) {
		args, id := b.runArgs(Job{Clusters: clusters, Flags: append(hopFlags(ab, bc), "--patience", "5s")})
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
			b.WaitFor(10*time.Second, "the forwarder to name the rank",
				func() bool { return strings.Contains(f.Stderr(), "is lost") })
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
		b.WaitFor(10*time.Second, "the other forwarder to end the job",
			func() bool { return strings.Contains(ab.Stderr(), "job ended") })
		b.NothingLeft(id)
	})
}

// rowFlags returns zipper run's flags for the same row with several forwarders between a and b.
func rowFlags(bc string, ab ...string) []string {
	flags := []string{"--zipper", bc + "=b,c"}
	for _, addr := range ab {
		flags = append(flags, "--zipper", addr+"=a,b")
	}
	return flags
}

// TestHopsSideBySide checks that two parallel forwarders between a and b both carry traffic from a
// to c and back, and that the output is the native one.
func TestHopsSideBySide(t *testing.T) {
	b := New(t)
	var forwarders []*forwarder.Forwarder
	var addrs []string
	for range 3 {
		f, addr := forwardertest.Serve(t, forwarder.Config{Dial: dial.Open})
		forwarders, addrs = append(forwarders, f), append(addrs, addr)
	}
	const source = "test/programs/c/random.c"
	prog := b.Compile(OpenMPI, source)
	b.Compile(MPICH, source)
	native := b.OK(b.Native(OpenMPI, 4, prog, "7", "300"))
	path := strings.Replace(prog, "/"+OpenMPI+"/", "/{mpi}/", 1)
	b.Same(native, b.OK(b.Zipped(Job{Clusters: []Cluster{A(2, OpenMPI), B(1, OpenMPI), C(1, MPICH)},
		Flags: rowFlags(addrs[0], addrs[1:]...)}, path, "7", "300")), nil)
	for i, f := range forwarders {
		jobs := 1
		if i == 0 {
			jobs = 2 // the forwarder is in both rows
		}
		s := over(b, jobs, f.Status)
		for _, way := range [][2]string{{"a", "c"}, {"c", "a"}} {
			if n := payload(s, way[0], way[1]); n < 10000 {
				t.Errorf("forwarder %d carried %d bytes from %s to %s", i, n, way[0], way[1])
			}
		}
	}
}

// TestHopsSideBySideKilled kills one of two parallel forwarders in the middle of transfers over
// both stages, of messages or of one-sided operations: the job goes on over the other one, and
// every byte is correct. When that one is killed too the job ends, with an error that names the
// reason.
func TestHopsSideBySideKilled(t *testing.T) {
	b := New(t)
	carried := func(f *Forwarder) (n uint64) { // from a to c, in the running job
		_, addr, _ := strings.Cut(f.Stderr(), "status")
		addr = addr[strings.Index(addr, "127.0.0.1:"):]
		addr, _, _ = strings.Cut(addr, `"`)
		r := b.OK(b.Run(nil, nil, b.Zipper, "status", "--json", addr))
		var s forwarder.Status
		if err := json.Unmarshal([]byte(r.Stdout), &s); err != nil {
			t.Fatalf("%v: %v", err, r)
		}
		s.Past = nil
		for _, j := range s.Jobs {
			s.Past = append(s.Past, forwarder.Summary{Traffic: j.Traffic})
		}
		return payload(s, "a", "c")
	}
	bc, two := b.StartForwarder(), b.StartForwarder("--status", "127.0.0.1:0")
	var one *Forwarder
	var id string
	rows := 0 // the number of rows whose end bc has seen
	ended := func() {
		rows += 2
		b.WaitFor(30*time.Second, "the forwarder between b and c to see both rows end",
			func() bool { return strings.Count(bc.Stderr(), "\tjob ended\t") == rows })
		b.NothingLeft(id)
	}
	// Pairs 0 - 2 and 1 - 3, of which one communicates over both stages.
	begin := func(program, stop string, first bool) (p *Proc, more func(what string)) {
		one = b.StartForwarder("--status", "127.0.0.1:0")
		flags := rowFlags(bc.Addr, two.Addr, one.Addr)
		if first {
			flags = rowFlags(bc.Addr, one.Addr, two.Addr)
		}
		var args []string
		args, id = b.runArgs(Job{Clusters: []Cluster{A(2, OpenMPI), B(1, OpenMPI), C(1, OpenMPI)},
			Flags: append(flags, "--patience", "8s")})
		p = b.Start(nil, nil, append(args, "--", b.Compile(OpenMPI, "test/programs/c/"+program), stop)...)
		rounds := func() int { return strings.Count(p.Stdout(), "round ") }
		more = func(what string) {
			from := rounds()
			b.WaitFor(time.Minute, what, func() bool { return rounds() >= from+3 })
		}
		more("the stream to run")
		b.WaitFor(time.Minute, "the forwarder that is to die to carry from a to c",
			func() bool { return carried(one) > 1<<20 })
		one.Signal(syscall.SIGKILL)
		one.Wait()
		before := carried(two)
		more("the stream to go on without the first forwarder")
		b.WaitFor(time.Minute, "the forwarder that is left to carry from a to c",
			func() bool { return carried(two) >= before+4<<20 })
		return p, more
	}
	// small pieces are distributed by pair: those from 1 to 3 go to the second row
	for _, program := range []string{"stream.c", "rma_stream.c"} {
		stop := filepath.Join(t.TempDir(), "stop")
		p, _ := begin(program, stop, program == "stream.c")
		if err := os.WriteFile(stop, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		r := b.OK(p.Wait())
		_, worst, _ := strings.Cut(r.Stdout, "longest ")
		t.Log(program, "longest", strings.TrimSpace(worst))
		ended()
	}
	p, more := begin("stream.c", "/nonexistent", true)
	more("the stream to go on")
	two.Signal(syscall.SIGKILL)
	two.Wait()
	if r := p.Wait(); r.Status == 0 || !strings.Contains(r.Stderr, "no forwarder could") ||
		!strings.Contains(r.Stderr, two.Addr) {
		t.Errorf("not told that no forwarder is left:\n%v", r)
	}
	ended()
}

// TestHopsRefused checks that impossible routes are reported before anything starts, or by the
// processes that wait in vain.
func TestHopsRefused(t *testing.T) {
	b := New(t)
	prog := b.Compile(OpenMPI, "examples/cg/cg.c")
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

// TestHopsLab has three clusters on networks of their own, where each zipper node is known by a
// different address on each of its two networks: only the forwarders connect them.
func TestHopsLab(t *testing.T) {
	b := New(t)
	needsLab(t)
	name := fmt.Sprintf("zh%d", os.Getpid())
	env := []string{"LAB=" + name, "LAB_RUN=/run/" + name, "NODES_A=a1", "NODES_B=b1", "NODES_C=c1", "ZIPPERS=z1",
		"ZIPPERS_BC=z2"}
	b.OK(b.Run(nil, env, "scripts/lab", "up"))
	t.Cleanup(func() { b.OK(b.Run(nil, env, "scripts/lab", "down")) })
	r := b.OK(b.Run(nil, env, "scripts/lab", "prove"))
	for _, want := range []string{"a1 does not reach c1", "c1 does not reach a1", "b1 does not reach c1",
		"z1 does not reach c1", "z2 does not reach a1"} {
		if !strings.Contains(r.Stdout, "ok: "+want) {
			t.Fatalf("not proven: %s\n%v", want, r)
		}
	}
	for _, z := range []string{"z1", "z2"} {
		f := b.Serve(env, "scripts/lab", "on", z, b.Zipper, "forwarder", "--log", "info")
		b.WaitFor(20*time.Second, "the forwarder on "+z,
			func() bool { return strings.Contains(f.Stderr(), "listening") })
	}
	file := filepath.Join(t.TempDir(), "job.yaml")
	text := fmt.Sprintf("rsh: %s/scripts/lab-rsh\nzippers:\n- addresses: {a: 10.81.1.1, b: 10.81.2.1}\n- addresses: {b: 10.81.2.101, c: 10.81.3.1}\nclusters:\n",
		b.Root)
	for _, c := range []string{"a", "b", "c"} {
		text += fmt.Sprintf("- {name: %s, login: %s1, ranks: %d, mpi: openmpi}\n", c, c,
			map[string]int{"a": 2, "b": 1, "c": 1}[c])
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r = b.OK(b.Run(nil, env, b.Zipper, "run", "--file", file, "--", b.Compile(OpenMPI, "examples/cg/cg.c"), "64"))
	if !strings.Contains(r.Stdout, "on 4 ranks") || !strings.Contains(r.Stdout, ": verified") {
		t.Errorf("no verified result on 4 ranks:\n%v", r)
	}
}
