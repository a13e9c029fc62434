package loop

import "time"

// spinner says how long a loop that finds nothing looks again before it sleeps: waking a sleeper
// takes a message as long as several hops. It has no I/O and reads no clock.
type spinner struct {
	last, busy time.Time // the last look; the last one that found something
	tired      bool      // until something is found
	pause      int       // waits that do not spin, because the core is wanted by others
	penalty    int       // the next pause
}

// found: a look at now found something.
func (s *spinner) found(now time.Time) {
	if s.tired {
		s.pause = max(0, s.pause-1)
	} else {
		s.penalty = 0
	}
	s.busy, s.last, s.tired = now, now, false
}

// rest: the loop sleeps without having looked again.
func (s *spinner) rest() { s.tired = true }

// again reports after a look that found nothing whether to give way to others and look again.
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
