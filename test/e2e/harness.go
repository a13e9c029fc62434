package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// MPI libraries.
const (
	OpenMPI = "openmpi"
	MPICH   = "mpich"
)

// Limit bounds every run; one that takes longer is killed and fails its test. In the long tests, which do more, it is four times as much.
const Limit = 2 * time.Minute

// Cluster is one cluster of a job. Clusters of more than two ranks should use Open MPI: MPICH's ranks never yield.
type Cluster struct {
	Name    string
	Ranks   int
	MPI     string
	Program string // empty: that of the job
	Dir     string // working directory; empty: the repository's root
}

// A, B and C are the usual clusters.
func A(ranks int, mpi string) Cluster { return Cluster{Name: "a", Ranks: ranks, MPI: mpi} }
func B(ranks int, mpi string) Cluster { return Cluster{Name: "b", Ranks: ranks, MPI: mpi} }
func C(ranks int, mpi string) Cluster { return Cluster{Name: "c", Ranks: ranks, MPI: mpi} }

// Result is how a command came out.
type Result struct {
	Command string
	Stdout  string
	Stderr  string
	Status  int // exit status; 128 + signal when a signal ended it
	Took    time.Duration
}

// String shows the whole of it, for failure messages.
func (r Result) String() string {
	return fmt.Sprintf("%s\nexit status %d after %v\n--- stdout\n%s--- stderr\n%s---", r.Command, r.Status, r.Took.Round(time.Millisecond), r.Stdout, r.Stderr)
}

// Bed is where a test runs.
type Bed struct {
	T      *testing.T
	Root   string        // of the repository
	Zipper string        // bin/zipper
	Limit  time.Duration // of every run
}

// long tells whether the long tests are asked for.
func long() bool { return os.Getenv("ZIPPER_LONG") != "" }

// New skips the test unless end-to-end tests are asked for.
func New(t *testing.T) *Bed {
	t.Helper()
	if os.Getenv("ZIPPER_E2E") == "" {
		t.Skip("end-to-end tests run with ZIPPER_E2E=1 after scripts/build (scripts/test does both)")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	b := &Bed{T: t, Root: root, Zipper: filepath.Join(root, "bin", "zipper"), Limit: Limit}
	if long() {
		b.Limit *= 4
	}
	for _, f := range []string{"bin/zipper", "lib/libmmpi-openmpi.so", "lib/libmmpi-mpich.so"} {
		if _, err := os.Stat(filepath.Join(root, f)); err != nil {
			t.Fatalf("%s is not there: run scripts/build", f)
		}
	}
	return b
}

var compiled sync.Map // output path → *compilation: every program is built once per test process

type compilation struct {
	once sync.Once
	err  error
}

// Compile builds a program of the repository with the MPI's own compiler wrapper (mpicc, mpicxx or mpifort, by
// the source's suffix) and returns its path. Extra arguments go to the compiler.
func (b *Bed) Compile(mpi, source string, extra ...string) string {
	b.T.Helper()
	src := filepath.Join(b.Root, source)
	base := strings.TrimSuffix(filepath.Base(source), filepath.Ext(source))
	if len(extra) > 0 {
		base += strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
				return r
			}
			return '_'
		}, strings.Join(extra, ""))
	}
	out := filepath.Join(b.Root, "build", "e2e", mpi, base)
	v, _ := compiled.LoadOrStore(out, &compilation{})
	c := v.(*compilation)
	c.once.Do(func() {
		compiler := map[string]string{".c": "mpicc", ".cc": "mpicxx", ".cpp": "mpicxx", ".f": "mpifort", ".f90": "mpifort", ".F90": "mpifort", ".f08": "mpifort"}[filepath.Ext(source)]
		if compiler == "" {
			c.err = fmt.Errorf("no compiler for %s", source)
			return
		}
		if c.err = os.MkdirAll(filepath.Dir(out), 0o755); c.err != nil {
			return
		}
		args := []string{"-O1", "-g", "-o", out, src}
		if strings.HasPrefix(compiler, "mpif") {
			args = append(args, "-J"+filepath.Dir(out))
		} else {
			args = append(args, "-Wall")
		}
		cmd := exec.Command(compiler+"."+mpi, append(append(args, extra...), "-lm")...)
		if msg, err := cmd.CombinedOutput(); err != nil {
			c.err = fmt.Errorf("%s: %w\n%s", cmd, err, msg)
		}
	})
	if c.err != nil {
		b.T.Fatal(c.err)
	}
	return out
}

// Native runs a program under the native mpirun alone: the oracle.
func (b *Bed) Native(mpi string, ranks int, argv ...string) Result {
	b.T.Helper()
	var args []string
	if mpi == OpenMPI {
		args = append(args, "--oversubscribe", "--bind-to", "none")
		if os.Geteuid() == 0 {
			args = append(args, "--allow-run-as-root")
		}
	}
	args = append(append(args, "-n", fmt.Sprint(ranks)), argv...)
	// As zipper run: Open MPI's other components for windows crash or fail where a process may not read another one's memory.
	return b.Run(nil, []string{"OMPI_MCA_mpi_yield_when_idle=1", "OMPI_MCA_osc=^rdma,ucx"}, append([]string{"mpirun." + mpi}, args...)...)
}

