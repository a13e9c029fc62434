package loop

import "time"

// spinner determines how long a loop without events looks again before it sleeps: waking a sleeper
// takes a message as long as several hops. It has no I/O and reads no clock.
type spinner struct {
	last, busy time.Time // the times at which the loop has last looked for events, and has last found some
	tired      bool      // whether the loop sleeps at once until the next event
	// the number of times that the loop still sleeps at once, because other threads want the core
	pause   int
	penalty int // the number of times that the loop sleeps at once when other threads next want the core
}

// found records that the loop has looked for events at the time now and has found some.
func (s *spinner) found(now time.Time) {
	if s.tired {
		s.pause = max(0, s.pause-1)
	} else {
		s.penalty = 0
	}
	s.busy, s.last, s.tired = now, now, false
}

// rest records that the loop sleeps at once instead of looking for events again.
func (s *spinner) rest() { s.tired = true }

// again reports, when the loop has looked at the time now and found no events, whether it yields
// the core and looks again. Otherwise it sleeps.
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
