package process

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/simulation/kernel"
)

// system is the operating system of a rank, in which one long sleep can replace many naps. A rank
// that waits for native MPI naps for 100 us at a time, because no descriptor signals native
// messages: that is 10 000 naps in a second without events. As long as its native MPI has not
// changed since the rank looked last, the next look finds nothing either, so the rank sleeps on.
// When native MPI does change the rank wakes after a random time, up to the length of a nap.
type system struct {
	kernel.System
	m *Member // member whose engine uses the system
}

// napLength is the longest delay until a napping rank notices a native message, in nanoseconds:
// longNap of the engine.
const napLength = 100 * time.Microsecond

// Go starts a thread of the process that calls fn, and returns a function that waits for its end.
// thread says that it is the engine's progress thread, which makes no native calls.
func (s system) Go(fn func(), thread bool) (join func()) {
	return s.System.Go(func() {
		if thread {
			s.m.progress = s.m.world.K.Thread()
		}
		fn()
	}, thread)
}

// Poll has the running thread sleep until an event of set is ready or d is over, and sets Revents.
// A sleep that only waits for native MPI may be longer than d. keep is passed on to kernel.System.
func (s system) Poll(set []unix.PollFd, d time.Duration, keep bool) {
	m := s.m
	switch n := m.Native; {
	case m.world.K.Thread() == m.progress:
		s.System.Poll(set, d, keep)
	case d > 0 && d < m.world.Together && n.seen == n.board.changes:
		s.sleepOn(set)
		n.seen = n.board.changes
	default:
		s.System.Poll(set, d, keep)
		n.seen = n.board.changes
	}
}

// sleepOn sleeps until a descriptor of set is ready, for up to World.Together, or until shortly
// after a change of native MPI, and sets Revents.
func (s system) sleepOn(set []unix.PollFd) {
	m, k := s.m, s.m.world.K
	if m.wakeup == 0 {
		m.wakeup, _ = k.Event() // it never fails here
	}
	m.Native.changed = func() {
		k.After(time.Duration(k.Rand.Int64N(int64(napLength))), func() { k.Signal(m.wakeup) })
	}
	m.set = append(append(m.set[:0], set...), unix.PollFd{Fd: int32(m.wakeup), Events: unix.POLLIN})
	s.System.Poll(m.set, m.world.Together, false)
	m.Native.changed = nil
	k.Drain(m.wakeup)
	copy(set, m.set)
}
