package shm

import (
	"testing"

	"github.com/leidenzipper/zipper/internal/highfd"
)

// TestLinksHaveHighDescriptors checks that the descriptors of both ends, including those that the
// dialer receives, have numbers that a program does not get for its files.
func TestLinksHaveHighDescriptors(t *testing.T) {
	dialled, accepted := open(t, 4096)
	for _, l := range []*link{dialled, accepted} {
		raw, err := l.conn.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		low := int(min(l.data, l.room, l.peerData, l.peerRoom))
		if err := raw.Control(func(s uintptr) { low = min(low, int(s)) }); err != nil {
			t.Fatal(err)
		}
		if low < highfd.Floor() {
			t.Errorf("%s has the descriptor %d, below %d", l.remote, low, highfd.Floor())
		}
	}
}
