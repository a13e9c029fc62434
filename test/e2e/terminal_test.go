package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal opens a new terminal and returns the shell's end, while its other end stays open.
func terminal(t *testing.T) *os.File {
	t.Helper()
	_, shell := terminalPair(t)
	return shell
}

// terminalPair opens a new terminal and returns the user's end and the shell's.
func terminalPair(t *testing.T) (person, shell *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	shell, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shell.Close() })
	return person, shell
}

// TestBackgroundOfTerminal checks that a job which was started with & in a shell at a terminal runs
// to its end, though its standard input is the terminal.
func TestBackgroundOfTerminal(t *testing.T) {
	b := New(t)
	id := JobID(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-mc",
		b.Zipper+" run --job "+id+" --cluster a=1,mpi=openmpi --cluster b=1,mpi=mpich -- "+bad(b)+" stdin & wait $!; echo status $?")
	var out buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal(t), &out, &out
	// the terminal is that of its standard input
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil || !strings.Contains(out.String(), "others read 0 bytes\n") ||
		!strings.Contains(out.String(), "status 0\n") {
		t.Errorf("%v\n%s", err, out.String())
	}
	b.NothingLeft(id)
}
