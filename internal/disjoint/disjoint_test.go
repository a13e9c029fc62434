package disjoint

import (
	"math/rand/v2"
	"testing"
)

// TestSets compares Sets with a plain list that has a label for every number.
func TestSets(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := 1 + rng.IntN(20)
		s, label := New(n), New(n)
		for range rng.IntN(2 * n) {
			i, j := rng.IntN(n), rng.IntN(n)
			if got, want := s.Join(i, j), label[i] != label[j]; got != want {
				t.Fatalf("Join(%d, %d) of %v: %v", i, j, label, got)
			}
			low, high := min(label[i], label[j]), max(label[i], label[j])
			for k := range label {
				if label[k] == high {
					label[k] = low
				}
			}
			for k := range label {
				if s.Find(k) != label[k] {
					t.Fatalf("Find(%d) is %d, want %d", k, s.Find(k), label[k])
				}
			}
		}
	}
}
