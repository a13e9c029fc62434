//go:build rdma && cgo

package verbs

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/leidenzipper/zipper/internal/highfd"
)

// waiter lets a goroutine wait for a descriptor that belongs to the library, without a thread.
type waiter struct {
	f   *os.File
	raw syscall.RawConn
}

func newWaiter(fd int, name string) (*waiter, error) {
	dup, err := highfd.Dup(fd)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f := os.NewFile(uintptr(dup), name) // it does not block: the flag belongs to the description, and is set
	raw, err := f.SyscallConn()
	if err == nil {
		err = f.SetReadDeadline(time.Time{}) // this fails if it cannot be polled
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &waiter{f, raw}, nil
}

// wait calls take each time that the descriptor is readable, until take returns true or fails. It
// returns os.ErrDeadlineExceeded after stop or at the time given to until.
func (w *waiter) wait(take func() (bool, error)) error {
	var failure error
	err := w.raw.Read(func(uintptr) bool {
		got, err := take()
		failure = err
		return got || err != nil
	})
	if err != nil {
		return err
	}
	return failure
}

// sleep returns after stop, because then the read fails.
func (w *waiter) sleep() {
	_ = w.raw.Read(func(uintptr) bool { return false })
}

// stop ends wait and sleep, also future calls. Any thread may call it.
func (w *waiter) stop() { w.until(time.Unix(1, 0)) }

// until bounds the time of wait.
func (w *waiter) until(t time.Time) { w.f.SetReadDeadline(t) } // cannot fail: newWaiter has tried

func (w *waiter) close() error { return w.f.Close() }
