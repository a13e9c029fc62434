package slurm

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/freeport"
)

// node is a gateway on which prolog and epilog run as root, without Slurm: the test acts as slurmd.
type node struct {
	t    *testing.T
	dir  string // dir is a directory that the job's user can read.
	home string // home is the directory of the job's user.
	run  string // run is ZIPPER_RUN.
	port int    // port is the forwarder's.
}

// ours are the permissions of a file that only its owner may access.
const ours = 0o600

func newNode(t *testing.T) *node {
	t.Helper()
	wanted.Skip(t)
	dir := t.TempDir()
	n := &node{t: t, dir: dir, home: filepath.Join(dir, "home"), run: filepath.Join(dir, "run"),
		port: freeport.Of(t, 1)[0]}
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		n.do(os.Chmod(d, 0o755)) //nolint:gosec // the user passes through
	}
	n.do(os.Mkdir(n.home, 0o755))
	n.do(os.Chown(n.home, uid, gid))
	n.do(os.WriteFile(n.path("gateways"), []byte("gateway\n"), ours))
	n.do(exec.Command("install", "-m", "755", filepath.Join("..", "..", "bin", "zipper"), n.path("zipper")).Run())
	n.do(exec.Command(n.path("zipper"), "secret", n.path("home", "secret")).Run())
	n.do(os.Chown(n.path("home", "secret"), uid, gid))
	n.jobFile(n.path("home", "secret"))
	t.Cleanup(func() {
		for _, p := range n.left() {
			t.Errorf("process %s is left", p)
			pid, _, _ := strings.Cut(p, " ")
			if p, err := strconv.Atoi(pid); err == nil {
				_ = syscall.Kill(p, syscall.SIGKILL) // the test has failed already
			}
		}
	})
	return n
}

// jobFile writes the job's file, which names that of the secret.
func (n *node) jobFile(secret string) {
	n.t.Helper()
	n.do(os.WriteFile(n.path("home", "job.env"), fmt.Appendf(nil,
		"export ZIPPER_JOB=j\nZIPPER_SECRET_FILE=\"%s\"\nZIPPER_FORWARDERS=127.0.0.1:%d\n", secret, n.port), 0o644)) //nolint:gosec // the user reads it
}

func (n *node) path(parts ...string) string {
	return filepath.Join(append([]string{n.dir}, parts...)...)
}

func (n *node) do(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// script runs prolog or epilog as slurmd does. It fails the test if the script does not return, or
// returns a status other than 0, which would take the node out of service.
func (n *node) script(name string, env ...string) (output string) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), time.Minute) // the scripts' own bounds are 10 s and 15 s
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join("..", "..", "dist", "slurm", name))
	cmd.Env = append([]string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "SLURM_JOB_ID=7", "SLURMD_NODENAME=gateway",
		fmt.Sprintf("SLURM_JOB_UID=%d", uid), "SPANK_ZIPPER_FORWARDER=" + n.path("home", "job.env"), "ZIPPER=" + n.path("zipper"),
		"ZIPPER_GATEWAYS=" + n.path("gateways"), "ZIPPER_RUN=" + n.run}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// slurmd kills the remaining processes of the script's process group
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		n.t.Errorf("%s: %v (%v)\n%s", name, err, ctx.Err(), out)
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // usually there is no process left
	return string(out)
}

// user runs a shell command as the job's user, in its home.
func (n *node) user(script string) (ok bool) {
	n.t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Dir, cmd.Env = n.home, []string{"PATH=/usr/bin:/bin", "RUN=" + n.run}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	return cmd.Run() == nil
}

// left returns the processes with the node's directory on their command lines or in their
// environments, and their descendants, other than the test itself.
func (n *node) left() (found []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		words, _ := os.ReadFile(f)
		env, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "environ"))
		if strings.Contains(string(words)+string(env), n.dir) {
			found = append(found, fmt.Sprintf("%s %q", filepath.Base(filepath.Dir(f)), words))
		}
	}
	return found
}

// ended fails the test if a process or file of the job is left after the epilog.
func (n *node) ended() {
	n.t.Helper()
	if left := n.left(); len(left) > 0 {
		n.t.Errorf("after the epilog: %q", left)
	}
	if files, _ := os.ReadDir(n.run); len(files) > 0 {
		n.t.Errorf("after the epilog: %v", files)
	}
}

// listens waits until the forwarder accepts connections.
func (n *node) listens() {
	n.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", n.port))
		if err == nil {
			n.do(c.Close())
			return
		}
		if time.Now().After(end) {
			logs, _ := exec.Command("sh", "-c", "tail -n 20 "+n.run+"/*/log "+n.run+"/*.log").CombinedOutput()
			n.t.Fatalf("%v\n%s", err, logs)
		}
	}
}

// hostile are commands that put an obstacle to a reader or a writer in the place of "$FILE".
var hostile = map[string]string{
	"fifo":      `mkfifo "$FILE"`,
	"urandom":   `ln -s /dev/urandom "$FILE"`,
	"directory": `mkdir "$FILE"`,
	"huge":      `truncate -s 100G "$FILE"`,
	"link":      `ln -s ` + "../precious" + ` "$FILE"`,
	"text":      `echo 1 >"$FILE"`,
	"nothing":   `true`,
}

