package tune

import (
	"context"
	"fmt"
	"math"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/stat"
	"github.com/leidenzipper/zipper/collectives"
)

// worse is the ratio of times above which a candidate is rejected, however much faster it is
// elsewhere, if its whole interval is above that at some size. Two algorithms meet where neither is
// worse.
const worse = 1.02

// Measure runs the setting's benchmarks with each of the tunings in turn. It returns a comparison
// for each benchmark, with the tunings as targets in this order.
type Measure func(ctx context.Context, s Setting, tunings []collectives.Tuning) ([]*drive.Comparison, error)

// Choice is the result for a setting.
type Choice struct {
	Setting string   `json:"setting"`
	Was     int      `json:"was"`
	Is      int      `json:"is"`
	Tried   []Result `json:"tried"`
}

// Result compares a candidate with the best so far: the ratio of times, in which each benchmark and
// size has the same weight, with its 95 % interval (0: too few rounds).
type Result struct {
	Value   int     `json:"value"`
	Ratio   float64 `json:"ratio"`
	RatioLo float64 `json:"ratio_lo"`
	RatioHi float64 `json:"ratio_hi"`
	Slower  string  `json:"slower_at,omitempty"` // the first place with an interval above worse
}

// shown tells whether the candidate is faster, and nowhere Slower.
func (r Result) shown() bool { return r.RatioHi > 0 && r.RatioHi < 1 && r.Slower == "" }

// Choose measures one setting after the other and keeps the values that are shown to be faster. It
// calls progress for each setting. With an error it returns the choices before it, which are valid.
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

// compare compares tuning i with the first. In each round the ratios of the times of all points
// have a geometric mean, so that a large message counts no more than a small one.
func compare(cs []*drive.Comparison, i int) (r Result) {
	var sums []float64 // of the logarithms, by round
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
