//go:build openmpi || mpich

package osu

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// The buffers are as the original's: whole pages, written before they are sent, since what was never written is one page of zeros that no
// copy has to fetch, and not the Go runtime's, which would have to be told of every message. They stay until the process ends:
// links may have registered them.

// allocate makes both buffers for n bytes.
func (r *runner) allocate(n int) error {
	for i := range r.mapped {
		var err error
		if r.mapped[i], err = unix.Mmap(-1, 0, max(n, 1), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS); err != nil {
			return fmt.Errorf("osu: no memory for buffers of %d bytes: %w", n, err)
		}
	}
	return nil
}

// fill sets the buffers to n bytes of the original's letters.
func (r *runner) fill(n int) {
	r.send, r.recv = r.mapped[0][:n], r.mapped[1][:n]
	for i := range n {
		r.send[i], r.recv[i] = 'a', 'b'
	}
}
