package loop

import (
	"testing"
	"time"
)

// TestBatches checks that a loop lets events accumulate only if they are frequent, no source is in
// a hurry, and the loop is Adaptive.
func TestBatches(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		name    string
		poll    string
		gap     time.Duration // the time between the last two looks that found events
		hurried int
		want    bool
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
		l.Hurry(2)
		l.Hurry(c.hurried - 2)
		if got := l.batches(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestHurry checks that an adaptive loop looks again only while a source is in a hurry.
func TestHurry(t *testing.T) {
	l := &Loop{cfg: Config{Poll: Adaptive}, now: time.Unix(1000, 0)}
	for _, want := range []bool{false, true, false} {
		l.spin.found(l.now)
		if got := l.lookAgain(); got != want {
			t.Errorf("%d in a hurry: looks again: %v", l.hurried.Load(), got)
		}
		if want {
			l.Hurry(-1)
		} else {
			l.Hurry(1)
		}
	}
}

// TestHurryLater checks that a loop does not take the time that it slept for a sign that others
// want its core.
func TestHurryLater(t *testing.T) {
	l := &Loop{cfg: Config{Poll: Adaptive}, now: time.Unix(1000, 0)}
	l.spin.found(l.now)
	l.lookAgain()
	l.now = l.now.Add(time.Second)
	l.Hurry(1)
	if l.lookAgain(); l.spin.penalty != 0 {
		t.Errorf("a penalty of %d", l.spin.penalty)
	}
}
