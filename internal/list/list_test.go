package list

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRandom compares a list with a slice through random changes.
func TestRandom(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		var l List[int]
		var want []*Node[int]
		for i := range 300 {
			if len(want) == 0 || r.IntN(2) == 0 {
				n := &Node[int]{Of: i}
				l.Push(n)
				want = append(want, n)
			} else {
				k := r.IntN(len(want))
				l.Remove(want[k])
				if want[k].Next() != nil {
					t.Fatal("a node that was removed leads on")
				}
				want = slices.Delete(want, k, k+1)
			}
			var got []*Node[int]
			for n := l.First(); n != nil; n = n.Next() {
				got = append(got, n)
			}
			if !slices.Equal(got, want) || l.Empty() != (len(want) == 0) || l.Len() != len(want) {
				t.Fatalf("seed %d, step %d: %d nodes, want %d", seed, i, len(got), len(want))
			}
			if len(want) > 0 && (l.last != want[len(want)-1] || l.last.next != nil || l.first.prev != nil) {
				t.Fatalf("seed %d, step %d: the ends are wrong", seed, i)
			}
		}
	}
}
