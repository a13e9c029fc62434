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
