package stat

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/combin"
	"gonum.org/v1/gonum/stat/distuv"
)

// Comparison compares two configurations that were measured in turn.
type Comparison struct {
	A, B Summary
	// Ratio is the median of the pairwise ratios a/b.
	Ratio float64 `json:"ratio"`
	// RatioLo and RatioHi are its 95 % interval; both are 0 for fewer than MinPairs pairs.
	RatioLo float64 `json:"ratio_lo,omitempty"`
	RatioHi float64 `json:"ratio_hi,omitempty"`
	// P is the two-sided p-value of Mann and Whitney.
	P float64 `json:"p"`
	// Differs tells that P < 0.05.
	Differs bool `json:"differs"`
	// TooFew tells that no P below 0.05 is possible for so few values, however they lie.
	TooFew bool `json:"too_few,omitempty"`
}

// Compare compares two samples that were measured interleaved: a[i] beside b[i]. Extra values of
// the longer sample count only for its Summary and the test. The ratio is of pairs because machines
// drift, and a drift of both members of a pair cancels.
func Compare(a, b []float64) Comparison {
	c := Comparison{A: Summarize(a), B: Summarize(b), P: MannWhitney(a, b)}
	c.Differs = c.P < significance
	// the P of samples that do not overlap
	c.TooFew = 2/combin.GeneralizedBinomial(float64(len(a)+len(b)), float64(len(a))) >= significance
	ratios := make([]float64, 0, min(len(a), len(b)))
	for i := range min(len(a), len(b)) {
		ratios = append(ratios, a[i]/b[i])
	}
	if len(ratios) > 0 {
		slices.Sort(ratios)
		c.Ratio = Quantile(ratios, 0.5)
		if len(ratios) >= MinPairs {
			c.RatioLo, c.RatioHi = medianInterval(ratios)
		}
	}
	return c
}

// MannWhitney returns the two-sided p-value that the two samples come from one distribution,
// against one being shifted (Mann and Whitney 1947). It is exact for small samples without ties
// (product of sizes at most 1600), else the normal approximation with correction for ties and
// continuity. It is 1 if either sample is empty.
func MannWhitney(a, b []float64) float64 {
	n, m := len(a), len(b)
	if n == 0 || m == 0 {
		return 1
	}
	type obs struct {
		v     float64
		fromA bool
	}
	all := make([]obs, 0, n+m)
	for _, v := range a {
		all = append(all, obs{v, true})
	}
	for _, v := range b {
		all = append(all, obs{v, false})
	}
	slices.SortFunc(all, func(x, y obs) int {
		switch {
		case x.v < y.v:
			return -1
		case x.v > y.v:
			return 1
		}
		return 0
	})
	var rankSum, ties float64
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j].v == all[i].v {
			j++
		}
		rank := float64(i+j+1) / 2 // the mean of ranks i+1 … j
		for _, o := range all[i:j] {
			if o.fromA {
				rankSum += rank
			}
		}
		t := float64(j - i)
		ties += t*t*t - t
		i = j
	}
	u := rankSum - float64(n*(n+1))/2
	if ties == 0 && n*m <= 1600 {
		return exactP(n, m, int(math.Round(min(u, float64(n*m)-u))))
	}
	total := float64(n + m)
	sigma := math.Sqrt(float64(n*m) / 12 * (total + 1 - ties/(total*(total-1))))
	if sigma == 0 {
		return 1
	}
	z := max(0, math.Abs(u-float64(n*m)/2)-0.5) / sigma
	return min(1, 2*distuv.UnitNormal.Survival(z))
}

// exactP returns 2·P(U ≤ u) from the exact distribution of U: the number of ways to choose n of n+m
// ranks for a with the given sum, by the usual recursion over the ranks.
func exactP(n, m, u int) float64 {
	ways := make([][]float64, n+1) // ways[k][s]: k ranks chosen, U so far s
	for k := range ways {
		ways[k] = make([]float64, n*m+1)
	}
	ways[0][0] = 1
	for r := 1; r <= n+m; r++ {
		for k := min(r, n); k >= 1; k-- {
			below := r - k // the number of b's below this rank, if it is a's k-th
			if below < 0 || below > m {
				continue
			}
			for s := n*m - below; s >= 0; s-- {
				ways[k][s+below] += ways[k-1][s]
			}
		}
	}
	var le, total float64
	for s, w := range ways[n] {
		total += w
		if s <= u {
			le += w
		}
	}
	return min(1, 2*le/total)
}
