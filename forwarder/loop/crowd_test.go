package loop

import (
	"testing"
	"time"
)

// TestFrequentEventsAccumulate checks that a loop lets events accumulate only if they are frequent,
// no source is in a hurry, and the loop is Adaptive.
func TestFrequentEventsAccumulate(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		name     string
		poll     string
		gap      time.Duration // the time between the last two looks that found events
		spinning int
		want     bool
	}{
		{"much", Adaptive, maxGap - 1, 0, true},
		{"little", Adaptive, maxGap, 0, false},
		{"hurry", Adaptive, 1, 1, false},
		{"at once", Event, 1, 0, false},
		{"never sleeps", Busy, 1, 0, false},
	} {
		l := &Loop{cfg: Config{Poll: c.poll}}
		if l.crowd.found(now); l.batches() {
			t.Errorf("%s: waits after the first", c.name)
		}
		l.crowd.found(now.Add(c.gap))
		l.AddSpinning(2)
		l.AddSpinning(c.spinning - 2)
		if got := l.batches(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestLoopPollsAgainForSpinningSources checks that an adaptive loop looks again only while a source
// is in a hurry.
func TestLoopPollsAgainForSpinningSources(t *testing.T) {
	l := &Loop{cfg: Config{Poll: Adaptive}, now: time.Unix(1000, 0)}
	for _, want := range []bool{false, true, false} {
		l.spin.found(l.now)
		if got := l.pollAgain(); got != want {
			t.Errorf("%d in a hurry: looks again: %v", l.spinning.Load(), got)
		}
		if want {
			l.AddSpinning(-1)
		} else {
			l.AddSpinning(1)
		}
	}
}

// TestOwnSleepIsNotContention checks that a loop does not take the time that it slept for a sign
// that others want its core.
func TestOwnSleepIsNotContention(t *testing.T) {
	l := &Loop{cfg: Config{Poll: Adaptive}, now: time.Unix(1000, 0)}
	l.spin.found(l.now)
	l.pollAgain()
	l.now = l.now.Add(time.Second)
	l.AddSpinning(1)
	if l.pollAgain(); l.spin.penalty != 0 {
		t.Errorf("a penalty of %d", l.spin.penalty)
	}
}
