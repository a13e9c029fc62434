package forwarder

import "time"

// spinner says how long a loop that finds nothing looks again before it sleeps: waking a sleeper takes a message as long as several
// hops. It has no I/O and reads no clock.
type spinner struct {
	last, busy time.Time // the last look; the last one that found something
	tired      bool      // until something is found
	pause      int       // waits that do not spin, because the core is wanted by others
	penalty    int       // the next pause
}

// These and the constants at the top of cgo/libmmpi/progress.c, where ranks wait, belong together: change both, and measure both.
const (
	// spinFor is how long nothing is found before the loop sleeps. Both of a ping-pong's ranks are waited for in it, if they spin as well.
	spinFor = 200 * time.Microsecond
	// crowded: whoever gives way for so long shares the core with somebody who computes, and a sleeper is back sooner.
	crowded    = 500 * time.Microsecond
	maxPenalty = 1024
)

// found: a look at now found something.
func (s *spinner) found(now time.Time) {
	if s.tired {
		s.pause = max(0, s.pause-1)
	} else {
		s.penalty = 0
	}
	s.busy, s.last, s.tired = now, now, false
}

// again reports after a look that found nothing whether to give way to others and look again.
func (s *spinner) again(now time.Time) bool {
	gap := now.Sub(s.last)
	s.last = now
	switch {
	case s.tired || s.pause > 0:
		s.tired = true
		return false
	case gap > crowded:
		s.penalty = min(max(2*s.penalty, 16), maxPenalty)
		s.pause, s.tired = s.penalty, true
		return false
	case now.Sub(s.busy) > spinFor:
		s.tired = true
		return false
	}
	return true
}
