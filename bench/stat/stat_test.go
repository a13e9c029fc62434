package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

func near(t *testing.T, what string, got, want, eps float64) {
	t.Helper()
	if math.Abs(got-want) > eps {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func TestSummarize(t *testing.T) {
	s := Summarize([]float64{4, 1, 3, 2, 100})
	near(t, "mean", s.Mean, 22, 1e-12)
	near(t, "median", s.Median, 3, 0)
	near(t, "q1", s.Q1, 2, 0)
	near(t, "q3", s.Q3, 4, 0)
	near(t, "stddev", s.StdDev, 43.6176, 1e-4)
	near(t, "ci", s.CI, 2.776445*43.6176/math.Sqrt(5), 1e-3) // t for 4 degrees of freedom
	if s.Outliers != 1 || s.Min != 1 || s.Max != 100 {
		t.Errorf("outliers %d, min %v, max %v", s.Outliers, s.Min, s.Max)
	}
	if one := Summarize([]float64{7}); one.CI != -1 || one.Median != 7 || one.MedianLo != 7 || one.MedianHi != 7 {
		t.Errorf("one value: %+v", one)
	}
	if Summarize(nil).N != 0 {
		t.Error("empty sample")
	}
}

// TestMedianIntervalCovers checks that the order-statistic interval of the median covers the true
// median in about 95 % of samples.
func TestMedianIntervalCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const runs = 4000
	in := 0
	for range runs {
		x := make([]float64, 21)
		for i := range x {
			x[i] = rng.ExpFloat64()
		}
		if s := Summarize(x); s.MedianLo <= math.Ln2 && math.Ln2 <= s.MedianHi {
			in++
		}
	}
	if p := float64(in) / runs; p < 0.945 || p > 0.99 {
		t.Errorf("covers the median in %.3f of samples", p)
	}
}

// TestMannWhitney has the values of R's wilcox.test for its own examples. The value with ties is
// computed by hand: U = 3, sigma² = 25/12·(11 - 60/90), z = 9/4.640.
func TestMannWhitney(t *testing.T) {
	near(t, "exact", MannWhitney([]float64{1, 2, 3}, []float64{4, 5, 6}), 0.1, 1e-12)
	near(t, "exact 2", MannWhitney([]float64{0.8, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46},
		[]float64{1.15, 0.88, 0.9, 0.74, 1.21}), 0.2544, 1e-4)
	near(t, "ties", MannWhitney([]float64{1, 1, 2, 2, 3}, []float64{2, 3, 3, 4, 4}), 0.05241, 1e-4)
	near(t, "same", MannWhitney([]float64{1, 1}, []float64{1, 1}), 1, 0)
	near(t, "empty", MannWhitney(nil, []float64{1}), 1, 0)
}

func TestExactDistribution(t *testing.T) {
	// All splits of 3+3: 20 ways; U = 0 in one of them, 1 in one, 2 in two.
	near(t, "u0", exactP(3, 3, 0), 2.0/20, 1e-12)
	near(t, "u1", exactP(3, 3, 1), 4.0/20, 1e-12)
	near(t, "u2", exactP(3, 3, 2), 8.0/20, 1e-12)
	near(t, "all", exactP(3, 3, 9), 1, 0)
}

func TestCompareFindsAShift(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var a, b, c []float64
	for i := range 30 {
		drift := 1 + float64(i)/10 // both slow down together
		a = append(a, drift*(1.2+0.02*rng.NormFloat64()))
		b = append(b, drift*(1.0+0.02*rng.NormFloat64()))
		c = append(c, drift*(1.0+0.02*rng.NormFloat64()))
	}
	if r := Compare(a, b); math.Abs(r.Ratio-1.2) > 0.02 || r.RatioLo > 1.2 || r.RatioHi < 1.2 {
		t.Errorf("ratio %v (%v … %v)", r.Ratio, r.RatioLo, r.RatioHi)
	}
	if r := Compare(b, c); r.Differs {
		t.Errorf("a difference of equal samples: p = %v", r.P)
	}
}

// TestFewValuesClaimNothing checks that too few values claim nothing: no interval of the ratio, and
// no test, however far apart the samples are.
func TestFewValuesClaimNothing(t *testing.T) {
	var a, b []float64
	for n := 1; n <= 7; n++ {
		a, b = append(a, float64(100+n)), append(b, float64(10+n))
		c := Compare(a, b)
		if c.TooFew != (n < 4) || c.Differs == c.TooFew {
			t.Errorf("%d values each: too few: %v, p = %v, differs: %v", n, c.TooFew, c.P, c.Differs)
		}
		if interval := c.RatioLo != 0 || c.RatioHi != 0; interval != (n >= MinPairs) {
			t.Errorf("%d values each: interval %v - %v", n, c.RatioLo, c.RatioHi)
		}
	}
	if c := Compare(nil, nil); !c.TooFew {
		t.Error("nothing is enough")
	}
}

func TestSubsample(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	white, walk := make([]float64, 400), make([]float64, 400)
	for i := range white {
		white[i] = rng.NormFloat64()
		walk[i] = rng.NormFloat64()
		if i > 0 {
			walk[i] += 0.9 * walk[i-1]
		}
	}
	if _, k := Subsample(white); k > 2 {
		t.Errorf("independent values were thinned by %d", k)
	}
	kept, k := Subsample(walk)
	if k < 5 || math.Abs(Autocorrelation(kept, 1)) > 0.35 {
		t.Errorf("correlated values were thinned by %d to autocorrelation %v", k, Autocorrelation(kept, 1))
	}
}

func TestRule(t *testing.T) {
	r := Rule{Min: 3, Max: 5, Width: 0.01}
	for _, c := range []struct {
		x             []float64
		stop, reached bool
	}{
		{[]float64{1, 1}, false, false},
		{[]float64{1, 1, 1}, true, true},
		{[]float64{1, 2, 3}, false, false},
		{[]float64{1, 2, 3, 4, 5}, true, false},
	} {
		if stop, reached := r.Enough(c.x); stop != c.stop || reached != c.reached {
			t.Errorf("Enough(%v) = %v, %v", c.x, stop, reached)
		}
	}
}

// TestCorrelationWidensTheInterval checks that the interval of the mean of a sequence whose
// neighbours correlate takes that into account.
func TestCorrelationWidensTheInterval(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	const runs = 1000
	var thinned, naive int
	for range runs {
		x := make([]float64, 200)
		for i := range x {
			x[i] = rng.NormFloat64()
			if i > 0 {
				x[i] += 0.8 * x[i-1]
			}
		}
		s := Summarize(x)
		if math.Abs(s.Mean) <= s.CI {
			thinned++
		}
		if math.Abs(s.Mean) <= HalfWidth(x) {
			naive++
		}
	}
	if float64(thinned) < 0.8*runs || float64(naive) > 0.6*runs {
		t.Errorf("of %d intervals %d cover the mean, and %d without thinning", runs, thinned, naive)
	}
}

func TestJainIsOneForEqualShares(t *testing.T) {
	for _, c := range []struct {
		x    []float64
		want float64
	}{{[]float64{3, 3, 3}, 1}, {[]float64{1, 0, 0, 0}, 0.25}, {[]float64{1, 2, 3}, 36.0 / 42}, {nil, 0},
		{[]float64{0, 0}, 0}} {
		if got := Jain(c.x); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("Jain(%v) = %v, want %v", c.x, got, c.want)
		}
	}
}
