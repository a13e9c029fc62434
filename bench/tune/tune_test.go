package tune

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/collectives"
)

// machine returns a Measure in which time gives the time of a benchmark with a tuning.
func machine(rounds int, time func(benchmark string, size, round int, t collectives.Tuning) float64) Measure {
	return func(_ context.Context, s Setting, tunings []collectives.Tuning) (cs []*drive.Comparison, err error) {
		for _, name := range s.Benchmarks {
			c := &drive.Comparison{Benchmark: name, Rounds: rounds}
			for size := s.Min; size <= s.Max; size *= 2 {
				row := drive.Sizes{Size: size, Values: make([][]float64, len(tunings))}
				for i, t := range tunings {
					for round := range rounds {
						row.Values[i] = append(row.Values[i], time(name, size, round, t))
					}
				}
				c.Rows = append(c.Rows, row)
			}
			cs = append(cs, c)
		}
		return cs, nil
	}
}

func some(names ...string) []Setting {
	return slices.DeleteFunc(Settings(), func(s Setting) bool { return !slices.Contains(names, s.Name) })
}

func choose(t *testing.T, m Measure, settings []Setting) (collectives.Tuning, []Choice) {
	t.Helper()
	best, all, err := Choose(context.Background(), collectives.Tuning{}, settings, m, func(Choice) {})
	if err != nil || len(all) != len(settings) {
		t.Fatalf("%v: %+v", err, all)
	}
	return best, all
}

// TestFasterInEveryRoundIsTaken checks that a value that is faster in every round is taken,
// although the machine becomes slower from round to round.
func TestFasterInEveryRoundIsTaken(t *testing.T) {
	best, all := choose(t, machine(6, func(_ string, _, round int, t collectives.Tuning) float64 {
		d := float64(t.Chunk-8<<10) / (8 << 10)
		return (10 + d*d) * float64(1+round)
	}), some("chunk", "leaders"))
	if best.Chunk != 8<<10 || best.Leaders != 4 || all[0].Was != 16<<10 || all[0].Is != 8<<10 || all[1].Is != 4 {
		t.Errorf("%v: %+v", best, all)
	}
}

// TestUnclearValueIsRejected checks that a value is rejected that is slower at one size, or faster
// in most rounds only, or was measured in a few rounds only.
func TestUnclearValueIsRejected(t *testing.T) {
	for what, m := range map[string]Measure{
		"slower at a size": machine(6, func(_ string, size, _ int, t collectives.Tuning) float64 {
			if t.Chunk == 16<<10 {
				return 10
			}
			if size == 32<<10 {
				return 11
			}
			return 5
		}),
		"not in all rounds": machine(6, func(_ string, _, round int, t collectives.Tuning) float64 {
			if t.Chunk == 16<<10 || round == 5 {
				return 10
			}
			return 9
		}),
		"few rounds": machine(3, func(_ string, _, _ int, t collectives.Tuning) float64 { return float64(t.Chunk) }),
	} {
		best, all := choose(t, m, some("chunk"))
		if best.Chunk != 16<<10 {
			t.Errorf("%s: %+v", what, all)
		}
		if named := strings.Contains(all[0].Tried[0].Slower, "alltoall of 32768 B"); named != (what == "slower at a size") {
			t.Errorf("%s: %+v", what, all)
		}
	}
}

// TestChoicesBeforeTheEndAreValid checks that choices before the end are valid.
func TestChoicesBeforeTheEndAreValid(t *testing.T) {
	gone := errors.New("gone")
	faster := machine(6, func(_ string, _, _ int, t collectives.Tuning) float64 { return float64(t.Chunk) })
	best, all, err := Choose(context.Background(), collectives.Tuning{}, some("chunk", "slice"),
		func(ctx context.Context, s Setting, tunings []collectives.Tuning) ([]*drive.Comparison, error) {
			if s.Name == "slice" {
				return nil, gone
			}
			return faster(ctx, s, tunings)
		}, func(Choice) {})
	if err != gone || best.Chunk != 4<<10 || len(all) != 1 {
		t.Errorf("%v, %v, %+v", best, err, all)
	}
}

// TestCandidatesAreValidTables checks that every candidate is a table that a job accepts.
func TestCandidatesAreValidTables(t *testing.T) {
	for _, s := range Settings() {
		list := s.candidates(collectives.Tuning{}.Filled())
		if len(list) < 3 {
			t.Errorf("%s: only %v", s.Name, list)
		}
		for _, c := range list {
			if again, err := collectives.ParseTuning(c.Table("")); err != nil || again != c {
				t.Errorf("%v: %v", c, err)
			}
		}
	}
}
