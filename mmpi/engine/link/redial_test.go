package link

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/memnet"
	"github.com/leidenzipper/zipper/internal/wire"
)

// refusing is a process with one link, to its only forwarder. The test sees each attempt of the
// process to open the link again, and answers it.
type refusing struct {
	*testProcess
	there    *memnet.Link  // the forwarder's end of the link
	attempts chan bool     // receives a value when the process begins an attempt
	answers  chan error    // errors with which the test ends attempts
	lostAt   time.Duration // time just before the loss of the link
	refusal  error         // error with which betweenAttempts ends attempts
}

const testPatience = time.Minute

func newRefusing(t *testing.T) *refusing {
	here, there := memnet.Pipe(memnet.Options{})
	f := &refusing{there: there, attempts: make(chan bool), answers: make(chan error), refusal: errConnRefused}
	f.testProcess = newProcess(t, 0, []uint32{1, 1}, func(c *Config) {
		c.Limits.NoRail, c.Links = testPatience, []transport.Link{here}
		c.Redial = func(ctx context.Context, _ int, _ Attempt) (transport.Link, error) {
			select {
			case f.attempts <- true:
				return nil, <-f.answers
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	})
	return f
}

// lose makes the set lose its link.
func (f *refusing) lose() {
	f.lostAt = f.set.Now()
	f.set.lost(f.set.rails[0], io.EOF)
}

// after returns the reason for which the job ends if deadlines are checked d after the loss of the
// link; empty: the job goes on.
func (f *refusing) after(d time.Duration) string {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.checked(d)
}

// checked returns the result of after; the caller holds the lock.
func (f *refusing) checked(d time.Duration) string {
	if end := f.set.tracker.Deadline(f.lostAt + d); end != nil {
		f.set.end(end)
	}
	return f.failed
}

var errConnRefused = fmt.Errorf("dial: %w", unix.ECONNREFUSED)

// TestRestartedForwarderIsAwaited checks that a rank waits for the others at a forwarder which has
// been started again, and that the refusals before do not end the job meanwhile.
func TestRestartedForwarderIsAwaited(t *testing.T) {
	f := newRefusing(t)
	f.lock.Lock()
	f.lose()
	f.lock.Unlock()
	<-f.attempts
	f.answers <- errConnRefused
	<-f.attempts
	if why := f.after(10 * time.Second); why != "" {
		t.Fatalf("while it waits at the forwarder: %s", why)
	}
	f.answers <- errConnRefused
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if why := f.after(10 * time.Second); why != "" {
			if !strings.Contains(why, "connection refused") {
				t.Error(why)
			}
			return
		}
	}
	t.Error("a forwarder that refuses is not given up")
}

// TestStoppedForwarderIsAwaited checks that a rank waits for its whole patience for a forwarder
// that has sent Bye and then refuses connections, and gives up with an error that names both.
func TestStoppedForwarderIsAwaited(t *testing.T) {
	f := newRefusing(t)
	if _, err := f.there.TryWrite(wire.AppendFrame(nil, wire.Control(wire.TypeBye), nil)); err != nil {
		t.Fatal(err)
	}
	f.lock.Lock()
	f.lostAt = f.set.Now()
	f.set.Step()
	f.lock.Unlock()
	<-f.attempts
	f.answers <- errConnRefused
	f.betweenAttempts(t, func() {
		if why := f.checked(testPatience); why != "" {
			t.Errorf("given up before the patience is over: %s", why)
		}
		why := f.checked(testPatience + time.Second)
		for _, want := range []string{"the forwarder is shutting down", "not reached again for 1m0s", "connection refused"} {
			if !strings.Contains(why, want) {
				t.Errorf("reason %q, want %q", why, want)
			}
		}
	})
}

// betweenAttempts calls check with the lock when the last attempt has failed and the next one has
// not begun.
func (f *refusing) betweenAttempts(t *testing.T, check func()) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		f.lock.Lock()
		r := f.set.rails[0]
		ready := r.DialError() != nil && !r.Dialing()
		if ready {
			check()
		}
		f.lock.Unlock()
		if ready {
			return
		}
		select {
		case <-f.attempts: // the next one has begun already
			f.answers <- f.refusal
		default:
		}
	}
	t.Fatal("no attempt is known to have failed")
}

// TestFullForwarderIsAwaited checks that a rank waits for its whole patience for a forwarder that
// refuses it for want of room, and gives up with an error that names the forwarder's reason.
func TestFullForwarderIsAwaited(t *testing.T) {
	f := newRefusing(t)
	f.refusal = &handshake.Refused{Code: wire.RefuseFull, Reason: "wait until one of them runs", Remote: true}
	f.lock.Lock()
	f.lose()
	f.lock.Unlock()
	<-f.attempts
	f.answers <- f.refusal
	f.betweenAttempts(t, func() {
		if why := f.checked(testPatience); why != "" {
			t.Errorf("given up before the patience is over: %s", why)
		}
		why := f.checked(testPatience + time.Second)
		if !strings.Contains(why, "not reached again for 1m0s") || !strings.Contains(why, "wait until one of them runs") {
			t.Errorf("reason %q, want the time and the forwarder's reason", why)
		}
	})
}
