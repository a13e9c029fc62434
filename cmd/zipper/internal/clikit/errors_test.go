package clikit

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
)

// TestExitStatusIsThatOfTheError checks that a command's exit status is the one of its error,
// however deep the error is wrapped.
func TestExitStatusIsThatOfTheError(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(Interrupted{Signal: syscall.SIGTERM})
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("broken"), ExitFailure},
		{fmt.Errorf("flags: %w", Usage(errors.New("no such thing"))), ExitUsage},
		{StatusError{Code: 7}, 7},
		{WithCause(ctx, errors.New("broken")), 128 + int(syscall.SIGTERM)},
	} {
		if got := Report(c.err); got != c.want {
			t.Errorf("%v: status %d, want %d", c.err, got, c.want)
		}
	}
	if sig, ok := InterruptOf(ctx); !ok || sig.Status() != 143 {
		t.Errorf("interrupted by %v: %v", sig, ok)
	}
	if _, ok := InterruptOf(context.Background()); ok {
		t.Error("nothing has interrupted this context")
	}
}
