package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/leidenzipper/zipper/internal/marked"
	"github.com/leidenzipper/zipper/internal/optional"
)

// Run runs a command to its end, within its limit, from the repository's root.
func (b *Bed) Run(stdin []byte, env []string, argv ...string) Result {
	b.T.Helper()
	p := b.Start(stdin, env, argv...)
	return p.Wait()
}

// Proc is a running command.
type Proc struct {
	b    *Bed
	Cmd  *exec.Cmd
	out  buffer
	errs buffer
	// mark is in the environment of all processes that the command starts.
	mark   string
	begin  time.Time
	done   chan struct{}
	cancel context.CancelFunc
}

var runs atomic.Int64

// buffer is safe for concurrent use.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *buffer) Write(p []byte) (int, error) { w.mu.Lock(); defer w.mu.Unlock(); return w.b.Write(p) }
func (w *buffer) String() string              { w.mu.Lock(); defer w.mu.Unlock(); return w.b.String() }

// Start starts a command in a process group of its own. The command is killed when its limit or the
// test ends, and the processes that it leaves behind at the end of the test. If the tests
// themselves are killed it is told to end.
func (b *Bed) Start(stdin []byte, env []string, argv ...string) *Proc {
	b.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), b.Limit)
	p := &Proc{b: b, mark: fmt.Sprintf("E2E_RUN=%d-%d", os.Getpid(), runs.Add(1)), begin: time.Now(),
		done: make(chan struct{}), cancel: cancel}
	p.Cmd = exec.CommandContext(ctx, argv[0], argv[1:]...)
	p.Cmd.Dir = b.Root
	// Without a buffer Python writes a line in two pieces, between which others' lines may come.
	p.Cmd.Env = append(append(os.Environ(), "PYTHONUNBUFFERED=", p.mark), env...)
	if stdin != nil {
		p.Cmd.Stdin = bytes.NewReader(stdin)
	}
	p.Cmd.Stdout, p.Cmd.Stderr = &p.out, &p.errs
	p.Cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	p.Cmd.Cancel = func() error { return syscall.Kill(-p.Cmd.Process.Pid, syscall.SIGTERM) }
	p.Cmd.WaitDelay = 10 * time.Second
	started := make(chan error)
	go func() {
		// The kernel sends Pdeathsig when the thread that started the child ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.Cmd.Start()
		started <- err
		if err == nil {
			_ = p.Cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		cancel()
		b.T.Fatal(err)
	}
	b.T.Cleanup(func() { cancel(); <-p.done; p.killLeftovers() })
	return p
}

// killLeftovers kills the processes that the command has left behind: processes that it has started
// and that their launcher did not end, which may compute for good. Only native runs may leave any
// (NothingLeft).
func (p *Proc) killLeftovers() { marked.Kill(p.mark) }

// Serve starts a command that runs as long as the test, without the limit of a run.
func (b *Bed) Serve(env []string, argv ...string) *Proc {
	b.T.Helper()
	c := *b
	c.Limit = asLongAsTests
	return c.Start(nil, env, argv...)
}

// asLongAsTests is longer than the time that go test gives to tests.
const asLongAsTests = 24 * time.Hour

// Stdout returns the standard output so far.
func (p *Proc) Stdout() string { return p.out.String() }

// Stderr returns the standard error so far.
func (p *Proc) Stderr() string { return p.errs.String() }

// Signal sends a signal to the command itself.
func (p *Proc) Signal(s syscall.Signal) {
	p.b.T.Helper()
	if err := p.Cmd.Process.Signal(s); err != nil {
		p.b.T.Fatal(err)
	}
}

// Wait waits for the end of the command.
func (p *Proc) Wait() Result {
	p.b.T.Helper()
	<-p.done
	took := time.Since(p.begin)
	r := Result{Command: p.Cmd.String(), Stdout: p.out.String(), Stderr: p.errs.String(),
		Status: p.Cmd.ProcessState.ExitCode(), Took: took}
	if ws, ok := p.Cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		r.Status = 128 + int(ws.Signal())
	}
	if took >= p.b.Limit {
		p.b.T.Fatalf("did not end within %v:\n%v", p.b.Limit, r)
	}
	return r
}

// WaitFor polls until ok returns true. It fails the test after limit, naming the awaited event.
func (b *Bed) WaitFor(limit time.Duration, what string, ok func() bool) {
	b.T.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			b.T.Fatalf("waited %v in vain for %s", limit, what)
		}
	}
}

// Processes lists the processes that have the job's id in their environment.
func Processes(id string) []int { return marked.Processes("ZIPPER_JOB=" + id) }

// NothingLeft fails the test if processes or files of the job still exist.
func (b *Bed) NothingLeft(id string) {
	b.T.Helper()
	for _, p := range Processes(id) {
		cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p))
		b.T.Errorf("process %d of job %s is left: %q", p, id, cmd)
	}
	for _, dir := range []string{os.TempDir(), "/dev/shm"} {
		names, _ := filepath.Glob(filepath.Join(dir, "zipper*", "job"))
		for _, name := range names {
			if job, _ := os.ReadFile(name); strings.TrimSpace(string(job)) == id {
				b.T.Errorf("files of job %s are left in %s", id, filepath.Dir(name))
			}
		}
	}
}

// errNoProcess reports that no process matched.
var errNoProcess = errors.New("no such process")

// Victim finds a process of the job that runs the program.
func Victim(id, program string) (int, error) { return running(Processes(id), program) }

// executable returns a name, below /proc, of the file that a process runs. It is valid from other
// mount namespaces, too. Under user emulation /proc has the emulator as the executable, and the
// file is the emulator's first argument.
func executable(pid int) string {
	words := []string{}
	if optional.Emulated() {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		words = strings.Split(string(line), "\x00")
	}
	switch {
	case len(words) < 2:
		return fmt.Sprintf("/proc/%d/exe", pid)
	case filepath.IsAbs(words[1]):
		return fmt.Sprintf("/proc/%d/root%s", pid, words[1])
	}
	return fmt.Sprintf("/proc/%d/cwd/%s", pid, words[1])
}

// running finds one of the processes that runs the program.
func running(pids []int, program string) (int, error) {
	want, err := os.Stat(program)
	if err != nil {
		return 0, err
	}
	for _, p := range pids {
		if exe, err := os.Stat(executable(p)); err == nil && os.SameFile(exe, want) {
			return p, nil
		}
	}
	return 0, errNoProcess
}
