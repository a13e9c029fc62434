// Package fit finds the parameters of communication models from measured times,
// each with its standard error. Units follow the input (seconds and bytes
// give seconds per byte). All functions are pure.
//
// Measurements of different protocols (eager, rendezvous) must be fitted apart:
// see Split.
package fit

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Value is an estimate and its standard error (0 if a single sample allows
// none).
type Value struct{ Value, Err float64 }

func (v Value) String() string { return fmt.Sprintf("%.6g ± %.2g", v.Value, v.Err) }

func (v Value) minus(w Value) Value   { return Value{v.Value - w.Value, math.Hypot(v.Err, w.Err)} }
func (v Value) times(f float64) Value { return Value{v.Value * f, v.Err * math.Abs(f)} }

// Mean returns the mean of independent samples and its standard error. It returns an error if there
// are no samples, or if one is not finite.
func Mean(samples []float64) (Value, error) {
	if len(samples) == 0 {
		return Value{}, errors.New("no samples")
	}
	sum := 0.0
	for _, x := range samples {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return Value{}, fmt.Errorf("sample %v is not a number", x)
		}
		sum += x
	}
	n := float64(len(samples))
	mean := sum / n
	if n == 1 {
		return Value{mean, 0}, nil
	}
	squares := 0.0
	for _, x := range samples {
		squares += (x - mean) * (x - mean)
	}
	return Value{mean, math.Sqrt(squares / (n - 1) / n)}, nil
}

// HalfWidth returns half the width of the confidence interval of the mean by Student's t, for a
// confidence level such as 0.95. It needs two samples.
func HalfWidth(samples []float64, level float64) (float64, error) {
	if len(samples) < 2 || !(level > 0 && level < 1) {
		return 0, fmt.Errorf("a confidence interval needs two samples (got %d) and a level between 0 and 1 (got %v)",
			len(samples), level)
	}
	m, err := Mean(samples)
	if err != nil {
		return 0, err
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(len(samples) - 1)}
	return t.Quantile((1+level)/2) * m.Err, nil
}

// Enough reports whether the half width of the 95 % interval of the samples' mean is at most part
// (a fraction) of the mean: 0.025 is the survey's rule, 0.01 that of Zhu et al. (full width 2 %).
// It returns false for fewer than two samples.
func Enough(samples []float64, part float64) bool {
	h, err := HalfWidth(samples, 0.95)
	if err != nil {
		return false
	}
	m, _ := Mean(samples)
	return h <= part*math.Abs(m.Value)
}

// Line is a least-squares line y = A + B*x. Residual is the standard deviation
// of the points about it (n-2 degrees of freedom).
type Line struct {
	A, B     Value // value at x = 0, and slope
	Residual float64
}

// Fit fits a line by least squares to the points (x[i], y[i]). It needs two different x; standard
// errors need three points and are 0 for two.
func Fit(x, y []float64) (Line, error) {
	if len(x) != len(y) || len(x) < 2 {
		return Line{}, fmt.Errorf("a line needs two points: got %d and %d", len(x), len(y))
	}
	n := float64(len(x))
	var mx, my float64
	for i := range x {
		mx, my = mx+x[i]/n, my+y[i]/n
	}
	var sxx, sxy float64
	for i := range x {
		sxx += (x[i] - mx) * (x[i] - mx)
		sxy += (x[i] - mx) * (y[i] - my)
	}
	if !(sxx > 0) || math.IsNaN(sxy) || math.IsInf(sxx, 0) || math.IsInf(sxy, 0) {
		return Line{}, errors.New("a line needs two different finite sizes")
	}
	b := sxy / sxx
	l := Line{A: Value{Value: my - b*mx}, B: Value{Value: b}}
	if n > 2 {
		rss := 0.0
		for i := range x {
			r := y[i] - l.A.Value - b*x[i]
			rss += r * r
		}
		l.Residual = math.Sqrt(rss / (n - 2))
		l.B.Err = l.Residual / math.Sqrt(sxx)
		l.A.Err = l.Residual * math.Sqrt(1/n+mx*mx/sxx)
	}
	return l, nil
}

// Split finds where two lines fit the points (x[k], y[k]), x ascending, better than one: i is the
// index of the first point of the second line. Each side has at least three points. ok is false for
// fewer than six points, or if two lines do not reduce the sum of squares to less than a quarter.
func Split(x, y []float64) (i int, ok bool) {
	squares := func(from, to int) float64 {
		l, err := Fit(x[from:to], y[from:to])
		if err != nil {
			return math.Inf(1)
		}
		return l.Residual * l.Residual * float64(to-from-2)
	}
	if len(x) < 6 || len(x) != len(y) {
		return 0, false
	}
	best := math.Inf(1)
	for k := 3; k <= len(x)-3; k++ {
		if s := squares(0, k) + squares(k, len(x)); s < best {
			best, i = s, k
		}
	}
	return i, best < squares(0, len(x))/4
}
