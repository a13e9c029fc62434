//go:build openmpi || mpich

package osu

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Memory holds the buffers of one benchmark after the other. As in the original they are whole
// pages that are written before they are sent: memory that was never written is one page of zeros,
// which no copy has to fetch. They are not the Go runtime's, which would have to be told of every
// message. They stay until the process ends, because links may have registered them.
type Memory struct{ send, recv []byte }

// hold makes room for n bytes in each buffer.
func (m *Memory) hold(n int) (err error) {
	for _, b := range []*[]byte{&m.send, &m.recv} {
		if len(*b) >= max(n, 1) {
			continue
		}
		if *b, err = unix.Mmap(-1, 0, max(n, 1), unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_PRIVATE|unix.MAP_ANONYMOUS); err != nil {
			return fmt.Errorf("osu: no memory for buffers of %d bytes: %w", n, err)
		}
	}
	return nil
}

// fill returns n bytes of each buffer, with the original's letters.
func (m *Memory) fill(n int) (send, recv []byte) {
	send, recv = m.send[:n], m.recv[:n]
	for i := range n {
		send[i], recv[i] = 'a', 'b'
	}
	return send, recv
}
