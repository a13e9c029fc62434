package transporttest

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/transport"
)

var errPatience = errors.New("not ready in time")

// ready waits for a descriptor. It returns false at the end of the patience.
func ready(fd int, events int16, patience time.Duration) bool {
	end := time.Now().Add(patience)
	for {
		left := time.Until(end)
		if left < 0 {
			left = 0
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: events}},
			int((left+time.Millisecond-1)/time.Millisecond))
		if n > 0 {
			return true
		}
		if err != unix.EINTR && left == 0 {
			return false
		}
	}
}

// ReadFull reads exactly len(p) bytes. It waits in the way that transport.Link requires.
func ReadFull(l transport.Link, p []byte) error {
	for len(p) > 0 {
		n, err := l.TryRead(p)
		if err == transport.ErrAgain && n == 0 {
			if !l.Arm() && !ready(l.FD(), unix.POLLIN, Patience) {
				return errPatience
			}
			continue
		}
		if err != nil {
			return err
		}
		if n <= 0 || n > len(p) {
			return errors.New("TryRead moved an impossible number of bytes without an error")
		}
		p = p[n:]
	}
	return nil
}

// WriteFull writes all of p. It waits in the way that transport.Link requires.
func WriteFull(l transport.Link, p []byte) error {
	for len(p) > 0 {
		n, err := l.TryWrite(p)
		if err == transport.ErrAgain && n == 0 {
			if !ready(l.WriteFD(), unix.POLLOUT, Patience) {
				return errPatience
			}
			continue
		}
		if err != nil {
			return err
		}
		if n <= 0 || n > len(p) {
			return errors.New("TryWrite moved an impossible number of bytes without an error")
		}
		p = p[n:]
	}
	return nil
}

func random(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 0))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func countFDs(t *testing.T) int {
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(d)
}

// connect returns both ends of a new link.
func connect(t *testing.T, setup Setup) (dialed, accepted transport.Link) {
	t.Helper()
	ln, d := setup.Open(t)
	dialed, accepted = open(t, ln, d)
	ln.Close()
	t.Cleanup(func() {
		dialed.Close()
		accepted.Close()
	})
	return dialed, accepted
}

func open(t *testing.T, ln transport.Listener, d transport.Dialer) (dialed, accepted transport.Link) {
	t.Helper()
	type result struct {
		l   transport.Link
		err error
	}
	got := make(chan result, 1)
	go func() {
		l, err := ln.Accept()
		got <- result{l, err}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	dialed, err := d.Dial(ctx, ln.Addr())
	if err != nil {
		ln.Close()
		t.Fatalf("dial: %v", err)
	}
	r := <-got
	if r.err != nil {
		t.Fatalf("accept: %v", r.err)
	}
	return dialed, r.l
}
