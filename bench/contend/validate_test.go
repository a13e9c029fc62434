package contend

import (
	"bytes"
	"math"
	"testing"
)

func TestScores(t *testing.T) {
	timed := func(measured, predicted float64) Timed {
		x := Timed{Measured: measured, Predicted: map[string]float64{}}
		for _, r := range Rules() {
			x.Predicted[r] = predicted
		}
		return x
	}
	list := []Outcome{{D: 1, Transfers: []Timed{timed(1, 1.05), timed(2, 1)}}, {D: 2, Transfers: []Timed{timed(1, 3)}}}
	s := Scores(list, nil)[0]
	if s.Transfers != 3 || math.Abs(s.Near-1./3) > 1e-9 || math.Abs(s.Mean-(0.05+0.5+2)/3) > 1e-9 ||
		math.Abs(s.Worst-2) > 1e-9 {
		t.Errorf("%+v", s)
	}
	if s := Scores(list, func(o *Outcome) bool { return o.D == 1 })[0]; s.Transfers != 2 || s.Near != 0.5 {
		t.Errorf("d=1: %+v", s)
	}
	list[1].Failed = map[string]string{"max-min": "no"}
	if s := Scores(list, nil)[0]; s.Transfers != 3 || s.Failed != 1 || math.Abs(s.Near-1./3) > 1e-9 ||
		math.Abs(s.Mean-(0.05+0.5)/2) > 1e-9 {
		t.Errorf("with a failed pattern: %+v", s)
	}
	b, err := Histogram("test", list, "svg")
	if err != nil || !bytes.Contains(b, []byte("<svg")) {
		t.Errorf("histogram: %v", err)
	}
}

// TestMeasurementsOfAPatternAreCompared checks that measurements of one pattern are compared with
// each other.
func TestMeasurementsOfAPatternAreCompared(t *testing.T) {
	of := func(pattern string, measured float64) Outcome {
		return Outcome{Pattern: pattern, Transfers: []Timed{{Measured: measured, Predicted: map[string]float64{}}}}
	}
	list := []Outcome{of("x", 1), of("y", 7), of("x", 2), of("x", 4)}
	predictByNext(list)
	for i, want := range []float64{2, 0, 4, 1} {
		if got := list[i].Transfers[0].Predicted[Another]; got != want {
			t.Errorf("%d: %v, want %v", i, got, want)
		}
	}
	for _, s := range Scores(list, nil) {
		if s.Rule == Another && s.Transfers-s.Failed != 3 {
			t.Errorf("%+v", s)
		}
	}
}

func TestOnlyTheScarceResourceIsRight(t *testing.T) {
	site := &Site{Clusters: []Cluster{{Name: "a", Hosts: []string{"a1", "a2"}}}, Zippers: []Zipper{{Name: "z1"}}}
	for _, x := range []struct {
		kind, made, named string
		right             bool
	}{
		{"nic", "nic a", "a1.in", true}, {"nic", "nic a", "a1.in with a2.out", true}, {"nic", "nic a", "a1.cpu", false},
		{"nic", "nic a", "a1.in with z1.a.in", false}, {"port", "port z1.a", "z1.a.out", true},
		{"port", "port z1.a", "z1.b.out", false}, {"port", "port z1.a", "", false},
		{"forwarder", "forwarder z1", "z1.cpu", true}, {"forwarder", "forwarder z1", "z1.a.in", false},
	} {
		s := Scarce{Kind: x.kind, Made: x.made}
		if s.is(site, x.named) != x.right {
			t.Errorf("%s named for %s", x.named, x.made)
		}
	}
}

// TestRunIsNotComparedWithItself checks that a run is not compared with itself if there are others.
func TestRunIsNotComparedWithItself(t *testing.T) {
	list := []Recorded{{Kernel: "cg", Rate: "1gbit", Trace: "1", Whole: 10, Simulated: map[string]float64{"1gbit": 11, "2gbit": 6}},
		{Kernel: "cg", Rate: "1gbit", Trace: "2", Whole: 12}, {Kernel: "cg", Rate: "1gbit", Trace: "3", Whole: 10},
		{Kernel: "mg", Rate: "1gbit", Trace: "4", Whole: 5, Simulated: map[string]float64{"1gbit": 6}},
		{Kernel: "cg", Rate: "2gbit", Trace: "5", Whole: 5}}
	for _, x := range []struct {
		i    int
		rate string
		want float64
	}{{0, "1gbit", 0}, {0, "2gbit", 0.2}, {3, "1gbit", 0.2}} {
		if e, ok := list[x.i].Error(list, x.rate); !ok || math.Abs(e-x.want) > 1e-9 {
			t.Errorf("%d at %s: %v, %v", x.i, x.rate, e, ok)
		}
	}
	if _, ok := list[3].Error(list, "2gbit"); ok {
		t.Error("a kernel was compared that has not been measured")
	}
}

func TestSeedsAreManyAndDifferent(t *testing.T) {
	seen, kinds := map[uint64]bool{}, map[Kind]int{}
	for _, p := range Seeds() {
		if seen[p.Seed] || p.D < 1 || p.D > 3 {
			t.Errorf("%s", p.Name())
		}
		seen[p.Seed] = true
		kinds[p.Kind]++
	}
	if len(seen) < 30 || kinds[Local] == 0 || kinds[Cross] == 0 {
		t.Errorf("%v", kinds)
	}
}

func TestFraction(t *testing.T) {
	for in, want := range map[string]string{"50mbit": "10mbit", "1gbit": "0.2gbit"} {
		if got, err := fraction(in, 5); err != nil || got != want {
			t.Errorf("%s / 5 = %s, %v", in, got, err)
		}
	}
	if _, err := fraction("fast", 5); err == nil {
		t.Error("a rate without a number was accepted")
	}
}