// TestPrologEndsForwarder checks that a forwarder serves between prolog and epilog, and that only
// root can access the records of the two.
func TestPrologEndsForwarder(t *testing.T) {
	n := newNode(t)
	n.jobFile("secret") // beside the job's file
	n.script("prolog")
	n.listens()
	if n.user(`ls "$RUN"/job-7-gateway`) || n.user(`touch "$RUN"/x "$RUN"/job-7-gateway/x`) {
		t.Error("the job's user can look into or write to root's directory")
	}
	n.script("epilog")
	n.ended()
}

// TestHostileJobFile checks that neither script waits for the job's file, and that the process that
// reads it is gone after the epilog.
func TestHostileJobFile(t *testing.T) {
	for name, command := range hostile {
		for _, file := range []string{"job.env", "secret"} {
			t.Run(file+" "+name, func(t *testing.T) {
				n := newNode(t)
				n.do(os.WriteFile(n.path("precious"), []byte("ZIPPER_JOB=j\n"), ours))
				n.do(os.Remove(n.path("home", file)))
				if !n.user("FILE=" + file + "; " + command) {
					t.Fatal("the job's user cannot make it")
				}
				n.script("prolog")
				n.script("epilog")
				n.ended()
			})
		}
	}
}

// TestHostileRecord checks that the epilog ends the forwarder, whatever the job's user puts in
// place of the record of its process.
func TestHostileRecord(t *testing.T) {
	for name, command := range hostile {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.do(os.WriteFile(n.path("precious"), []byte("1\n"), ours))
			n.script("prolog")
			n.listens()
			n.user(`FILE="$RUN/job-7-gateway/pid"; rm -f "$FILE"; ` + command) // may be refused
			n.script("epilog")
			n.ended()
		})
	}
}

// TestHostileRunDirectory checks that prolog and epilog write to and remove from directories of
// root's only.
func TestHostileRunDirectory(t *testing.T) {
	for name, command := range map[string]string{
		"user's":     `mkdir run && ln -s "$PWD/../precious" run/job-7-gateway.log && chmod 711 run`,
		"link":       `mkdir real && ln -s "$PWD/../precious" real/job-7-gateway.log && ln -s real run`,
		"link away":  `ln -s "$PWD/../root" run`,
		"everyone's": `mkdir run && chmod 777 run && ln -s "$PWD/../precious" run/job-7-gateway.log`,
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.run = n.path("home", "run")
			n.do(os.WriteFile(n.path("precious"), []byte("kept"), ours))
			n.do(os.MkdirAll(n.path("root", "job-7-gateway", "data"), 0o700))
			if !n.user(command) {
				t.Fatal("the job's user cannot make it")
			}
			if name == "everyone's" {
				n.do(os.Chown(n.run, 0, 0))
			}
			if out := n.script("prolog"); !strings.Contains(out, "ZIPPER_RUN") {
				t.Errorf("the prolog does not say what is wrong:\n%s", out)
			}
			n.script("epilog")
			if left := n.left(); len(left) > 0 {
				t.Errorf("started: %q", left)
			}
			if text, err := os.ReadFile(n.path("precious")); err != nil || string(text) != "kept" {
				t.Errorf("root's file has %q, %v", text, err)
			}
			if _, err := os.Stat(n.path("root", "job-7-gateway", "data")); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestEpilogEndsDescendants checks that processes in sessions of their own that ignore SIGTERM do
// not outlive the job.
func TestEpilogEndsDescendants(t *testing.T) {
	n := newNode(t)
	n.do(os.WriteFile(n.path("zipper"), []byte(`#!/bin/sh
trap '' TERM
setsid sh -c 'trap "" TERM; echo >`+n.path("home", "started")+`; while :; do sleep 1; done' &
while :; do sleep 1; done
`), 0o755)) //nolint:gosec // the user runs it
	n.script("prolog")
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(n.path("home", "started")); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the descendant has not started")
		}
	}
	n.script("epilog")
	n.ended()
}

// TestEpilogSparesReusedPID checks that the epilog kills no process that has the recorded process
// id by chance.
func TestEpilogSparesReusedPID(t *testing.T) {
	n := newNode(t)
	other := exec.Command("tail", "-f", "/dev/null")
	other.Args[0] = "forwarder"
	other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	n.do(other.Start())
	t.Cleanup(func() {
		_ = other.Process.Kill() // it has ended only if the test has failed
		_ = other.Wait()
	})
	n.do(os.MkdirAll(filepath.Join(n.run, "job-7-gateway"), 0o700))
	n.do(os.WriteFile(filepath.Join(n.run, "job-7-gateway", "pid"), fmt.Appendf(nil, "%d 1 1\n", other.Process.Pid), ours))
	n.script("epilog")
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", other.Process.Pid)); err != nil ||
		strings.Contains(string(stat), ") Z ") {
		t.Errorf("a process that is not the job's was killed: %s, %v", stat, err)
	}
	n.ended()
}
