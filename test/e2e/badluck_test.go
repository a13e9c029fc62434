package e2e

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const badluck = "test/programs/c/badluck.c"

// bad compiles the bad-luck program for both libraries and returns its path with {mpi} in it.
func bad(b *Bed) string {
	b.Compile(MPICH, badluck)
	p := b.Compile(OpenMPI, badluck)
	return strings.Replace(p, "/"+OpenMPI+"/", "/{mpi}/", 1)
}

// half starts one cluster's half with zipper join.
func half(b *Bed, job, secret, cluster, layout, forwarder string, argv ...string) *Proc {
	b.T.Helper()
	return b.Start(nil, []string{"ZIPPER_SECRET=" + secret}, append([]string{b.Zipper, "join", "--job", job, "--cluster", cluster, "--layout", layout,
		"--zipper", forwarder, "--timeout", "10s", "--mpi", OpenMPI, "--"}, argv...)...)
}

func TestWrongSecret(t *testing.T) {
	t.Parallel() // mostly waits for a time-out
	b := New(t)
	prog := strings.Replace(bad(b), "{mpi}", OpenMPI, 1)
	f := b.StartForwarder()
	id := JobID(t)
	a := half(b, id, "right", "a", "a=1,b=1", f.Addr, prog, "finish")
	b.WaitFor(time.Minute, "cluster a to join", func() bool { return strings.Contains(f.Stderr(), "job begins to gather") })
	z := half(b, id, "other", "b", "a=1,b=1", f.Addr, prog, "finish").Wait()
	if z.Status == 0 {
		t.Errorf("the wrong secret was accepted:\n%v", z)
	}
	b.Fails(z, z.Status, "secret")
	r := a.Wait()
	if r.Status == 0 {
		t.Errorf("cluster a did not notice:\n%v", r)
	}
	b.NothingLeft(id)
}

func TestForwarderDemandsSecret(t *testing.T) {
	b := New(t)
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("the operator's\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := b.StartForwarder("--secret-file", file)
	j := Job{Clusters: []Cluster{A(1, OpenMPI), B(1, OpenMPI)}, Flags: []string{"--zipper", f.Addr}}
	r := b.Zipped(j, bad(b), "finish")
	if r.Status == 0 {
		t.Errorf("a job without the forwarder's secret was served:\n%v", r)
	}
	b.Fails(r, r.Status, "secret")
	j.Flags = append(j.Flags, "--secret-file", file)
	b.OK(b.Zipped(j, bad(b), "finish"))
}

func TestWrongJob(t *testing.T) {
	b := New(t)
	f := b.StartForwarder("--job", "another")
	r := b.Zipped(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, OpenMPI)}, Flags: []string{"--zipper", f.Addr}}, bad(b), "finish")
	if r.Status == 0 {
		t.Errorf("a job that the forwarder was not told of was served:\n%v", r)
	}
	b.Fails(r, r.Status, "job")
}

func TestWrongProtocolVersion(t *testing.T) {
	b := New(t)
	// A forwarder of a future version: its challenge begins with the version, whatever comes after it.
	f := b.StartForwarder()
	c, err := net.Dial("tcp", f.Addr)
	if err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, 4096)
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	n, err := c.Read(frame)
	c.Close()
	if err != nil {
		t.Fatal(err)
	}
	header := n - 36
	binary.LittleEndian.PutUint32(frame[header:], 99)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			defer c.Close() // when the test ends
			_, _ = c.Write(frame[:n])
		}
	}()
	r := b.Zipped(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, OpenMPI)}, Flags: []string{"--zipper", ln.Addr().String()}, Timeout: "20s"}, bad(b), "finish")
	if r.Status == 0 {
		t.Errorf("another version was taken for ours:\n%v", r)
	}
	b.Fails(r, r.Status, "version")
}

