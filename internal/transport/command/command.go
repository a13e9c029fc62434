// Package command is the transport over a command's standard input and output, such as ssh -W, for
// sites between which nothing else gets through. Each link is a command of its own.
//
// Its addresses are command lines for the shell: they are an administrator's, and never come from a
// job. Errors have what the command wrote last to its standard error. Concurrency is that of
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

// Dialer opens links by commands. The zero value works. Safe for concurrent use.
type Dialer struct {
	// Tell, if not nil, is given the lines that commands write to their standard error. Any
	// goroutine.
	Tell func(line string)
}

var _ transport.Dialer = Dialer{}

// Dial starts the command, and waits until something comes from the other end, which is to speak
// first: nothing else shows that the command has got there.
func (d Dialer) Dial(ctx context.Context, line string) (transport.Link, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket pair: %w", err)
	}
	theirs := os.NewFile(uintptr(ends[1]), "the command's end")
	if err := unix.SetNonblock(ends[0], true); err != nil {
		return nil, errors.Join(err, unix.Close(ends[0]), theirs.Close())
	}
	said := &lines{tell: d.Tell}
	cmd := exec.Command("/bin/sh", "-c", "exec "+line)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, said
	cmd.WaitDelay = lingers
	// In a session of its own: it asks nobody for a password, and gets no Ctrl-C before the links
	// are over.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		unix.Close(ends[0])
		return nil, err
	}
	name, _, _ := strings.Cut(strings.TrimSpace(line), " ") // of the rest jobs need not know
	l := newLink(ends[0], "command "+name)
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its state says it, too
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
	if last := said.last.Load(); last != nil {
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

// await waits for something to read.
func (l *link) await(ctx context.Context, ended <-chan struct{}) error {
	for {
		fds := []unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}}
		if k, _ := unix.Poll(fds, int(looks/time.Millisecond)); k > 0 {
			n, _, _ := unix.Recvfrom(l.fd, make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
			if n > 0 {
				return nil
			}
			select { // there is nobody any more who could write
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

// reap sees to the command's end. What is still on its way when the link is closed, the command has
// a while to deliver.
func (l *link) reap(p *os.Process, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-l.closed:
	}
	select {
	case <-ended:
	case <-time.After(lingers):
		_ = unix.Kill(-p.Pid, unix.SIGKILL) // its session's group
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
	// Unlike Writev: the SIGPIPE of a command that has ended would be the program's
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
