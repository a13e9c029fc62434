package drive

import (
	"strings"
	"testing"
)

// The reason of a failure is what the benchmark said, not the launcher's banner after it, and said
// once though every rank says it.
func TestWhy(t *testing.T) {
	const banner = "-----\nmpirun detected that one or more processes exited with non-zero status\n  Process name: [[1,1],0]\n  Exit code:    1\n-----\n"
	said := "zipper-mpibench: npb: CG runs on a power of two of ranks, not on 3\n"
	if got := why(said + said + banner); got != ": npb: CG runs on a power of two of ranks, not on 3" {
		t.Errorf("%q", got)
	}
	if got := why("Segmentation fault\n" + banner); !strings.Contains(got, "Segmentation fault") ||
		!strings.Contains(got, "Exit code") {
		t.Errorf("a program that said nothing: %q", got)
	}
}

func comparison(rounds int) *Comparison {
	c := &Comparison{Benchmark: "latency", Unit: "us", Targets: []string{"zipped", "native"}, Ranks: 2, Rounds: rounds,
		Rows: []Sizes{{Size: 8, Values: make([][]float64, 2)}}}
	for i := range rounds {
		c.Rows[0].Values[0] = append(c.Rows[0].Values[0], 40+float64(i)/8)
		c.Rows[0].Values[1] = append(c.Rows[0].Values[1], 20+float64(i)/16)
	}
	c.test()
	return c
}

// p is always printed; where the rounds are too few for an interval or for a test the table says so
// and claims nothing.
func TestTablesOfFewRounds(t *testing.T) {
	for rounds, want := range map[int]string{1: "2.000 - too few rounds", 3: "2.000 - too few rounds",
		4: "2.000 - p = 0.0286", 6: "2.000 2.000 - 2.000 p = 0.00216"} {
		c := comparison(rounds)
		s := OverRanks([]*Comparison{c}, "latency", 8)
		for what, table := range map[string]func(*strings.Builder) error{
			"compare": func(b *strings.Builder) error { return c.Table(b) },
			"scale":   func(b *strings.Builder) error { return s.Table(b) },
		} {
			var b strings.Builder
			if err := table(&b); err != nil || !strings.Contains(strings.Join(strings.Fields(b.String()), " "), want) {
				t.Errorf("%s, %d rounds: %v, want %q in\n%s", what, rounds, err, want, &b)
			}
		}
	}
	same := comparison(6)
	same.Rows[0].Values[1], same.Rows[0].Against = same.Rows[0].Values[0], nil
	same.test()
	var b strings.Builder
	if err := same.Table(&b); err != nil || !strings.Contains(b.String(), "p = 1, no difference shown") {
		t.Errorf("%v\n%s", err, &b)
	}
}
