// Package evfd has eventfds for the two kinds of readiness of a transport.Link.
package evfd

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/highfd"
)

// full is the highest value of an eventfd's counter. With it the descriptor is not writable
// (POLLOUT).
const full = 1<<64 - 2

// FD is an eventfd. Its calls never block.
//
// As a signal for reading it is readable (POLLIN) after Raise and until Lower. As a signal for
// writing it is writable (POLLOUT) until Block and again after Lower.
type FD int

// New returns an FD that is not readable, but writable.
func New() (FD, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return -1, fmt.Errorf("eventfd: %w", err)
	}
	return FD(highfd.Raise(fd)), nil
}

// Raise makes the FD readable. Raising twice is harmless.
func (f FD) Raise() { f.add(1) }

// Block makes the FD not writable. It must be in the lowered state.
func (f FD) Block() { f.add(full) }

// Lower undoes Raise or Block.
func (f FD) Lower() {
	var b [8]byte
	rawRead(int(f), &b)
}

// Close closes the FD.
func (f FD) Close() { unix.Close(int(f)) }

func (f FD) add(v uint64) {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], v)
	rawWrite(int(f), &b)
}
