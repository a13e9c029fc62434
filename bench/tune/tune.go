package tune

import (
	"context"
	"fmt"
	"math"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/stat"
	"github.com/leidenzipper/zipper/collectives"
)

// worse is the ratio from which on a candidate is not taken, however much faster it is elsewhere,
// if at some size all of its interval is above that. Two algorithms meet where neither is worse.
const worse = 1.02

// Measure runs the setting's benchmarks with each of the tunings in turn. The comparisons are one a
// benchmark, with the tunings as targets in this order.
type Measure func(ctx context.Context, s Setting, tunings []collectives.Tuning) ([]*drive.Comparison, error)

// Choice is what became of a setting.
type Choice struct {
	Setting string   `json:"setting"`
	Was     int      `json:"was"`
	Is      int      `json:"is"`
	Tried   []Result `json:"tried"`
}

// Result is a candidate beside the best so far: the times' ratio, in which each benchmark and size
// counts alike, with its 95 % interval (0: too few rounds).
type Result struct {
	Value   int     `json:"value"`
	Ratio   float64 `json:"ratio"`
	RatioLo float64 `json:"ratio_lo"`
	RatioHi float64 `json:"ratio_hi"`
	Slower  string  `json:"slower_at,omitempty"` // where it is slower, as its interval says
}

// shown reports whether the candidate is faster, and nowhere slower.
func (r Result) shown() bool { return r.RatioHi > 0 && r.RatioHi < 1 && r.Slower == "" }

// Choose measures setting after setting and keeps what is shown to be faster. progress is told of
// each. With an error come the choices before it, which stand.
func Choose(ctx context.Context, start collectives.Tuning, settings []Setting, measure Measure,
	progress func(Choice)) (best collectives.Tuning, all []Choice, err error) {
	best = start.Filled()
	for _, s := range settings {
		tunings := append([]collectives.Tuning{best}, s.candidates(best)...)
		cs, err := measure(ctx, s, tunings)
		if err != nil {
			return best, all, err
		}
		c := Choice{Setting: s.Name, Was: *s.field(&best), Is: *s.field(&best)}
		fastest := 1.0
		for i := 1; i < len(tunings); i++ {
			r := compare(cs, i)
			r.Value = *s.field(&tunings[i])
			c.Tried = append(c.Tried, r)
			if r.shown() && r.Ratio < fastest {
				fastest, best, c.Is = r.Ratio, tunings[i], r.Value
			}
		}
		all = append(all, c)
		progress(c)
	}
	return best, all, nil
}

// compare is tuning i beside the first. In each round the times of all points, each by the other's,
// have a geometric mean: a large message counts no more than a small one.
func compare(cs []*drive.Comparison, i int) (r Result) {
	var sums []float64 // of logarithms, by round
	points := 0
	for _, c := range cs {
		for _, row := range c.Rows {
			points++
			for round, v := range row.Values[i] {
				if round == len(sums) {
					sums = append(sums, 0)
				}
				sums[round] += math.Log(v / row.Values[0][round])
			}
			if x := stat.Compare(row.Values[i], row.Values[0]); x.RatioLo > worse && r.Slower == "" {
				r.Slower = fmt.Sprintf("%s of %d B: %.2f (%.2f - %.2f)", c.Benchmark, row.Size, x.Ratio, x.RatioLo,
					x.RatioHi)
			}
		}
	}
	means, ones := make([]float64, len(sums)), make([]float64, len(sums))
	for round, s := range sums {
		means[round], ones[round] = math.Exp(s/float64(points)), 1
	}
	x := stat.Compare(means, ones)
	r.Ratio, r.RatioLo, r.RatioHi = x.Ratio, x.RatioLo, x.RatioHi
	return r
}