func TestClusterMissing(t *testing.T) {
	t.Parallel() // mostly waits for a time-out
	b := New(t)
	prog := strings.Replace(bad(b), "{mpi}", OpenMPI, 1)
	f := b.StartForwarder()
	id := JobID(t)
	r := half(b, id, "s", "a", "a=2,tardy=3", f.Addr, prog, "finish").Wait()
	if r.Status == 0 {
		t.Errorf("ran without cluster tardy:\n%v", r)
	}
	b.Fails(r, r.Status, "tardy")
	b.NothingLeft(id)
}

func TestClusterTwice(t *testing.T) {
	t.Parallel() // mostly waits for a time-out
	b := New(t)
	prog := strings.Replace(bad(b), "{mpi}", OpenMPI, 1)
	r := b.Run(nil, nil, b.Zipper, "run", "--cluster", "a=1", "--cluster", "a=1", "--", prog)
	b.Fails(r, 2, "twice")
	f := b.StartForwarder()
	id := JobID(t)
	first := half(b, id, "s", "a", "a=1,b=1", f.Addr, prog, "finish")
	b.WaitFor(time.Minute, "cluster a to join", func() bool { return strings.Contains(f.Stderr(), "job begins to gather") })
	second := half(b, id, "s", "a", "a=1,b=1", f.Addr, prog, "finish").Wait()
	if second.Status == 0 {
		t.Errorf("cluster a joined twice:\n%v", second)
	}
	b.Fails(second, second.Status, "a")
	first.Wait()
	b.NothingLeft(id)
}

func TestSizesDisagree(t *testing.T) {
	t.Parallel() // mostly waits for a time-out
	b := New(t)
	prog := strings.Replace(bad(b), "{mpi}", OpenMPI, 1)
	f := b.StartForwarder()
	id := JobID(t)
	a := half(b, id, "s", "a", "a=1,b=1", f.Addr, prog, "finish")
	b.WaitFor(time.Minute, "cluster a to join", func() bool { return strings.Contains(f.Stderr(), "job begins to gather") })
	r := half(b, id, "s", "b", "a=1,b=2", f.Addr, prog, "finish").Wait()
	if r.Status == 0 {
		t.Errorf("sizes that disagree were accepted:\n%v", r)
	}
	b.Fails(r, r.Status, "b=")
	a.Wait()
	b.NothingLeft(id)
}

func TestForwarderUnreachable(t *testing.T) {
	t.Parallel() // mostly waits for a time-out
	b := New(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0") // a port that is certainly free again
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	r := b.Zipped(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, MPICH)}, Flags: []string{"--zipper", addr}, Timeout: "5s"}, bad(b), "finish")
	if r.Status == 0 {
		t.Errorf("ran without a forwarder:\n%v", r)
	}
	b.Fails(r, r.Status, addr)
}

func TestForwarderKilled(t *testing.T) {
	b := New(t)
	f := b.StartForwarder()
	args, id := b.runArgs(Job{Clusters: []Cluster{A(2, OpenMPI), B(2, MPICH)}, Flags: []string{"--zipper", f.Addr}})
	p := b.Start(nil, nil, append(append(args, "--"), bad(b), "wait")...)
	b.waiting(p, 4)
	f.Signal(syscall.SIGKILL)
	killed := time.Now()
	r := p.Wait()
	if took := time.Since(killed); took > 10*time.Second {
		t.Errorf("it took %v to end after the forwarder was killed", took)
	}
	if r.Status == 0 {
		t.Errorf("ended well without a forwarder:\n%v", r)
	}
	b.Fails(r, r.Status, f.Addr)
	b.NothingLeft(id)
}

// waiting waits until so many ranks of a job of badluck say that they wait.
func (b *Bed) waiting(p *Proc, ranks int) {
	b.T.Helper()
	b.WaitFor(90*time.Second, fmt.Sprintf("%d ranks to wait", ranks), func() bool {
		select {
		case <-p.done:
			b.T.Fatalf("ended early:\n%v", p.Wait())
		default:
		}
		return strings.Count(p.Stdout(), "waiting ") == ranks
	})
}

