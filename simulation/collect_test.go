package simulation

import "testing"

// TestPattern checks that part, which computes bytes step by step, agrees with the formula.
func TestPattern(t *testing.T) {
	for _, from := range []int{0, 1, 250, 251, 252, 1000} {
		for i, got := range part(3, from, 800) {
			if k := from + i; got != byte(3*37+k*11+k/251) {
				t.Fatalf("byte %d from %d is %d", i, from, got)
			}
		}
	}
}
