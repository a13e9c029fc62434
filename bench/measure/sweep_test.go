package measure

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestParseSizes(t *testing.T) {
	for s, want := range map[string][]int{
		"8,64K":   {8, 65536},
		"1..8":    {1, 2, 3, 4, 5, 6, 7, 8},
		"16M":     {16 << 20},
		"60..100": {63, 64, 65, 96},
	} {
		if got, err := ParseSizes(s, true); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", s, got, err, want)
		}
	}
	if got := Between(1, 16, false); !slices.Equal(got, []int{1, 2, 4, 8, 16}) {
		t.Error(got)
	}
	for _, s := range []string{"", "0", "17M", "x", "8..4", "1..", "8,,9", "4G", "K"} {
		if got, err := ParseSizes(s, true); err == nil {
			t.Errorf("%q: %v", s, got)
		}
	}
}

// TestOperationKeepsItsSizes checks that a barrier has one size, and that messages that carry a
// time stamp are not smaller than the stamp.
func TestOperationKeepsItsSizes(t *testing.T) {
	for name, want := range map[string][]int{"barrier": {0}, "ibarrier": {0}, "beside": {8}, "bcast": {1, 8, 1 << 20}} {
		k := slices.IndexFunc(Operations(), func(o Operation) bool { return o.Name == name })
		if k < 0 {
			t.Fatal(name)
		}
		if got := Operations()[k].Sizes([]int{1, 8, 1 << 20}); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// sweepReport is a report with values in us of two targets.
func sweepReport() (r *Report, add func(name string, size int, target string, round int, micro float64, again bool)) {
	r = &Report{Targets: []string{"zipped", "routed"}, Rounds: 7}
	return r, func(name string, size int, target string, round int, micro float64, again bool) {
		r.Add(Row{Name: name, Ranks: "2+2", Size: size, Unit: Micro}, target,
			Value{Round: round, Again: again, Value: micro}, nil)
	}
}

// TestWorstPointHasHighestMedianOfRatios checks that the worst point has the highest median of the
// ratios within a round. The ratio of medians and a single slow round do not decide. Rounds in
// which one of the two values is missing do not count.
func TestWorstPointHasHighestMedianOfRatios(t *testing.T) {
	r, add := sweepReport()
	for round := range 7 {
		drift := float64(1 + round)
		add("bcast", 8, "zipped", round, 1.5*drift, false)
		add("bcast", 8, "routed", round, 1.0*drift, false)
		slow := 1.1
		if round == 3 {
			slow = 100
		}
		add("bcast", 4, "zipped", round, slow*drift, false)
		add("bcast", 4, "routed", round, 1.0*drift, false)
		if round < 6 {
			add("bcast", 2, "zipped", round, 0.9*drift, false)
		}
		if round > 0 {
			add("bcast", 2, "routed", round, 1.0*drift, false)
		}
	}
	if rows := r.Worst(); len(rows) != 1 || rows[0].Name != "bcast" || rows[0].Ranks != "2+2" || rows[0].Size != 8 {
		t.Errorf("worst at %+v", rows)
	}
	if sizes := r.curves()[0]; sizes[0].Size != 2 || sizes[1].Size != 2 || sizes[5].Size != 8 {
		t.Error("the sizes are not in order")
	}
	if got := compare(r.Figures[0], r.Figures[1], false); got.A.N != 5 {
		t.Errorf("%d pairs", got.A.N)
	}
	add("bcast", 8, "zipped", 0, 1.2, true)
	add("bcast", 8, "routed", 0, 1, true)
	for size := 1; size < 4; size++ {
		r.Miss(Row{Name: "scan", Ranks: "2+2", Size: size, Unit: Micro}, "zipped", "it did not end")
	}
	var b strings.Builder
	if err := r.Holes(&b); err != nil {
		t.Fatal(err)
	}
	line := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{"| bcast | 2+2 | zipped | 8 B | 6 | 4 | 1.50 (1.50 - 1.50) | 1.20 | 2 of 3 |",
		"| scan | 2+2 | zipped | not measured [1] |", "[1] zipped: it did not end"} {
		if strings.Count(line, want) != 1 {
			t.Errorf("want %q once in\n%s", want, b.String())
		}
	}
	b.Reset()
	if err := r.CSV(&b); err != nil || strings.Count(b.String(), "\n") != 1+7*4+12+2+3 ||
		!strings.Contains(b.String(), "bcast,2+2,8,zipped,0,1,1.2,us,0,,,,,,\n") {
		t.Errorf("%v\n%s", err, b.String())
	}
	b.Reset()
	var back Report
	if err := r.JSON(&b); err != nil || json.Unmarshal([]byte(b.String()), &back) != nil || len(back.curves()) != 2 ||
		!back.Figures[4].Values[7].Again {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// TestCurveWithoutPairsIsNotMeasured checks that a curve without a pair of values is in the table
// and has no worst point.
func TestCurveWithoutPairsIsNotMeasured(t *testing.T) {
	r, add := sweepReport()
	add("scan", 8, "zipped", 0, 1, false)
	var b strings.Builder
	if err := r.Holes(&b); err != nil || !strings.Contains(b.String(), "not measured") || len(r.Worst()) > 0 {
		t.Errorf("%v\n%s", err, b.String())
	}
}