func TestRankKilled(t *testing.T) {
	for _, mpi := range []string{OpenMPI, MPICH} {
		t.Run(mpi, func(t *testing.T) {
			b := New(t)
			prog := bad(b)
			args, id := b.runArgs(Job{Clusters: []Cluster{A(2, OpenMPI), B(2, mpi)}})
			p := b.Start(nil, nil, append(append(args, "--"), prog, "wait")...)
			b.waiting(p, 4)
			victim, err := Victim(id, strings.Replace(prog, "{mpi}", mpi, 1))
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			r := p.Wait()
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("it took %v to end after a rank was killed", took)
			}
			if r.Status == 0 {
				t.Errorf("ended well without a rank:\n%v", r)
			}
			b.Fails(r, r.Status, "is lost")
			b.NothingLeft(id)
		})
	}
}

func TestAbort(t *testing.T) {
	for _, c := range []struct {
		mpi  string
		rank int
	}{{OpenMPI, 0}, {OpenMPI, 3}, {MPICH, 3}} {
		t.Run(fmt.Sprintf("%s-%d", c.mpi, c.rank), func(t *testing.T) {
			b := New(t)
			r := b.Zipped(Job{Clusters: []Cluster{A(2, OpenMPI), B(2, c.mpi)}}, bad(b), "abort", "42", fmt.Sprint(c.rank))
			b.Fails(r, 42, "MPI_Abort")
		})
	}
}

func TestExitStatus(t *testing.T) {
	b := New(t)
	b.Fails(b.Zipped(Job{Clusters: []Cluster{A(2, OpenMPI), B(1, OpenMPI)}}, bad(b), "exit", "7", "2"), 7)
	b.Fails(b.Zipped(Job{Clusters: []Cluster{A(2, OpenMPI), B(1, OpenMPI)}}, bad(b), "kill", "9", "0"), 128+9)
}

func TestNeverInit(t *testing.T) {
	b := New(t)
	b.Fails(b.Zipped(Job{Clusters: []Cluster{A(2, OpenMPI), B(2, MPICH)}}, bad(b), "noinit"), 1, "MPI_Init")
	// One cluster's program joins, the other's does not: the first must not wait for its time-out.
	mpi := strings.Replace(bad(b), "{mpi}", OpenMPI, 1)
	r := b.Zipped(Job{Clusters: []Cluster{{Name: "a", Ranks: 1, MPI: OpenMPI, Program: mpi}, {Name: "b", Ranks: 1, MPI: OpenMPI, Program: "/bin/true"}}, Timeout: "100s"}, "-", "finish")
	b.Fails(r, 1, "MPI_Init", "cluster b")
}

func TestStaticProgram(t *testing.T) {
	b := New(t)
	src := filepath.Join(t.TempDir(), "static.c")
	if err := os.WriteFile(src, []byte("int main(void) { return 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	exe := strings.TrimSuffix(src, ".c")
	b.OK(b.Run(nil, nil, "gcc", "-static", "-o", exe, src))
	b.Fails(b.Zipped(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, MPICH)}}, exe), 1, "statically linked", "zipper cc")
	// Behind a script it is found out by its ranks never joining.
	script := exe + ".sh"
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec "+exe+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.Fails(b.Zipped(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, MPICH)}}, script), 1, "statically linked", "MPI_Init")
}

func TestProgramMissing(t *testing.T) {
	b := New(t)
	prog := strings.Replace(bad(b), "{mpi}", OpenMPI, 1)
	r := b.Zipped(Job{Clusters: []Cluster{{Name: "a", Ranks: 1, MPI: OpenMPI, Program: prog}, {Name: "b", Ranks: 1, MPI: OpenMPI, Program: "/nowhere/prog"}}}, "-", "finish")
	b.Fails(r, 1, "cluster b", "/nowhere/prog does not exist")
}

func TestWrongBuild(t *testing.T) {
	b := New(t)
	prog := strings.Replace(bad(b), "{mpi}", OpenMPI, 1)
	b.Fails(b.Zipped(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, MPICH)}}, prog), 1, "linked to Open MPI", "MPICH", "program=")
}

