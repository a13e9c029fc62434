package fit

import (
	"math"
	"math/rand/v2"
	"testing"
)

// within checks that a value is within four standard errors, which a fair estimate misses once in
// 15 000.
func within(t *testing.T, what string, v Value, want float64) {
	t.Helper()
	if !(v.Err > 0) || math.Abs(v.Value-want) > 4*v.Err {
		t.Errorf("%s = %v, want %v", what, v, want)
	}
}

func TestNoisyFitsRecoverParameters(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	noisy := func(v, sigma float64, n int) (s []float64) {
		for range n {
			s = append(s, v+sigma*rng.NormFloat64())
		}
		return s
	}
	var x, y []float64
	for m := 0.0; m <= 1e6; m += 5e4 {
		x, y = append(x, m), append(y, 50e-6+1e-9*m+1e-6*rng.NormFloat64())
	}
	h, err := FitHockney(x, y)
	if err != nil {
		t.Fatal(err)
	}
	within(t, "alpha", h.Alpha, 50e-6)
	within(t, "beta", h.Beta, 1e-9)

	const L, os, or, g, G = 5, 2, 1.5, 4, .01
	prtt := func(n int, d, m float64) float64 {
		return 2*(os+L+or+(m-1)*G) + float64(n-1)*math.Max(os+d, g+(m-1)*G)
	}
	p := PRTT{Sizes: []float64{1, 101, 401, 1001}, N: 16, Delay: 20, Delayed: noisy(prtt(16, 20, 1), .1, 40),
		Or: noisy(or, .1, 40)}
	for _, m := range p.Sizes {
		p.One, p.Row = append(p.One, noisy(prtt(1, 0, m), .1, 40)), append(p.Row, noisy(prtt(16, 0, m), .1, 40))
	}
	l, err := FitLogGP(p)
	if err != nil {
		t.Fatal(err)
	}
	for what, v := range map[string]struct {
		v    Value
		want float64
	}{"L": {l.L, L}, "o_s": {l.Os, os}, "o_r": {l.Or, or}, "g": {l.Gap, g}, "G": {l.G, G}} {
		within(t, what, v.v, v.want)
	}
	if p.Delay = 3; l.Gap.Value > 3 {
		if _, err := FitLogGP(p); err == nil {
			t.Error("a delay below the gap was accepted")
		}
	}

	k := Kielmann{Sizes: []float64{0, 1000}, N: 10, Row: noisy(2*7+11*3, .05, 40),
		One: [][]float64{noisy(2*7+2*3, .05, 40), noisy(2*7+3+20, .05, 40)},
		Os:  [][]float64{noisy(1, .05, 40), noisy(2, .05, 40)}, Or: [][]float64{noisy(1, .05, 40), noisy(3, .05, 40)}}
	pl, err := FitPLogP(k)
	if err != nil {
		t.Fatal(err)
	}
	within(t, "PLogP L", pl.L, 7)
	within(t, "g(0)", pl.G[0], 3)
	within(t, "g(1000)", pl.G[1], 20)
	within(t, "o_r(1000)", pl.Or[1], 3)

	tl, err := FitTauLop([][]float64{noisy(4, .05, 40)},
		[][][]float64{{noisy(4+2*1, .05, 40), noisy(4+2*1.5, .05, 40)}}, 2)
	if err != nil {
		t.Fatal(err)
	}
	within(t, "tau-Lop o", tl.O[0], 4)
	within(t, "L(tau=2)", tl.L[0][1], 1.5)
}

func TestLogGPSFindsBothThresholds(t *testing.T) {
	var sizes, times []float64
	for m := 100.0; m <= 4000; m += 100 {
		v := 10 + .02*math.Min(m, 1000) + .005*math.Max(0, m-1000)
		if m > 3000 {
			v += 25
		}
		sizes, times = append(sizes, m), append(times, v)
	}
	l, err := FitLogGPS(sizes, times, 5)
	if err != nil {
		t.Fatal(err)
	}
	if l.Sync != 3000 || math.Abs(l.Small-1000) > 1 || math.Abs(l.Gs.Value-.02) > 1e-9 ||
		math.Abs(l.Gl.Value-.005) > 1e-9 || math.Abs(l.O.Value-10) > 1e-6 {
		t.Errorf("%+v", l)
	}
}

func TestFitsRefuseNonsense(t *testing.T) {
	nan := math.NaN()
	for what, err := range map[string]error{
		"no samples":   second(Mean(nil)),
		"NaN":          second(Mean([]float64{1, nan})),
		"one point":    second(Fit([]float64{1}, []float64{1})),
		"equal sizes":  second(Fit([]float64{1, 1}, []float64{1, 2})),
		"NaN size":     second(Fit([]float64{1, nan}, []float64{1, 2})),
		"one sample":   second(HalfWidth([]float64{1}, .95)),
		"level":        second(HalfWidth([]float64{1, 2}, 2)),
		"empty LogGP":  second(FitLogGP(PRTT{})),
		"empty PLogP":  second(FitPLogP(Kielmann{})),
		"empty LMO":    second(FitLMO(LMOData{})),
		"empty LogGPS": second(FitLogGPS(nil, nil, 1)),
		"tau-Lop":      second(FitTauLop([][]float64{{1}}, nil, 1)),
	} {
		if err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
}

func second[T any](_ T, err error) error { return err }
