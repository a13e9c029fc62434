package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// onTerminal starts a command whose standard output and error are a terminal, and returns the text
// that is shown there.
func onTerminal(b *Bed, argv ...string) (*exec.Cmd, *buffer) {
	b.T.Helper()
	person, shell := terminalPair(b.T)
	if err := unix.IoctlSetWinsize(int(shell.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 60}); err != nil {
		b.T.Fatal(err)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = b.Root, shell, shell
	if err := cmd.Start(); err != nil {
		b.T.Fatal(err)
	}
	b.T.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var shown buffer
	go func() { _, _ = io.Copy(&shown, person) }() // ends with the terminal
	return cmd, &shown
}

// TestWatch checks that on a terminal zipper status --watch shows a running job with a rate,
// repeatedly in place, in the terminal's columns; Ctrl-C ends it well.
func TestWatch(t *testing.T) {
	b := New(t)
	status := freePort(t)
	f := b.StartForwarder("--status", status)
	stop := t.TempDir() + "/stop"
	args, id := b.runArgs(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, OpenMPI)}, Flags: []string{"--zipper", f.Addr}})
	job := b.Start(nil, nil, append(args, "--", b.Compile(OpenMPI, "test/programs/c/stream.c"), stop)...)
	b.WaitFor(time.Minute, "the job to run", func() bool { return strings.Contains(job.Stdout(), "round 2") })
	cmd, shown := onTerminal(b, b.Zipper, "status", "--watch", status)
	pages := func() []string { return strings.Split(shown.String(), "\x1b[H")[1:] }
	b.WaitFor(20*time.Second, "three pages", func() bool { return len(pages()) > 3 })
	page := pages()[2]
	if !strings.Contains(page, "job "+id) || !strings.Contains(page, "a -> b") || !strings.HasSuffix(page, "\x1b[J") {
		t.Errorf("a page is %q", page)
	}
	for _, l := range strings.Split(page, "\r\n") {
		if n := len([]rune(strings.NewReplacer("\x1b[K", "", "\x1b[J", "").Replace(l))); n > 60 {
			t.Errorf("a line of %d characters: %q", n, l)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("Ctrl-C: %v", err)
	}
	if r := b.OK(b.Run(nil, nil, b.Zipper, "status", status)); strings.Contains(r.Stdout, "MB/s") {
		t.Errorf("a rate out of one look:\n%s", r.Stdout)
	}
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.OK(job.Wait())
}

// TestProgressLine checks that while a job gathers zipper run reports on a terminal what it waits
// for, and removes the line when the job runs; without a terminal it prints nothing.
func TestProgressLine(t *testing.T) {
	b := New(t)
	late := t.TempDir() + "/late"
	script := fmt.Sprintf("#!/bin/sh\n[ \"$ZIPPER_CLUSTER\" = a ] || sleep 4\nexec %s finish\n", bad(b))
	script = strings.ReplaceAll(script, "{mpi}", OpenMPI)
	if err := os.WriteFile(late, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	args := []string{b.Zipper, "run", "--cluster", "a=1,mpi=openmpi", "--cluster", "b=1,mpi=openmpi", "--", late}
	cmd, shown := onTerminal(b, args...)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, shown.String())
	}
	const line = "zipper: waiting for "
	text := shown.String()
	i := strings.Index(text, line)
	if i < 0 || !strings.Contains(text[i:], "cluster b") || !strings.Contains(text[strings.LastIndex(text, line):],
		"\r\x1b[K") {
		t.Errorf("the terminal shows %q", text)
	}
	if r := b.OK(b.Run(nil, nil, args...)); strings.Contains(r.Stderr, line) {
		t.Errorf("not on a terminal:\n%s", r.Stderr)
	}
}