func TestMpirunMissing(t *testing.T) {
	b := New(t)
	dir := t.TempDir() // a PATH without MPICH
	for _, tool := range []string{"mpirun.openmpi", "sh", "uname"} {
		if p, err := filepath.EvalSymlinks("/usr/bin/" + tool); err == nil {
			if err := os.Symlink(p, filepath.Join(dir, tool)); err != nil {
				t.Fatal(err)
			}
		}
	}
	r := b.Zipped(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, MPICH)}, Env: []string{"PATH=" + dir}}, bad(b), "finish")
	b.Fails(r, 1, "cluster b", "MPICH is not installed", "apt-get install")
}

func TestUnwritableRunDirectory(t *testing.T) {
	b := New(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := b.Zipped(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, MPICH)}, Flags: []string{"--run-dir", file}}, bad(b), "finish")
	b.Fails(r, 1, "run directory", "--run-dir")
}

func TestGarbageToForwarder(t *testing.T) {
	b := New(t)
	f := b.StartForwarder()
	args, id := b.runArgs(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, OpenMPI)}, Flags: []string{"--zipper", f.Addr}})
	p := b.Start(nil, nil, append(append(args, "--"), bad(b), "wait")...)
	b.waiting(p, 2)
	for i := range 50 {
		c, err := net.Dial("tcp", f.Addr)
		if err != nil {
			t.Fatal(err)
		}
		junk := make([]byte, 1+i*37)
		for k := range junk {
			junk[k] = byte(k*i*7 + i)
		}
		if _, err := c.Write(junk); err != nil {
			t.Logf("write %d: %v", i, err) // it may have been refused already
		}
		c.Close()
	}
	// The running job is untouched and another one is served.
	b.OK(b.Zipped(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, OpenMPI)}, Flags: []string{"--zipper", f.Addr}}, bad(b), "finish"))
	select {
	case <-p.done:
		t.Errorf("the running job ended:\n%v", p.Wait())
	default:
	}
	p.Signal(syscall.SIGTERM)
	p.Wait()
	b.NothingLeft(id)
}

func TestStoppedRank(t *testing.T) {
	b := New(t)
	args, id := b.runArgs(Job{Clusters: []Cluster{A(2, OpenMPI), B(2, OpenMPI)}})
	p := b.Start(nil, nil, append(append(args, "--"), bad(b), "stopped", "2")...)
	pid := 0
	b.WaitFor(time.Minute, "the victim's process id", func() bool {
		_, after, ok := strings.Cut(p.Stdout(), "stop me ")
		if !ok {
			return false
		}
		n, _ := fmt.Sscanf(after, "%d\n", &pid)
		return n == 1
	})
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	b.WaitFor(time.Minute, "the others to go on while a rank is stopped", func() bool { return strings.Contains(p.Stdout(), "the others went on") })
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	b.OK(p.Wait())
	b.NothingLeft(id)
}

func TestSignals(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(s.String(), func(t *testing.T) {
			b := New(t)
			args, id := b.runArgs(Job{Clusters: []Cluster{A(2, OpenMPI), B(2, MPICH)}})
			p := b.Start(nil, nil, append(append(args, "--"), bad(b), "wait")...)
			b.waiting(p, 4)
			begin := time.Now()
			p.Signal(s)
			b.Fails(p.Wait(), 128+int(s))
			if took := time.Since(begin); took > 15*time.Second {
				t.Errorf("it took %v to end", took)
			}
			b.NothingLeft(id)
		})
	}
}

// TestLauncherKilled: kill -9 leaves nobody to clean up; the kernel and the broken links have to end everything.
func TestLauncherKilled(t *testing.T) {
	b := New(t)
	args, id := b.runArgs(Job{Clusters: []Cluster{A(2, OpenMPI), B(2, MPICH)}})
	p := b.Start(nil, nil, append(append(args, "--"), bad(b), "wait")...)
	b.waiting(p, 4)
	p.Signal(syscall.SIGKILL)
	b.WaitFor(20*time.Second, "all processes to end after kill -9 of zipper run", func() bool { return len(Processes(id)) == 0 })
	// The next run removes what it could not.
	b.OK(b.Zipped(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, OpenMPI)}}, bad(b), "finish"))
	b.NothingLeft(id)
}

