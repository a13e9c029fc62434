package e2e

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/optional"
	"github.com/leidenzipper/zipper/internal/wire"
)

// joinHalf has the settings with which a cluster's half of a job joins.
type joinHalf struct{ secret, cluster, layout string }

// refusesSecond lets one half gather and then another one join, which must be refused with these
// words. The first half must fail too, with the reason.
func (b *Bed) refusesSecond(prog, what string, halves [2]joinHalf, words ...string) {
	b.T.Helper()
	f := b.StartForwarder()
	id := JobID(b.T)
	join := func(h joinHalf) *Proc { return half(b, id, h.secret, h.cluster, h.layout, f.Addr, prog, "finish") }
	first := join(halves[0])
	b.WaitFor(time.Minute, "the first half to join",
		func() bool { return strings.Contains(f.Stderr(), "job begins to gather") })
	second := join(halves[1]).Wait()
	if second.Status == 0 {
		b.T.Errorf("%s: accepted:\n%v", what, second)
	}
	b.Fails(second, second.Status, words...)
	if r := first.Wait(); r.Status == 0 {
		b.T.Errorf("%s: the first half did not notice:\n%v", what, r)
	} else {
		b.Fails(r, r.Status, append(words, "refused")...)
	}
	b.NothingLeft(id)
}

func TestWrongSecret(t *testing.T) {
	t.Parallel() // mostly waits for a time-out
	b := New(t)
	prog := strings.Replace(bad(b), "{mpi}", OpenMPI, 1)
	b.refusesSecond(prog, "the wrong secret", [2]joinHalf{{"right", "a", "a=1,b=1"}, {"other", "b", "a=1,b=1"}},
		"secret")
}

func TestForwarderDemandsSecret(t *testing.T) {
	b := New(t)
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(SecretOf("the operator's")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := b.StartForwarder("--secret-file", file)
	j := Job{Clusters: []Cluster{A(1, OpenMPI), B(1, OpenMPI)}, Flags: []string{"--zipper", f.Addr}}
	r := b.Zipped(j, bad(b), "finish")
	if r.Status == 0 {
		t.Errorf("a job without the forwarder's secret was served:\n%v", r)
	}
	b.Fails(r, r.Status, "zipper: cluster ", "ended with exit status 1: cluster ", "cannot join job ",
		"refused (wrong secret)")
	j.Flags = append(j.Flags, "--secret-file", file)
	b.OK(b.Zipped(j, bad(b), "finish"))
}

// TestForwarderNotListening checks that a missing forwarder is reported while ranks still try, and
// once more at the end, for the job.
func TestForwarderNotListening(t *testing.T) {
	b := New(t)
	const addr = "127.0.0.1:1"
	r := b.Zipped(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, OpenMPI)},
		Flags: []string{"--zipper", addr, "--timeout", "3s"}}, bad(b), "finish")
	b.Fails(r, 1, "warning: forwarder "+addr+" is not reached yet: ", "trying for 3s", "zipper: cluster ",
		"not reachable within 3s")
}

func TestWrongJob(t *testing.T) {
	b := New(t)
	f := b.StartForwarder("--job", "another")
	r := b.Zipped(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, OpenMPI)}, Flags: []string{"--zipper", f.Addr}}, bad(b),
		"finish")
	if r.Status == 0 {
		t.Errorf("a job that the forwarder was not told of was served:\n%v", r)
	}
	b.Fails(r, r.Status, "job")
}

func TestWrongProtocolVersion(t *testing.T) {
	b := New(t)
	// A forwarder of a future version: its challenge begins with the version; the rest may have any
	// form.
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
	header := n - wire.ChallengeLen
	binary.LittleEndian.PutUint32(frame[header:], 99)   // the newest version that it supports,
	binary.LittleEndian.PutUint32(frame[header+4:], 99) // and the oldest
	h, err := wire.ParseHeader(frame)
	if err != nil {
		t.Fatal(err)
	}
	h.BodySum = wire.Sum(frame[header:n])
	h.Append(frame[:0])
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
	r := b.Zipped(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, OpenMPI)},
		Flags: []string{"--zipper", ln.Addr().String()}, Timeout: "20s"}, bad(b), "finish")
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
	b.refusesSecond(prog, "cluster a twice", [2]joinHalf{{"s", "a", "a=1,b=1"}, {"s", "a", "a=1,b=1"}}, "a")
}

