package loop

import "time"

// spinner determines how long a loop without events looks again before it sleeps: waking a sleeper
// takes a message as long as several hops. It has no I/O and reads no clock.
type spinner struct {
	last, busy time.Time // the time of the last look, and that of the last look with events
	tired      bool      // whether the loop sleeps at once until the next event
	pause      int       // the number of waits without spinning, because others want the core
	penalty    int       // the length of the next pause
}

// found records that a look at now found events.
func (s *spinner) found(now time.Time) {
	if s.tired {
		s.pause = max(0, s.pause-1)
	} else {
		s.penalty = 0
	}
	s.busy, s.last, s.tired = now, now, false
}

// rest records that the loop sleeps without having looked again.
func (s *spinner) rest() { s.tired = true }

// again reports, after a look without events, whether to yield and look again.
func (s *spinner) again(now time.Time) bool {
	gap := now.Sub(s.last)
	s.last = now
	switch {
	case s.tired || s.pause > 0:
		s.tired = true
		return false
	case gap > crowded:
		s.penalty = min(max(2*s.penalty, firstPenalty), maxPenalty)
		s.pause, s.tired = s.penalty, true
		return false
	case now.Sub(s.busy) > spinFor:
		s.tired = true
		return false
	}
	return true
}
