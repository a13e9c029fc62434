package pqueue

import (
	"math/rand/v2"
	"slices"
	"testing"
)

type number int

func (a number) Before(b number) bool { return a < b }

// TestQueue checks that the least element comes out after any sequence of operations.
func TestQueue(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var q Queue[number]
		var in []number
		for range rng.IntN(40) {
			x := number(rng.IntN(20))
			q, in = append(q, x), append(in, x)
		}
		q.Init()
		for range 200 {
			slices.Sort(in)
			switch {
			case len(in) == 0 || rng.IntN(3) == 0:
				x := number(rng.IntN(20))
				q.Add(x)
				in = append(in, x)
			case rng.IntN(3) == 0:
				q[0] += number(rng.IntN(20))
				in[0] = q[0]
				q.Changed()
			default:
				if x := q.Take(); x != in[0] {
					t.Fatalf("seed %d: took %d, the least is %d", seed, x, in[0])
				}
				in = in[1:]
			}
		}
	}
}
