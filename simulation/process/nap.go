package process

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/simulation/kernel"
)

// system is a rank's operating system, in which naps may be taken together. Who waits for native
// MPI sleeps for 100 us at a time, 10 000 times in a second in which nothing happens, since no
// descriptor tells it of native messages. As long as nothing of its native MPI has changed since it
// looked there last, its next look finds nothing either, and it sleeps on; when something does
// change it wakes, at any time within what would have been its nap.
type system struct {
	kernel.System
	m *Member
}

// naps is within what time somebody who naps looks, in nanoseconds: as the engine's longNap.
const naps = 100 * time.Microsecond

// Go starts a thread; the engine's own makes no native call.
func (s system) Go(fn func(), thread bool) (join func()) {
	return s.System.Go(func() {
		if thread {
			s.m.beside = s.m.world.K.Thread()
		}
		fn()
	}, thread)
}

// Poll sleeps.
func (s system) Poll(set []unix.PollFd, d time.Duration, keep bool) {
	m := s.m
	switch n := m.Native; {
	case m.world.K.Thread() == m.beside:
		s.System.Poll(set, d, keep)
	case d > 0 && d < m.world.Together && n.seen == n.board.changes:
		s.sleepOn(set)
		n.seen = n.board.changes
	default:
		s.System.Poll(set, d, keep)
		n.seen = n.board.changes
	}
}

// sleepOn sleeps until a descriptor is ready, for up to Together, or soon after something changes
// in native MPI.
func (s system) sleepOn(set []unix.PollFd) {
	m, k := s.m, s.m.world.K
	if m.bell == 0 {
		m.bell, _ = k.Event() // never fails here
	}
	m.Native.changed = func() {
		k.After(time.Duration(k.Rand.Int64N(int64(naps))), func() { k.Signal(m.bell) })
	}
	m.set = append(append(m.set[:0], set...), unix.PollFd{Fd: int32(m.bell), Events: unix.POLLIN})
	s.System.Poll(m.set, m.world.Together, false)
	m.Native.changed = nil
	k.Drain(m.bell)
	copy(set, m.set)
}
