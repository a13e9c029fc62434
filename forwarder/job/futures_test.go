package job

import (
	"bytes"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// TestEqualHashesHaveEqualFutures checks that the future of a state of a forwarder does not depend
// on the way that led to it. It looks for states that the cache has reached from one state, and
// that also follow from another one. A forwarder that has gone the other way gets operations of the
// first way's future. It must come to the same states, with the same effects.
func TestEqualHashesHaveEqualFutures(t *testing.T) {
	most, sample := 5_000, 60
	if os.Getenv("ZIPPER_LONG") != "" {
		most, sample = 500_000, 3_000
	}
	for _, kind := range []int{0, 2, 3, 6, 7, 9, 11} {
		m := newModel(kind)
		if s := explore(m, 2, most, func(*search) {}); s.wrong != nil {
			t.Fatal(s.wrong)
		}
		r := rand.New(rand.NewPCG(1, uint64(kind)))
		merged := merges(m)
		r.Shuffle(len(merged), func(i, j int) { merged[i], merged[j] = merged[j], merged[i] })
		operations := 0
		for _, x := range merged[:min(sample, len(merged))] {
			z := x.from.forwarder()
			z.do(x.s.by)
			for _, s := range x.s.to.steps {
				operations += follow(t, z.clone(), s, r)
			}
		}
		if t.Logf("%s: %d of %d steps to known states, %d operations", arrangements[kind].name, min(sample, len(merged)), len(merged),
			operations); operations == 0 {
			t.Errorf("%s: no state is reached by two ways", arrangements[kind].name)
		}
	}
}

// merge is a step to a state that was reached by another step first.
type merge struct {
	from *local
	s    *step
}

// merges returns the steps of a model to states that were reached by other steps first.
func merges(m *model) (list []merge) {
	for _, l := range m.states {
		for _, s := range l.steps {
			if s.to.job && (s.to.from != l || s.to.by != s.by) {
				list = append(list, merge{l, s})
			}
		}
	}
	return list
}

// follow performs the operation of a step, and some random ones that follow in the cache, on a
// forwarder. It compares the states and effects, and returns the number of operations.
func follow(t *testing.T, z *forwarder, s *step, r *rand.Rand) int {
	t.Helper()
	way := []operation{}
	for n := 1; ; n++ {
		z.do(s.by)
		way = append(way, s.by)
		got, want := bytes.Clone(z.encode(z)), z.encode(s.to.forwarder())
		if !slices.Equal(z.out, s.out) || !bytes.Equal(got, want) {
			t.Fatalf("%s: after %+v forwarder %d has effects %v, and in the cache %v; its state is\n%x, and in the cache\n%x",
				arrangements[z.kind].name, way, z.index, z.out, s.out, got, want)
		}
		if n == 5 || len(s.to.steps) == 0 {
			return n
		}
		s = s.to.steps[r.IntN(len(s.to.steps))]
	}
}
