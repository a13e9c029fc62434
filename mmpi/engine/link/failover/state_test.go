package failover

import "testing"

// TestRailStates checks that a rail moves to no state that may not follow.
func TestRailStates(t *testing.T) {
	for from := range State(len(legal)) {
		for next := range State(len(legal)) {
			isLegal := legal[from]&(1<<next) != 0
			func() {
				defer func() {
					if panicked := recover() != nil; panicked == isLegal {
						t.Errorf("%v to %v: legal %v, panicked %v", from, next, isLegal, panicked)
					}
				}()
				var traced []string
				r := &Rail{state: from, peer: -1, trace: func(s string) { traced = append(traced, s) }}
				r.to(next)
				if r.state != next || (len(traced) == 1) != (from != next) {
					t.Errorf("%v to %v: %v, %q", from, next, r.state, traced)
				}
			}()
		}
	}
}
