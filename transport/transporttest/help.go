package transporttest

import (
	"errors"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/transport"
)

var errPatience = errors.New("not ready in time")

// ready waits for a descriptor; false at the end of the patience.
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

// ReadFull reads exactly len(p) bytes, waiting as the contract says.
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

// WriteFull writes all of p, waiting as the contract says.
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
