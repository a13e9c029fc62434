// Package tune chooses where one algorithm of collectives takes over from another, by their speed
// on the user's clusters: one setting after the other, candidates in turn with the best so far. It
// does not measure; a Measure does.
package tune

import "github.com/leidenzipper/zipper/collectives"

// Setting is one number of collectives.Tuning, with the benchmarks that depend on it, at sizes by
// doubling from Min to Max in bytes.
type Setting struct {
	Name       string
	Benchmarks []string
	Min, Max   int
	field      func(*collectives.Tuning) *int
	least      int
}

// Settings returns the settings in the order in which they are chosen: first those on which others
// depend.
func Settings() []Setting {
	return []Setting{
		{"segment", []string{"bcast", "reduce", "allgather", "alltoall"}, 32 << 10, 512 << 10,
			func(t *collectives.Tuning) *int { return &t.Segment }, 4 << 10},
		{"chunk", []string{"alltoall"}, 4 << 10, 64 << 10,
			func(t *collectives.Tuning) *int { return &t.Chunk }, 1 << 10},
		{"slice", []string{"bcast", "allreduce"}, 2 << 10, 256 << 10,
			func(t *collectives.Tuning) *int { return &t.Slice }, 256},
		{"combineblock", []string{"alltoall"}, 256, 16 << 10,
			func(t *collectives.Tuning) *int { return &t.CombineBlock }, 64},
		{"few", []string{"allreduce", "allgather"}, 2 << 10, 64 << 10,
			func(t *collectives.Tuning) *int { return &t.Few }, 1 << 10},
		{"pair", []string{"alltoall", "alltoallv", "allgather"}, 512, 64 << 10,
			func(t *collectives.Tuning) *int { return &t.Pair }, 256},
		{"combine", []string{"gather", "scatter"}, 1 << 10, 64 << 10,
			func(t *collectives.Tuning) *int { return &t.Combine }, 1 << 10},
		{"leaders", []string{"bcast", "reduce"}, 128 << 10, 1 << 20,
			func(t *collectives.Tuning) *int { return &t.Leaders }, 1},
		{"localdepth", []string{"bcast", "allreduce"}, 128 << 10, 1 << 20,
			func(t *collectives.Tuning) *int { return &t.LocalDepth }, 1},
	}
}

// candidates returns tunings with a quarter, half, twice and four times the value of the best so
// far, without those below the setting's least value.
func (s Setting) candidates(best collectives.Tuning) (list []collectives.Tuning) {
	now := *s.field(&best)
	for _, n := range []int{now / 4, now / 2, now * 2, now * 4} {
		if n >= s.least {
			t := best
			*s.field(&t) = n
			list = append(list, t)
		}
	}
	return list
}
