package slurm

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	logLimit  = 16 << 20 // of the prolog, in bytes
	firstLine = "the forwarder's first line\n"
)

// log returns the forwarder's log.
func (n *node) log() []byte {
	n.t.Helper()
	b, err := os.ReadFile(filepath.Join(n.run, "job-7-gateway", "log"))
	n.do(err)
	return b
}

// TestForwarderLogIsBounded checks that no process of the job's user can fill the file system of
// root's directory, or change the content of the log. One of the processes is outside of the
// forwarder's namespace and takes over the forwarder's descriptor.
func TestForwarderLogIsBounded(t *testing.T) {
	const variable = "ZIPPER_TEST_LOG"
	switch part, pid, _ := strings.Cut(os.Getenv(variable), " "); part {
	case "forwarder":
		playForwarder(t)
		return
	case "write", "truncate":
		takeOver(t, part, pid)
		return
	}
	n := newNode(t)
	n.do(exec.Command("install", "-m", "755", os.Args[0], n.path("test")).Run())
	play := fmt.Sprintf("%s=1 exec %s -test.run '^%s$'", wanted.Variable, n.path("test"), t.Name())
	n.do(os.WriteFile(n.path("zipper"), fmt.Appendf(nil, "#!/bin/sh\nexport %s=forwarder HOME=%s\n%s\n", variable,
		n.home, play), 0o755)) //nolint:gosec // the user runs it
	n.script("prolog")
	var pid []byte
	for end := time.Now().Add(time.Minute); len(pid) == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the forwarder has not started: %s", n.log())
		}
		pid, _ = os.ReadFile(n.path("home", "pid"))
	}
	for _, part := range []string{"write", "truncate"} {
		if !n.user(fmt.Sprintf("%s='%s %s' %s >out 2>&1", variable, part, pid, play)) {
			out, _ := os.ReadFile(n.path("home", "out"))
			t.Fatalf("%s: %s", part, out)
		}
		if log := n.log(); len(log) != logLimit || !bytes.HasPrefix(log, []byte(firstLine)) {
			t.Errorf("%s: the log has %d bytes and begins with %.40q", part, len(log), log)
		}
	}
	n.script("epilog")
	n.ended()
}

// playForwarder is a forwarder that allows other processes of its user to trace it, as they may in
// any case where no security module restricts that, and writes its process id to ~/pid.
func playForwarder(t *testing.T) {
	_, _ = os.Stdout.WriteString(firstLine)
	_ = unix.Prctl(unix.PR_SET_PTRACER, unix.PR_SET_PTRACER_ANY, 0, 0, 0) // fails without the module Yama
	pid, err := os.Readlink("/proc/self")                                 // as processes see it outside
	file := filepath.Join(os.Getenv("HOME"), "pid")
	if err == nil {
		err = os.WriteFile(file+".new", []byte(pid), ours)
	}
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Pause() // the epilog ends it
}

// takeOver takes over the standard output of the process pid, and writes more to it than the log
// may have, or truncates it.
func takeOver(t *testing.T, part, pid string) {
	id, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	process, err := unix.PidfdOpen(id, 0)
	if err != nil {
		t.Fatal(err)
	}
	output, err := unix.PidfdGetfd(process, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if part == "truncate" {
		_ = unix.Ftruncate(output, 0) // fails if it is not a file
		return
	}
	f := os.NewFile(uintptr(output), "output")
	for range 20 {
		if _, err := f.Write(bytes.Repeat([]byte("x"), 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestForwarderLogHasLastLine checks that the log has the whole output of a forwarder that ends by
// itself, and that descendants which keep its output open end with it.
func TestForwarderLogHasLastLine(t *testing.T) {
	n := newNode(t)
	n.do(os.WriteFile(n.path("zipper"), []byte(`#!/bin/sh
setsid sh -c 'trap "" TERM; while :; do sleep 1; done' &
head -c 300000 /dev/zero | tr '\0' x
echo last
`), 0o755)) //nolint:gosec // the user runs it
	n.script("prolog")
	for end := time.Now().Add(time.Minute); len(n.left()) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("processes are left: %q", n.left())
		}
	}
	if log := n.log(); len(log) != 300005 || !bytes.HasSuffix(log, []byte("xlast\n")) {
		t.Errorf("the log has %d bytes and ends with %q", len(log), log[max(0, len(log)-20):])
	}
	n.script("epilog")
	n.ended()
}
