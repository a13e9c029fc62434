package contend

import (
	"slices"
	"testing"
	"time"
)

func TestBusyMeasurementsAreNamed(t *testing.T) {
	got := TooBusy([]Outcome{{Pattern: "idle", Processors: Processors{CPU: 0.5}},
		{Pattern: "any d=1", Processors: Processors{CPU: 0.63}}},
		[]Replayed{{Trace: "is.A", Processors: Processors{CPU: 0.26, Stolen: 0.3}},
			{Trace: "cg.A", Processors: Processors{CPU: 0.26}}})
	if !slices.Equal(got, []string{"any d=1 (63 % used, 0 % stolen)", "is.A (26 % used, 30 % stolen)"}) {
		t.Errorf("%q", got)
	}
}

func TestUsage(t *testing.T) {
	var a, b usage
	if err := a.machine("cpu  100 0 100 1000 0 0 0 50 0 0"); err != nil {
		t.Fatal(err)
	}
	if err := b.machine("cpu  150 10 130 1090 0 0 10 60 50 0"); err != nil { // two seconds of one processor
		t.Fatal(err)
	}
	b.at, b.ours = a.at.Add(2*time.Second), 0.5
	if got, want := b.since(a), (Processors{CPU: 0.5, OurCPU: 0.25, Stolen: 0.05}); !near(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := a.since(a); got != (Processors{}) {
		t.Errorf("of no time: %+v", got)
	}
	for _, bad := range []string{"", "cpu 1 2 3", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3 4 x 6 7 8"} {
		if err := new(usage).machine(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// TestStolenTimeRepeatsAMeasurement checks that only the stolen time decides, not the errors of
// predictions, and that all measurements stay in the report.
func TestStolenTimeRepeatsAMeasurement(t *testing.T) {
	for _, x := range []struct{ stolen, others []float64 }{
		{[]float64{0.2}, nil},
		{[]float64{0.5, 0.1}, []float64{0.5}},
		{[]float64{0.5, 0.3, 0.4}, []float64{0.5, 0.4}},
		{[]float64{0.3, 0.5, 0.2}, []float64{0.5, 0.3}},
	} {
		n := 0
		o, err := undisturbed(func() (Outcome, error) {
			n++
			return Outcome{Processors: Processors{Stolen: x.stolen[n-1]}}, nil
		})
		var others []float64
		for _, d := range o.Disturbed {
			others = append(others, d.Stolen)
		}
		if err != nil || n != len(x.stolen) || o.Stolen != slices.Min(x.stolen) || !slices.Equal(others, x.others) {
			t.Errorf("%v: %d measurements, %v counts, others %v, %v", x.stolen, n, o.Stolen, others, err)
		}
	}
}

func near(a, b Processors) bool {
	for _, d := range []float64{a.CPU - b.CPU, a.OurCPU - b.OurCPU, a.Stolen - b.Stolen} {
		if d < -1e-9 || d > 1e-9 {
			return false
		}
	}
	return true
}
