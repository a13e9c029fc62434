// Package command is the transport over a command's standard input and output, such as ssh -W, for
// sites that only such a command can connect. Each link is a command of its own.
//
// Its addresses are command lines for the shell. They come from an administrator, never from a job.
// Errors contain the command's last output on its standard error. Concurrency is that of
// transport.Link.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/internal/fdref"
)

// Dialer opens links by commands. The zero value works. It is safe for concurrent use.
type Dialer struct {
	// Tell, if not nil, is called with the lines that commands write to their standard error, from
	// any goroutine.
	Tell func(line string)
}

var _ transport.Dialer = Dialer{}

// Dial starts the command, and waits until bytes arrive from the other end, which has to send
// first. Nothing else shows that the command has connected.
func (d Dialer) Dial(ctx context.Context, line string) (transport.Link, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket pair: %w", err)
	}
	remote := os.NewFile(uintptr(ends[1]), "the command's end")
	if err := unix.SetNonblock(ends[0], true); err != nil {
		return nil, errors.Join(err, unix.Close(ends[0]), remote.Close())
	}
	stderr := &lines{tell: d.Tell}
	cmd := exec.Command("/bin/sh", "-c", "exec "+line)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = remote, remote, stderr
	cmd.WaitDelay = lingers
	// A session of its own keeps the command from asking for a password, and from getting a Ctrl-C
	// before the links have ended.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	remote.Close()
	if err != nil {
		unix.Close(ends[0])
		return nil, err
	}
	name, _, _ := strings.Cut(strings.TrimSpace(line), " ") // jobs need not know the rest
	l := newLink(ends[0], "command "+name)
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its state has the same information
		close(ended)
	}()
	go l.reap(cmd.Process, ended)
	if err = l.await(ctx, ended); err == nil {
		return l, nil
	}
	l.Close()
	if errors.Is(err, errEnded) {
		err = errors.New(cmd.ProcessState.String())
	}
	if last := stderr.last.Load(); last != nil {
		return nil, fmt.Errorf("%s (%w)", *last, err)
	}
	return nil, err
}

type link struct {
	fd     int
	ref    fdref.Ref
	remote string
	closed chan struct{}
}

var _ transport.Carried = (*link)(nil)

func newLink(fd int, remote string) *link {
	l := &link{fd: fd, remote: remote, closed: make(chan struct{})}
	l.ref.Free = func() {
		unix.Close(fd)
		close(l.closed)
	}
	return l
}

var errEnded = errors.New("the command has ended")

// await waits until there is something to read.
func (l *link) await(ctx context.Context, ended <-chan struct{}) error {
	for {
		fds := []unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}}
		if k, _ := unix.Poll(fds, int(looks/time.Millisecond)); k > 0 {
			n, _, _ := unix.Recvfrom(l.fd, make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
			if n > 0 {
				return nil
			}
			select { // no process is left that could write
			case <-ended:
				return errEnded
			case <-ctx.Done():
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// reap waits for the command's end. After the close of the link the command has some time to
// deliver the bytes in flight.
func (l *link) reap(p *os.Process, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-l.closed:
	}
	select {
	case <-ended:
	case <-time.After(lingers):
		_ = unix.Kill(-p.Pid, unix.SIGKILL) // the process group of its session
	}
}

func (l *link) TryRead(p []byte) (int, error) {
	if !l.ref.Acquire() {
		return 0, transport.ErrClosed
	}
	n, err := unix.Read(l.fd, p)
	l.ref.Release()
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return 0, transport.ErrAgain
	case err != nil:
		return 0, fmt.Errorf("read %s: %w", l.remote, err)
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

func (l *link) TryWrite(bufs ...[]byte) (int, error) {
	var list [maxVec][]byte
	vec := list[:0]
	for _, b := range bufs {
		if len(b) > 0 && len(vec) < maxVec {
			vec = append(vec, b)
		}
	}
	if len(vec) == 0 {
		return 0, nil
	}
	if !l.ref.Acquire() {
		return 0, transport.ErrClosed
	}
	// Unlike Writev it does not send SIGPIPE to the program when the command has ended.
	n, err := unix.SendmsgBuffers(l.fd, vec, nil, nil, unix.MSG_NOSIGNAL)
	l.ref.Release()
	switch err {
	case nil:
		return n, nil
	case unix.EAGAIN, unix.EINTR:
		return 0, transport.ErrAgain
	}
	return 0, fmt.Errorf("write %s: %w", l.remote, err)
}

func (l *link) FD() int        { return l.fd }
func (l *link) WriteFD() int   { return l.fd }
func (l *link) Arm() bool      { return false }
func (l *link) Remote() string { return l.remote }
func (l *link) Carried()       {}

func (l *link) Close() error {
	l.ref.Close()
	return nil
}
