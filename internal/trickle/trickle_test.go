package trickle

import (
	"testing"
	"time"
)

// TestTrickle checks that pings and their answers do not complete a frame, and that a sender that
// is stopped, a slow one, and frames that are completed are no fault.
func TestTrickle(t *testing.T) {
	const patience = 4 * time.Second
	type step struct {
		ms    int // time since the step before
		bytes uint64
		done  bool // the frame is complete, and no other one has begun
	}
	every := func(n, ms int, bytes uint64, done bool) (s []step) {
		for range n {
			s = append(s, step{ms, bytes, done})
		}
		return s
	}
	join := func(parts ...[]step) (s []step) {
		for _, p := range parts {
			s = append(s, p...)
		}
		return s
	}
	begun := []step{{1000, 30_000, false}}
	for _, c := range []struct {
		name  string
		steps []step
		want  int // step at which the fault is found; -1 if it is none
	}{
		{"pings", join(begun, every(9, 2000, 88, false)), 3},
		{"pings, and looks between", join(begun, every(1, 2000, 88, false), every(999, 2, 0, false), every(9, 2000, 88, false)), 1002},
		{"pings of a busy host", join(begun, every(9, 3900, 88, false)), 3},
		{"the first frame", every(9, 2000, 40, false), 2},
		{"frames", join(begun, every(20, 2000, 88, true)), -1},
		{"slow", join(begun, every(50, 1000, 2000, false)), -1},
		{"stands still", join(begun, every(1, 2, 100, false), every(30, 1000, 0, false)), -1},
		{"goes on after a stop", join(begun, every(1, 2, 100, false), every(1, 9000, 100, false), every(9, 2, 30_000, false)), -1},
		{"goes on after two", join(begun, every(1, 9000, 1448, false), every(1, 2, 0, false), every(1, 9000, 1448, false)), -1},
		{"nothing", every(50, 1000, 0, true), -1},
	} {
		var k Detector
		var now time.Duration
		var read, begun uint64
		got := -1
		for i, s := range c.steps {
			now += time.Duration(s.ms) * time.Millisecond
			if read += s.bytes; s.done {
				begun = read
			}
			if k.Look(now, read, begun, patience) {
				got = i
				break
			}
		}
		if got != c.want {
			t.Errorf("%s: found at step %d, want %d", c.name, got, c.want)
		}
	}
}
