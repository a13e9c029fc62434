package splice

import (
	"os"
	"os/signal"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestQuietPipeRaisesNoSignal checks that a pipe that is drained into a closed connection raises
// SIGPIPE only if it is not quiet.
func TestQuietPipeRaisesNoSignal(t *testing.T) {
	raised := make(chan os.Signal, 8)
	signal.Notify(raised, unix.SIGPIPE, unix.SIGWINCH)
	defer signal.Stop(raised)
	for _, quiet := range []bool{true, false} {
		fd, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPipe(64 << 10)
		if err != nil {
			t.Fatal(err)
		}
		if quiet {
			p.Quiet()
		}
		for range 2 { // it also works while the connection is open
			if err := p.Write([]byte("bytes")); err != nil {
				t.Fatal(err)
			}
			n, e := p.Drain(fd[0])
			if closed := fd[1] < 0; closed != (e == unix.EPIPE) || !closed && n != 5 {
				t.Errorf("quiet %v, closed %v: %d, %v", quiet, closed, n, e)
			}
			unix.Close(fd[1])
			fd[1] = -1
		}
		// A signal with a higher number that is raised later is notified later.
		if err := unix.Kill(unix.Getpid(), unix.SIGWINCH); err != nil {
			t.Fatal(err)
		}
		var got []os.Signal
		for len(got) == 0 || got[len(got)-1] != unix.SIGWINCH {
			got = append(got, <-raised)
		}
		if slices.Contains(got, os.Signal(unix.SIGPIPE)) == quiet {
			t.Errorf("quiet %v: signals %v", quiet, got)
		}
		unix.Close(fd[0])
		p.Close()
	}
}
