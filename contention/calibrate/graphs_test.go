package calibrate

import (
	"bytes"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/contention/num"
	"github.com/leidenzipper/zipper/contention/penalty"
)

// graphsTimed returns a cluster whose graphs took the times of a rule, three times with a spread.
func graphsTimed(t *testing.T, rule string, r penalty.Reading, spread float64) Cluster {
	t.Helper()
	c := Cluster{Name: "a", Hosts: []string{"a1", "a2", "a3", "a4", "a5"}, Lone: []float64{99e6, 100e6, 101e6}}
	for _, g := range Graphs() {
		x := Timed{Graph: g, Bytes: 1e6}
		times, err := x.predicted(rule, r, 100e6)
		if err != nil {
			t.Fatal(err)
		}
		for k := range 3 {
			s := make([]float64, len(times))
			for i := range s {
				s[i] = times[i] * (1 + spread*float64(k-1))
			}
			x.Seconds = append(x.Seconds, s)
		}
		c.Graphs = append(c.Graphs, x)
	}
	return c
}

// TestRuleB checks that the reading which the times follow is found, with its penalties, and that
// the result says when no reading fits or two are too close.
func TestRuleB(t *testing.T) {
	for want, c := range map[string]Cluster{
		`rule_b: "U" # the times of 4 graphs: U 0 %`: graphsTimed(t, "penalty", penalty.Unmixed, 0.001),
		`rule_b: "R" # `:                                       graphsTimed(t, "penalty", penalty.Residual, 0.001),
		`rule_b: "off" # `:                                     graphsTimed(t, "penalty", penalty.Off, 0.001),
		`does not share as the penalty rule says`:              graphsTimed(t, "max-min", 0, 0.001),
		`U and R differ by no more than the 95 % intervals`:    graphsTimed(t, "penalty", penalty.Unmixed, 0.05),
		`1>4 5.00±0.00 1>2 5.00±0.00 2>4 2.50±0.00 3>4 2.50±0`: graphsTimed(t, "penalty", penalty.Unmixed, 0),
	} {
		var file bytes.Buffer
		if _, err := Write(&file, Samples{Clusters: []Cluster{c}}); err != nil ||
			!strings.Contains(file.String(), want) {
			t.Errorf("%v: no %q in\n%s", err, want, file.String())
		}
	}
	c := graphsTimed(t, "penalty", penalty.Unmixed, 0)
	c.Graphs[0].Seconds[1] = nil
	if _, err := Write(new(bytes.Buffer), Samples{Clusters: []Cluster{c}}); err == nil ||
		!strings.Contains(err.Error(), "Fig. 2.4") {
		t.Errorf("times are missing: %v", err)
	}
}

// TestGraphs checks that the graphs have the penalties of the paper.
func TestGraphs(t *testing.T) {
	want := map[string][]string{"Fig. 2.4": {"4", "4", "4/3", "4/3"},
		"Fig. 3":   {"7/2", "7/2", "7/2", "10/3", "10/3", "3/2"},
		"Fig. 4 A": {"5", "5", "5/2", "5/2", "5/4"}, "Fig. 4 B": {"5", "5", "7/2", "7/2", "7/2"}}
	for _, g := range Graphs() {
		for i, rho := range penalty.Rho[num.Rat](g.Edges, penalty.Unmixed) {
			if rho.String() != want[g.Name][i] {
				t.Errorf("%s: edge %d has the penalty %v, want %s", g.Name, i, rho, want[g.Name][i])
			}
			if e := g.Edges[i]; max(e.From, e.To) >= g.Hosts {
				t.Errorf("%s has an edge of host %d, of %d", g.Name, max(e.From, e.To), g.Hosts)
			}
		}
	}
}
