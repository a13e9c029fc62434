package catalogue

import (
	"math"
	"testing"
)

func TestModelsAreTheSurveysTable(t *testing.T) {
	seen := map[string]bool{}
	for i, m := range Models() {
		if m.Number != i+1 || m.Name == "" || m.Formula == "" || m.Parameters == "" || m.Use == "" || seen[m.Name] {
			t.Errorf("entry %d: %+v", i+1, m)
		}
		seen[m.Name] = true
	}
	if len(seen) != 25 {
		t.Errorf("%d models, want 25", len(seen))
	}
}

// TestFormulas checks models without a test vector against times calculated by hand.
func TestFormulas(t *testing.T) {
	two := [][]float64{{0, 2}, {2, 0}}
	for name, x := range map[string][2]float64{
		"Postal":     {Postal{7}.Time(100), 7},
		"LoPC":       {LoPC{3, 4}.Time(1), 7},
		"Banikazemi": {Banikazemi{1, .1, 2, .2, 3, .3}.Time(10), 6 + 6},
		"Bhat":       {Bhat{T: two, Beta: two}.Time(0, 1, 10), 22},
		"LoGPC":      {LoGPC{LogGP{LogP{5, 2, 2, 4}, .01}, 6}.Time(101), 16},
		"HLogGP": {HLogGP{Os: []float64{1, 2}, Or: []float64{3, 4}, L: two, G: two}.Time(0, 1, 11),
			2 + 1 + 4 + 20},
		"LogfP burst":  {LogfP{LogP{5, 2, 0, 4}, 3}.Burst(5), 7 + 8},
		"LogfP free":   {LogfP{LogP{5, 2, 0, 4}, 3}.Burst(2), 7},
		"lognP":        {LognP{{O: 1, Gap: 2, L: 3}, {O: 4, Gap: 2}}.Time(), 9},
		"PLP":          {PLP{1, 2, 3, 4}.Time(3), 6 + 4 + 3},
		"LogGPO late":  {LogGPO{Prime: 1, Oi: 2, L: 3, G: 1}.ReceiveLate(11, 5), 10 + 5 + 4 + 10 + 3},
		"LogGPO waits": {LogGPO{Prime: 1, Oi: 2, L: 3, G: 1}.ReceiverWaits(11, 5), 10 + 2 + 10 + 3 + 5},
		"LogGPH":       {LogGPH{{LogP{1, 1, 1, 1}, 0}, {LogP{5, 1, 1, 1}, 1}}.Broadcast(1, 0, 4, 2, 1), 2*7 + 3},
		"mlognP":       {MLognP{"net": {1, 2}, "shm": {1}}.Time("net"), 3},
		"Chan": {Chan{Average: []Curve{{[]float64{0, 8}, []float64{1, 2}}}, Beta: 8,
			Delta: 1}.Communication([][]float64{{1, 1}}), 8},
		"Chan total": {Chan{Delta: 10}.Execution(3, 2, 1), 40},
		"Steffenel": {Steffenel{PLogP{L: 1, G: Curve{[]float64{0}, []float64{2}}},
			func(m float64, p int) float64 { return m * float64(p) },
			func(float64, int) float64 { return 3 }}.Time(2, 4), 1 + 2 + 8 + 3},
		"LogGPS rendezvous": {LogGPS{L: 5, O: 1, Sync: 4}.Time(5, 0) - LogGPS{L: 5, O: 1, Sync: 5}.Time(5, 0), 14},
		"Overlap":           {Overlap(3, 1), .75},
	} {
		if math.Abs(x[0]-x[1]) > 1e-12*math.Abs(x[1]) {
			t.Errorf("%s = %v, want %v", name, x[0], x[1])
		}
	}
	c := Curve{[]float64{0, 10, 20}, []float64{0, 10, 40}}
	for m, want := range map[float64]float64{0: 0, 5: 5, 10: 10, 15: 25, 30: 70} {
		if c.At(m) != want {
			t.Errorf("Curve.At(%v) = %v, want %v", m, c.At(m), want)
		}
	}
	p := PLogP{L: 10, G: Curve{[]float64{0, 1000}, []float64{4, 14}}, Os: Curve{[]float64{0}, []float64{2}},
		Or: Curve{[]float64{0}, []float64{3}}}
	if l := p.LogGP(1000); math.Abs(l.G-.01) > 1e-12 || math.Abs(l.Time(1)-p.Time(1)) > 1e-12 {
		t.Errorf("conversion %+v: T(1) = %v, want %v", l, l.Time(1), p.Time(1))
	}
}