func TestSizesDisagree(t *testing.T) {
	t.Parallel() // mostly waits for a time-out
	b := New(t)
	prog := strings.Replace(bad(b), "{mpi}", OpenMPI, 1)
	b.refusesSecond(prog, "sizes that disagree", [2]joinHalf{{"s", "a", "a=1,b=1"}, {"s", "b", "a=1,b=2"}}, "b=")
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
	r := b.Zipped(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, MPICH)}, Flags: []string{"--zipper", addr},
		Timeout: "5s"}, bad(b), "finish")
	if r.Status == 0 {
		t.Errorf("ran without a forwarder:\n%v", r)
	}
	b.Fails(r, r.Status, addr)
	if last := strings.TrimSpace(r.Stderr); !strings.HasPrefix(last[strings.LastIndexByte(last, '\n')+1:],
		"zipper: cluster ") {
		t.Errorf("the last line does not say which cluster failed:\n%v", r)
	}
}

func TestNeverInit(t *testing.T) {
	b := New(t)
	b.Fails(b.Zipped(Job{Clusters: []Cluster{A(2, OpenMPI), B(2, MPICH)}}, bad(b), "noinit"), 1, "MPI_Init")
	// The program of one cluster joins, that of the other does not: the first must not wait for its
	// time-out.
	mpi := strings.Replace(bad(b), "{mpi}", OpenMPI, 1)
	r := b.Zipped(Job{Clusters: []Cluster{{Name: "a", Ranks: 1, MPI: OpenMPI, Program: mpi},
		{Name: "b", Ranks: 1, MPI: OpenMPI, Program: "/bin/true"}}, Timeout: "100s"}, "-", "finish")
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
	// For a script the error is found only because its ranks never join.
	script := exe + ".sh"
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec "+exe+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.Fails(b.Zipped(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, MPICH)}}, script), 1, "statically linked", "MPI_Init")
}

// TestAddressSpace checks that the ranks report a limit of address space, as batch systems set it,
// that is below what the engine reserves, instead of crashing in Go's start.
func TestAddressSpace(t *testing.T) {
	optional.Processor(t, "the limit of address space, which the emulator itself would exceed")
	b := New(t)
	clusters := []Cluster{A(1, OpenMPI), B(1, MPICH)}
	limited := func(kib string) Result {
		return b.Zipped(Job{Clusters: clusters}, "/bin/sh", "-c", `ulimit -v "$0"; exec "$@"`, kib, bad(b), "finish")
	}
	for _, kib := range []string{"600000", "2000000"} {
		r := limited(kib)
		b.Fails(r, 1, "ulimit -v", "h_vmem", "raise it")
		if strings.Contains(r.Stderr, "goroutine") || strings.Contains(r.Stderr, "runtime stack") {
			t.Errorf("with %s KiB Go's own trace is shown:\n%v", kib, r)
		}
	}
	b.OK(limited("3000000"))
}

func TestProgramMissing(t *testing.T) {
	b := New(t)
	prog := strings.Replace(bad(b), "{mpi}", OpenMPI, 1)
	r := b.Zipped(Job{Clusters: []Cluster{{Name: "a", Ranks: 1, MPI: OpenMPI, Program: prog},
		{Name: "b", Ranks: 1, MPI: OpenMPI, Program: "/nowhere/prog"}}}, "-", "finish")
	b.Fails(r, 1, "cluster b", "/nowhere/prog does not exist")
}

func TestWrongBuild(t *testing.T) {
	b := New(t)
	prog := strings.Replace(bad(b), "{mpi}", OpenMPI, 1)
	b.Fails(b.Zipped(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, MPICH)}}, prog), 1, "linked to Open MPI", "MPICH",
		"program=")
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
	r := b.Zipped(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, MPICH)}, Flags: []string{"--run-dir", file}}, bad(b),
		"finish")
	b.Fails(r, 1, "run directory", "--run-dir")
}

