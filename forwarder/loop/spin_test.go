package loop

import (
	"testing"
	"time"
)

// look has a spinner find nothing every step until it gives up, at most for d, and returns how long
// that took.
func look(s *spinner, now *time.Time, step, d time.Duration) time.Duration {
	begin := *now
	for now.Sub(begin) < d {
		*now = now.Add(step)
		if !s.again(*now) {
			break
		}
	}
	return now.Sub(begin)
}

func TestSpinner(t *testing.T) {
	const us = time.Microsecond
	now := time.Unix(1000, 0)
	var s spinner
	s.found(now)
	if d := look(&s, &now, us, time.Second); d < spinFor || d > spinFor+2*us {
		t.Errorf("spun for %v, want %v", d, spinFor)
	}
	if s.again(now.Add(us)) {
		t.Error("spins on after it gave up, though nothing was found")
	}

	// Somebody computes on our core: sleep at once, for some waits, then try again.
	s.found(now)
	if d := look(&s, &now, crowded+us, time.Second); d != crowded+us {
		t.Errorf("yielded for %v to a thread that computes", d)
	}
	waits := 0
	for s.found(now); look(&s, &now, us, time.Second) <= us; s.found(now) {
		if waits++; waits > 2*maxPenalty {
			t.Fatal("never spins again")
		}
	}
	if waits < 8 {
		t.Errorf("tried again after %d waits", waits)
	}

	// The more often that happens, the seldomer it tries; a spin that finds something ends that.
	again := 0
	s.found(now)
	look(&s, &now, crowded+us, time.Second)
	for s.found(now); look(&s, &now, us, time.Second) <= us; s.found(now) {
		again++
	}
	if again <= waits {
		t.Errorf("%d waits without spinning after the second time, %d after the first", again, waits)
	}
	s.found(now)
	look(&s, &now, us, 10*us)
	s.found(now)
	if s.penalty != 0 {
		t.Error("a spin that paid changed nothing")
	}
}