// Job describes a zipped run.
type Job struct {
	Clusters []Cluster
	Stdin    []byte   // for virtual rank 0; nil: none
	Flags    []string // more flags for zipper run
	Env      []string // more environment for it
	Timeout  string   // for joining; default 60s
}

// Zipped runs a program as one job over the clusters and checks that nothing is left of it. "{mpi}" in argv
// stands for each cluster's MPI library.
func (b *Bed) Zipped(j Job, argv ...string) Result {
	b.T.Helper()
	args, id := b.runArgs(j)
	args = append(append(args, "--"), argv...)
	r := b.Run(j.Stdin, j.Env, args...)
	b.NothingLeft(id)
	return r
}

// runArgs is the command line of zipper run up to the program, and the job's id.
func (b *Bed) runArgs(j Job) (args []string, id string) {
	id = JobID(b.T)
	args = []string{b.Zipper, "run", "--job", id}
	for _, c := range j.Clusters {
		spec := fmt.Sprintf("%s=%d", c.Name, c.Ranks)
		if c.MPI != "" {
			spec += ",mpi=" + c.MPI
		}
		if c.Program != "" {
			spec += ",program=" + c.Program
		}
		if c.Dir != "" {
			spec += ",dir=" + c.Dir
		}
		args = append(args, "--cluster", spec)
	}
	if j.Timeout != "" {
		args = append(args, "--timeout", j.Timeout)
	}
	return append(args, j.Flags...), id
}

var jobs struct {
	sync.Mutex
	n int
}

// JobID makes a job id that no other test has.
func JobID(t *testing.T) string {
	jobs.Lock()
	defer jobs.Unlock()
	jobs.n++
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, t.Name())
	return fmt.Sprintf("e2e-%d-%d-%s", os.Getpid(), jobs.n, name)
}

// Run runs any command to its end, within its limit, from the repository's root.
func (b *Bed) Run(stdin []byte, env []string, argv ...string) Result {
	b.T.Helper()
	p := b.Start(stdin, env, argv...)
	return p.Wait()
}

// Proc is a command that runs.
type Proc struct {
	b      *Bed
	Cmd    *exec.Cmd
	out    buffer
	errs   buffer
	begin  time.Time
	done   chan struct{}
	cancel context.CancelFunc
}

// buffer is safe for concurrent use.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *buffer) Write(p []byte) (int, error) { w.mu.Lock(); defer w.mu.Unlock(); return w.b.Write(p) }
func (w *buffer) String() string              { w.mu.Lock(); defer w.mu.Unlock(); return w.b.String() }

// Start starts a command in a process group of its own; it is killed when its limit or the test ends.
func (b *Bed) Start(stdin []byte, env []string, argv ...string) *Proc {
	b.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), b.Limit)
	p := &Proc{b: b, begin: time.Now(), done: make(chan struct{}), cancel: cancel}
	p.Cmd = exec.CommandContext(ctx, argv[0], argv[1:]...)
	p.Cmd.Dir = b.Root
	p.Cmd.Env = append(os.Environ(), env...)
	if stdin != nil {
		p.Cmd.Stdin = bytes.NewReader(stdin)
	}
	p.Cmd.Stdout, p.Cmd.Stderr = &p.out, &p.errs
	p.Cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.Cmd.Cancel = func() error { return syscall.Kill(-p.Cmd.Process.Pid, syscall.SIGTERM) }
	p.Cmd.WaitDelay = 10 * time.Second
	if err := p.Cmd.Start(); err != nil {
		cancel()
		b.T.Fatal(err)
	}
	go func() {
		_ = p.Cmd.Wait()
		close(p.done)
	}()
	b.T.Cleanup(func() { cancel(); <-p.done })
	return p
}

// Stdout is what it has written so far.
func (p *Proc) Stdout() string { return p.out.String() }

// Stderr is what it has written so far.
func (p *Proc) Stderr() string { return p.errs.String() }

// Signal sends one to the command itself.
func (p *Proc) Signal(s syscall.Signal) {
	p.b.T.Helper()
	if err := p.Cmd.Process.Signal(s); err != nil {
		p.b.T.Fatal(err)
	}
}

// Wait waits for its end.
func (p *Proc) Wait() Result {
	p.b.T.Helper()
	<-p.done
	took := time.Since(p.begin)
	r := Result{Command: p.Cmd.String(), Stdout: p.out.String(), Stderr: p.errs.String(), Status: p.Cmd.ProcessState.ExitCode(), Took: took}
	if ws, ok := p.Cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		r.Status = 128 + int(ws.Signal())
	}
	if took >= p.b.Limit {
		p.b.T.Fatalf("did not end within %v:\n%v", p.b.Limit, r)
	}
	return r
}

