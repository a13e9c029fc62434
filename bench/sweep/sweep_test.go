package sweep

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestSizes(t *testing.T) {
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

// A barrier has one size, and what carries a stamp none below that.
func TestOperations(t *testing.T) {
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

// The worst point is that of the highest median of ratios within a round, not of the ratio of
// medians, nor that of one slow round; rounds that one of the two did not have do not count.
func TestWorst(t *testing.T) {
	r := &Report{Modes: []string{"zipped", "routed"}, Rounds: 7}
	for round := range 7 {
		drift := float64(1 + round)
		r.Add("bcast", "2+2", 8, 0, round, 1.5*drift, false)
		r.Add("bcast", "2+2", 8, 1, round, 1.0*drift, false)
		slow := 1.1
		if round == 3 {
			slow = 100
		}
		r.Add("bcast", "2+2", 4, 0, round, slow*drift, false)
		r.Add("bcast", "2+2", 4, 1, round, 1.0*drift, false)
		if round < 6 {
			r.Add("bcast", "2+2", 2, 0, round, 0.9*drift, false)
		}
		if round > 0 {
			r.Add("bcast", "2+2", 2, 1, round, 1.0*drift, false)
		}
	}
	r.Add("bcast", "2+2", 8, 0, 0, 1.2, true)
	r.Add("bcast", "2+2", 8, 1, 0, 1, true)
	r.Fail("scan on 2+2: it did not end")
	r.Fail("scan on 2+2: it did not end")
	if p := r.Curves[0].Worst(0); p.Size != 8 {
		t.Errorf("worst at %d", p.Size)
	}
	if got := compare(r.Curves[0].Points[0].Values, 0); got.A.N != 5 {
		t.Errorf("%d pairs", got.A.N)
	}
	var b strings.Builder
	if err := r.Table(&b); err != nil {
		t.Fatal(err)
	}
	line := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{"| bcast | 2+2 | zipped | 8 B | 6 | 4 | 1.50 (1.50 - 1.50) | 1.20 | 2 of 3 |",
		"not measured: scan on 2+2: it did not end"} {
		if strings.Count(line, want) != 1 {
			t.Errorf("want %q once in\n%s", want, b.String())
		}
	}
	b.Reset()
	if err := r.CSV(&b); err != nil || strings.Count(b.String(), "\n") != 1+7*4+12+2 ||
		!strings.Contains(b.String(), "bcast,2+2,8,zipped,0,1,1.2\n") {
		t.Errorf("%v\n%s", err, b.String())
	}
	b.Reset()
	var back Report
	if err := r.JSON(&b); err != nil || json.Unmarshal([]byte(b.String()), &back) != nil || len(back.Curves) != 1 {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func TestNothingMeasured(t *testing.T) {
	r := &Report{Modes: []string{"zipped", "routed"}}
	r.Add("scan", "3+5", 8, 0, 0, 1, false)
	var b strings.Builder
	if err := r.Table(&b); err != nil || !strings.Contains(b.String(), "not measured") {
		t.Errorf("%v\n%s", err, b.String())
	}
}
