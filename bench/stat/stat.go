// Package stat has the statistics that performance measurements need, after Hoefler and Belli,
// "Scientific Benchmarking of Parallel Computing Systems" (SC 2015): medians beside means,
// confidence intervals, repetition until the interval is narrow, autocorrelation, and a test before
// a difference is claimed. All functions are pure; none changes its input.
package stat

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Summary describes a sample. Units are the sample's.
type Summary struct {
	N      int     `json:"n"`
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Q1     float64 `json:"q1"`
	Q3     float64 `json:"q3"`
	// StdDev is that of the sample, with n-1 degrees of freedom.
	StdDev float64 `json:"stddev"`
	// CI is the half width of the mean's 95 % interval (Student t) from every Stride-th value. It
	// is -1 for n < 2.
	CI float64 `json:"ci95"`
	// Stride is 1 unless neighbours correlate (Subsample), and 0 for n < 2.
	Stride int `json:"stride"`
	// MedianLo and MedianHi are the 95 % interval of the median, by ranks, without an assumption
	// about the distribution. For n < MinPairs they are the range, which covers less.
	MedianLo float64 `json:"median_lo"`
	MedianHi float64 `json:"median_hi"`
	// Outliers counts values beyond 1.5 interquartile ranges from the quartiles (Tukey), which are
	// never dropped.
	Outliers int `json:"outliers"`
	// Lag1 is the autocorrelation at lag 1, or 0 for n < 3.
	Lag1 float64 `json:"lag1"`
}

// Summarize returns the description of a sample, the zero Summary for an empty one.
func Summarize(x []float64) Summary {
	if len(x) == 0 {
		return Summary{}
	}
	s := slices.Sorted(slices.Values(x))
	n := len(s)
	sum := Summary{N: n, Min: s[0], Max: s[n-1], Median: Quantile(s, 0.5), Q1: Quantile(s, 0.25), Q3: Quantile(s, 0.75),
		CI: -1, Lag1: Autocorrelation(x, 1)}
	sum.Mean = stat.Mean(s, nil)
	if n > 1 {
		sum.StdDev = stat.StdDev(s, nil)
		var independent []float64
		independent, sum.Stride = Subsample(x)
		sum.CI = HalfWidth(independent)
	}
	sum.MedianLo, sum.MedianHi = medianInterval(s)
	reach := 1.5 * (sum.Q3 - sum.Q1)
	for _, v := range s {
		if v < sum.Q1-reach || v > sum.Q3+reach {
			sum.Outliers++
		}
	}
	return sum
}

// Quantile returns a quantile of a sorted sample, linear between the two nearest ranks (type 7 of
// Hyndman and Fan 1996).
func Quantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// Median returns the median of a sample in any order, or NaN for an empty one.
func Median(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	return Quantile(slices.Sorted(slices.Values(x)), 0.5)
}

// HalfWidth returns the half width of the mean's confidence interval by Student's t, for
// independent values. It is +Inf for fewer than two.
func HalfWidth(x []float64) float64 {
	n := float64(len(x))
	if n < 2 {
		return math.Inf(1)
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(1 - (1-Confidence)/2)
	return t * stat.StdDev(x, nil) / math.Sqrt(n)
}

// medianInterval returns the order-statistic interval of the median (binomial, normal approximation
// of the ranks as in Le Boudec 2011).
func medianInterval(sorted []float64) (lo, hi float64) {
	n := float64(len(sorted))
	z := distuv.UnitNormal.Quantile(1 - (1-Confidence)/2)
	i := int(math.Floor((n - z*math.Sqrt(n)) / 2))
	j := int(math.Ceil(1+(n+z*math.Sqrt(n))/2)) - 1
	return sorted[max(i-1, 0)], sorted[min(j, len(sorted)-1)]
}

// Autocorrelation returns that of the sequence at a lag, in -1 … 1, or 0 for a constant or too
// short sequence.
func Autocorrelation(x []float64, lag int) float64 {
	if len(x) < lag+2 {
		return 0
	}
	m := stat.Mean(x, nil)
	var num, den float64
	for i, v := range x {
		den += (v - m) * (v - m)
		if i+lag < len(x) {
			num += (v - m) * (x[i+lag] - m)
		}
	}
	if den == 0 {
		return 0
	}
	return num / den
}

// Subsample takes every k-th value, because intervals assume independent values. k is the smallest,
// up to a quarter of the sequence, for which neighbours no longer correlate at the 5 % level
// (|autocorrelation| < 1.96/√n), or fewer than 8 values are left. It returns the sequence itself if
// its neighbours do not correlate, and k.
func Subsample(x []float64) (kept []float64, k int) {
	for k = 1; ; k++ {
		kept = kept[:0:0]
		for i := 0; i < len(x); i += k {
			kept = append(kept, x[i])
		}
		if math.Abs(Autocorrelation(kept, 1)) < 1.96/math.Sqrt(float64(len(kept))) || len(kept) < 8 ||
			k >= max(1, len(x)/4) {
			return kept, k
		}
	}
}

// Rule decides when there are enough measurements.
type Rule struct {
	Min, Max int     // repetitions, 2 ≤ Min ≤ Max
	Width    float64 // stop when the interval's half width is at most this share of the mean
}

// Enough tells whether to stop, and whether the width was reached (false when only Max was).
func (r Rule) Enough(x []float64) (stop, reached bool) {
	if len(x) < r.Min {
		return false, false
	}
	independent, _ := Subsample(x)
	reached = HalfWidth(independent) <= r.Width*math.Abs(stat.Mean(x, nil))
	return reached || len(x) >= r.Max, reached
}