// WaitFor polls until ok; it fails the test after limit, with what it was waiting for.
func (b *Bed) WaitFor(limit time.Duration, what string, ok func() bool) {
	b.T.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			b.T.Fatalf("waited %v in vain for %s", limit, what)
		}
	}
}

// Processes lists the processes whose environment says that they belong to the job.
func Processes(id string) []int {
	var pids []int
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		env, err := os.ReadFile(f)
		if err == nil && bytes.Contains(append([]byte{0}, env...), []byte("\x00ZIPPER_JOB="+id+"\x00")) {
			var pid int
			if _, err := fmt.Sscanf(f, "/proc/%d/environ", &pid); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// NothingLeft fails the test if processes or files of the job are still there.
func (b *Bed) NothingLeft(id string) {
	b.T.Helper()
	for _, p := range Processes(id) {
		cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p))
		b.T.Errorf("process %d of job %s is left: %q", p, id, cmd)
	}
	for _, dir := range []string{os.TempDir(), "/dev/shm"} {
		left, _ := filepath.Glob(filepath.Join(dir, "zipper*"+id+"*"))
		if len(left) > 0 {
			b.T.Errorf("files of job %s are left: %v", id, left)
		}
	}
}

// OK fails the test unless the command ended with status 0.
func (b *Bed) OK(r Result) Result {
	b.T.Helper()
	if r.Status != 0 {
		b.T.Fatalf("failed:\n%v", r)
	}
	return r
}

// Fails checks that the command ended with the status and said all the words on standard error.
func (b *Bed) Fails(r Result, status int, words ...string) {
	b.T.Helper()
	if r.Status != status {
		b.T.Errorf("exit status %d, want %d:\n%v", r.Status, status, r)
	}
	for _, w := range words {
		if !strings.Contains(r.Stderr, w) {
			b.T.Errorf("standard error does not say %q:\n%v", w, r)
		}
	}
}

// Same compares the lines of two outputs; ranks print in any order, so the lines are sorted first. edit, if not
// nil, changes each line before (to drop timings); a line that it makes empty is left out.
func (b *Bed) Same(native, zipped Result, edit func(string) string) {
	b.T.Helper()
	want, got := lines(native.Stdout, edit), lines(zipped.Stdout, edit)
	if !slices.Equal(want, got) {
		b.T.Errorf("zipped output differs from native output:\n%s\n\nnative: %v\n\nzipped: %v", firstDifference(want, got), native, zipped)
	}
}

func lines(s string, edit func(string) string) []string {
	var out []string
	for l := range strings.Lines(s) {
		l = strings.TrimRight(l, "\r\n")
		if edit != nil {
			if l = edit(l); l == "" {
				continue
			}
		}
		out = append(out, l)
	}
	slices.Sort(out)
	return out
}

func firstDifference(want, got []string) string {
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(want):
			return fmt.Sprintf("only zipped: %q", got[i])
		case i >= len(got):
			return fmt.Sprintf("only native: %q", want[i])
		case want[i] != got[i]:
			return fmt.Sprintf("native %q\nzipped %q", want[i], got[i])
		}
	}
	return "none"
}

// Differential runs a program natively with MPI library mpi and zipped over the clusters, both must succeed, and
// compares what they print. argv may use "{mpi}".
func (b *Bed) Differential(mpi string, clusters []Cluster, edit func(string) string, argv ...string) {
	b.T.Helper()
	ranks := 0
	for _, c := range clusters {
		ranks += c.Ranks
	}
	native := make([]string, len(argv))
	for i, w := range argv {
		native[i] = strings.ReplaceAll(w, "{mpi}", mpi)
	}
	n := b.OK(b.Native(mpi, ranks, native...))
	z := b.OK(b.Zipped(Job{Clusters: clusters}, argv...))
	b.Same(n, z, edit)
}

// Forwarder is a forwarder that runs by itself.
type Forwarder struct {
	*Proc
	Addr string
}

// StartForwarder starts one on a free port of the loopback interface.
func (b *Bed) StartForwarder(flags ...string) *Forwarder {
	b.T.Helper()
	p := b.Start(nil, nil, append([]string{b.Zipper, "forwarder", "--listen", "127.0.0.1:0", "--log", "info"}, flags...)...)
	f := &Forwarder{Proc: p}
	b.WaitFor(20*time.Second, "the forwarder to listen", func() bool {
		_, after, ok := strings.Cut(p.Stderr(), `listening`)
		if !ok {
			return false
		}
		i := strings.Index(after, "127.0.0.1:")
		if i < 0 {
			return false
		}
		f.Addr, _, _ = strings.Cut(after[i:], `"`)
		return f.Addr != ""
	})
	return f
}

// errNoProcess tells that nothing matched.
var errNoProcess = errors.New("no such process")

// Victim finds a process of the job that runs the program.
func Victim(id, program string) (int, error) {
	for _, p := range Processes(id) {
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p))
		if err == nil && exe == program {
			return p, nil
		}
	}
	return 0, errNoProcess
}
