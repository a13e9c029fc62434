package clikit

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/launch"
)

// Interrupted is the cause of a context that a signal ended.
type Interrupted struct{ Signal syscall.Signal }

func (e Interrupted) Error() string { return "ended by " + launch.SignalName(e.Signal) }

// SignalName returns the signal's name, such as SIGTERM.
func (e Interrupted) SignalName() string { return launch.SignalName(e.Signal) }

// Status returns the exit status for the signal.
func (e Interrupted) Status() int { return 128 + int(e.Signal) }

// InterruptOf returns the signal that ended a context of UntilSignal, if one did.
func InterruptOf(ctx context.Context) (sig Interrupted, ok bool) {
	ok = errors.As(context.Cause(ctx), &sig)
	return sig, ok
}

// UntilSignal returns a context that the usual signals for an end cancel, without those that have
// another meaning for the caller. A second signal changes nothing, because the work in progress has
// time limits.
func UntilSignal(parent context.Context, but ...os.Signal) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	ch := make(chan os.Signal, 1)
	// SIGPIPE means that the reader of our output is gone; without the handler the process would
	// end at once, and leave its children.
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE} {
		if !slices.Contains(but, s) {
			signal.Notify(ch, s)
		}
	}
	go func() {
		for {
			select {
			case s := <-ch:
				if s == syscall.SIGPIPE && !unread() {
					continue // from another pipe: a program that does not read all of its input
				}
				cancel(Interrupted{s.(syscall.Signal)})
			case <-ctx.Done():
			}
			return
		}
	}()
	return ctx, func() { signal.Stop(ch); cancel(nil) }
}

// unread tells whether standard output or standard error has lost its reader.
func unread() bool {
	fds := []unix.PollFd{{Fd: 1}, {Fd: 2}} // poll always reports errors
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && (fds[0].Revents|fds[1].Revents)&(unix.POLLERR|unix.POLLHUP) != 0
}