// TestUnknownSettingsAreReportedOnce checks that values of libmmpi's variables that it does not
// understand are reported once, and that the job runs.
func TestUnknownSettingsAreReportedOnce(t *testing.T) {
	b := New(t)
	for setting, word := range map[string]string{
		"ZIPPER_SERVED_WINDOWS=off":       "ZIPPER_SERVED_WINDOWS=off is neither 0 nor 1",
		"ZIPPER_SERVED_WINDOWS=No":        "",
		"ZIPPER_SHARED_FS=/scratch:there": "ZIPPER_SHARED_FS=/scratch:there: want whole paths",
		"ZIPPER_SHARED_FS=/scratch::/tmp": "",
	} {
		r := b.OK(b.Zipped(Job{Clusters: []Cluster{A(2, OpenMPI), B(1, MPICH)}, Env: []string{setting}}, bad(b),
			"finish"))
		variable, _, _ := strings.Cut(setting, "=")
		if word == "" && strings.Contains(r.Stderr, variable) || word != "" && strings.Count(r.Stderr, word) != 1 {
			t.Errorf("%s: want %q once:\n%v", setting, word, r)
		}
	}
}

// TestErrorsNameTheRemedy checks that the most common mistakes of users get an error that says what
// to do.
func TestErrorsNameTheRemedy(t *testing.T) {
	b := New(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s"), 0o644); err != nil {
		t.Fatal(err)
	}
	jobFile, envFile := filepath.Join(t.TempDir(), "job.yaml"), filepath.Join(t.TempDir(), "env")
	if err := errors.Join(os.WriteFile(jobFile, []byte("secret_file: "+secret+"\n"), 0o644),
		os.WriteFile(envFile, []byte("ZIPPER_JOB=j\nZIPPER_SECRET=s\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	short, made := filepath.Join(t.TempDir(), "short"), filepath.Join(t.TempDir(), "made")
	if err := os.WriteFile(short, []byte("hush\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.OK(b.Run(nil, nil, b.Zipper, "secret", made))
	for _, c := range []struct {
		args   []string
		status int
		word   string
	}{
		{[]string{"run", "--timeout", "10", "--cluster", "a=1", "--", "true"}, 2,
			"--timeout 10: want a duration with its unit, such as 10s"},
		{[]string{"exec", "--", "true"}, 2, "no job: give --job"},
		{[]string{"run", "--cluster", "a=1000000000", "--", "true"}, 2, "want at least 1 and at most 1048576"},
		{[]string{"doctor", "--cluster", "a=1", "/nowhere/prog.{mpi}"}, 1, "1 problem found"},
		{[]string{"join", "--job", "j", "--cluster", "a", "--layout", "a=1,b=1", "--", "true"}, 2,
			"set ZIPPER_SECRET or ZIPPER_SECRET_FILE to the job's secret (as flags: --secret-file)"},
		{[]string{"run", "--cluster", "a=1", "--", "./prog.{mip}"}, 1,
			"{mip} is not a placeholder; {mpi}, {arch} and {cluster} are"},
		{[]string{"run", "--cluster", "a=1,dir=/nowhere", "--", "true"}, 1, "dir=/nowhere: there is no such directory"},
		{[]string{"run", "--cluster", "a=1", "--zipper", "h=a,x", "--", "true"}, 2,
			`zipper h:7475 is named for cluster "x"`},
		{[]string{"run", "--cluster", "a=1", "--zipper", "--", "true"}, 2,
			`--zipper: forwarder "--": that is a flag, not an address`},
		{[]string{"run", "--cluster", "a=1,dual=x@127.0.0.1", "--", "true"}, 2, `x@127.0.0.1 is for cluster "x"`},
		{[]string{"run", "--secret-file", secret, "--cluster", "a=0", "--", "true"}, 2,
			"others on this host can use the secret"},
		{[]string{"run", "--file", jobFile, "--cluster", "a=1", "--", "true"}, 2,
			"secret_file: others on this host can use the secret in " + secret},
		{[]string{"join", "--job", "j", "--secret-file", secret, "--cluster", "a", "--layout", "a=1", "--", "true"}, 2,
			"others on this host can use the secret"},
		{[]string{"exec", "--env", envFile, "--", "true"}, 2,
			"others on this host can use the secret in " + envFile},
		{[]string{"forwarder", "--secret-file", short}, 2, "want 128: make one with zipper secret"},
		{[]string{"run", "--secret-file", short, "--cluster", "a=1", "--", "true"}, 2, "want 128"},
		{[]string{"run", "--secret-file", made, "--cluster", "a=0", "--", "true"}, 2, "want at least 1"},
		{[]string{"secret", made}, 1, "exists already"},
		{[]string{"calibrate", "--file", jobFile, "--output", "/nowhere/platform.yaml"}, 1,
			"--output: cannot write the result"},
		{[]string{"forwarder", "--listen", "192.0.2.1"}, 1, "this host does not have that address"},
		{[]string{"status", "127.0.0.1:1"}, 1, "start one with zipper forwarder"},
	} {
		b.Fails(b.Run(nil, nil, append([]string{b.Zipper}, c.args...)...), c.status, c.word)
	}
	if r := b.OK(b.Run(nil, nil, b.Zipper, "--version")); !strings.Contains(r.Stdout, "version 0.1.0 ") ||
		!strings.Contains(r.Stdout, "(protocol ") {
		t.Errorf("%v", r)
	}
	for _, args := range [][]string{{"--show", "--mpi", "mpich"}, {"--mpi", "mpich", "--show"}} {
		r := b.OK(b.Run(nil, nil, append(append([]string{b.Zipper, "cc"}, args...), "-o", "x", "x.c")...))
		if !strings.Contains(r.Stdout, "mpich -o x x.c ") || strings.Contains(r.Stdout, "--show") {
			t.Errorf("%v", r)
		}
	}
}

// TestExecReportsErrorOfItsHost checks that an error of one host only is reported, once, although
// rank 0 is on another host.
func TestExecReportsErrorOfItsHost(t *testing.T) {
	b := New(t)
	job := []string{"ZIPPER_JOB=j", "ZIPPER_SECRET=" + SecretOf("s"), "ZIPPER_CLUSTER=a", "ZIPPER_LAYOUT=a=4"}
	exec := func(argv []string, env ...string) Result {
		return b.Run(nil, append(env, job...), append([]string{b.Zipper, "exec"}, argv...)...)
	}
	for _, env := range [][2]string{{"OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_LOCAL_RANK="},
		{"PMI_RANK=2", "MPI_LOCALRANKID="}} {
		b.Fails(exec([]string{"--", "/nowhere/prog"}, env[0], env[1]+"0"), 1, "rank 2, on ",
			"program /nowhere/prog does not exist")
		b.Fails(exec([]string{"--timeout", "soon", "--", "true"}, env[0], env[1]+"0"), 2, "rank 2, on ",
			"want a duration")
		if r := exec([]string{"--", "/nowhere/prog"}, env[0], env[1]+"1"); r.Status != 1 || r.Stderr != "" {
			t.Errorf("the second rank of a host says it too:\n%v", r)
		}
	}
}

func TestUsageErrors(t *testing.T) {
	b := New(t)
	for _, args := range [][]string{
		{"run"}, {"run", "--cluster", "a", "--", "x"}, {"run", "--cluster", "a=0", "--", "x"},
		{"run", "--cluster", "a=1,mpi=lam", "--", "x"},
		{"run", "--cluster", "a=1,colour=red", "--", "x"}, {"run", "--cluster", "a=1"}, {"run", "--bogus"},
		{"run", "--cluster", "a=1", "--zipper", "h:port", "--", "x"},
		{"exec"}, {"exec", "--", "true"}, {"join", "--", "true"}, {"forwarder", "extra"}, {"cc"}, {"bogus"},
	} {
		r := b.Run(nil, nil, append([]string{b.Zipper}, args...)...)
		if r.Status != 2 || r.Stderr == "" {
			t.Errorf("exit status %d, want 2 with a message:\n%v", r.Status, r)
		}
	}
}