func TestMpirunKilled(t *testing.T) {
	for _, mpi := range []string{OpenMPI, MPICH} {
		t.Run(mpi, func(t *testing.T) {
			b := New(t)
			args, id := b.runArgs(Job{Clusters: []Cluster{A(2, OpenMPI), B(2, mpi)}})
			p := b.Start(nil, nil, append(append(args, "--"), bad(b), "wait")...)
			b.waiting(p, 4)
			n := 0
			for _, pid := range Processes(id) {
				comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
				env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
				name := strings.TrimSpace(string(comm))
				if (strings.HasPrefix(name, "mpirun") || strings.HasPrefix(name, "mpiexec") || strings.HasPrefix(name, "orterun")) && strings.Contains(string(env), "\x00ZIPPER_CLUSTER=b\x00") {
					n++
					if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
						t.Fatal(err)
					}
				}
			}
			if n != 1 {
				t.Fatalf("found %d mpiruns of cluster b", n)
			}
			r := p.Wait()
			if r.Status == 0 {
				t.Errorf("ended well though mpirun was killed:\n%v", r)
			}
			b.NothingLeft(id)
		})
	}
}

func TestUsageErrors(t *testing.T) {
	b := New(t)
	for _, args := range [][]string{
		{"run"}, {"run", "--cluster", "a", "--", "x"}, {"run", "--cluster", "a=0", "--", "x"}, {"run", "--cluster", "a=1,mpi=lam", "--", "x"},
		{"run", "--cluster", "a=1,colour=red", "--", "x"}, {"run", "--cluster", "a=1"}, {"run", "--bogus"}, {"run", "--cluster", "a=1", "--zipper", "h:port", "--", "x"},
		{"exec"}, {"exec", "--", "true"}, {"join", "--", "true"}, {"forwarder", "extra"}, {"cc"}, {"bogus"},
	} {
		r := b.Run(nil, nil, append([]string{b.Zipper}, args...)...)
		if r.Status != 2 || r.Stderr == "" {
			t.Errorf("exit status %d, want 2 with a message:\n%v", r.Status, r)
		}
	}
}

func TestStandardInput(t *testing.T) {
	for _, mpi := range []string{OpenMPI, MPICH} {
		t.Run(mpi, func(t *testing.T) {
			b := New(t)
			r := b.OK(b.Zipped(Job{Clusters: []Cluster{A(2, mpi), B(1, OpenMPI)}, Stdin: []byte("one\ntwo\n")}, bad(b), "stdin"))
			if r.Stdout != "others read 0 bytes\none\ntwo\n" {
				t.Errorf("got %q", r.Stdout)
			}
		})
	}
}

func TestTaggedOutputAndSummary(t *testing.T) {
	b := New(t)
	r := b.OK(b.Zipped(Job{Clusters: []Cluster{A(2, OpenMPI), B(2, MPICH)}, Flags: []string{"--tag", "--stats"}}, bad(b), "finish"))
	for i := range 4 {
		if want := fmt.Sprintf("[%d] finished %d of 4\n", i, i); !strings.Contains(r.Stdout, want) {
			t.Errorf("no line %q:\n%v", want, r)
		}
	}
	b.Fails(r, 0, "cluster a (Open MPI): virtual ranks 0 to 1", "cluster b (MPICH): virtual ranks 2 to 3", "crossed a -> b:", "crossed b -> a:")
	r = b.OK(b.Zipped(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, OpenMPI)}, Flags: []string{"--json"}}, bad(b), "finish"))
	var out struct {
		Status  int
		Traffic []struct{ Messages uint64 }
	}
	if err := json.Unmarshal([]byte(r.Stderr), &out); err != nil || out.Status != 0 || len(out.Traffic) != 2 || out.Traffic[0].Messages == 0 {
		t.Errorf("summary %+v, %v:\n%v", out, err, r)
	}
}
