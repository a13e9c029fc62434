package report

import (
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/npb"
	"github.com/leidenzipper/zipper/bench/stat"
)

func sample() *Data {
	two := []string{"zipped", "native"}
	zipped, native := []float64{40, 41, 42, 43}, []float64{20, 21, 22, 23}
	return &Data{
		Title: "measurements", Set: "full", Setting: "a setting",
		Sizes: []*drive.Comparison{{Benchmark: "bibw", Unit: "MB/s", Targets: two, Ranks: 2, Rounds: 4,
			Rows: []drive.Sizes{
				{Size: 1, Values: [][]float64{zipped, native}, Against: []stat.Comparison{stat.Compare(zipped, native)}},
				{Size: 4096, Values: [][]float64{zipped, zipped}, Against: []stat.Comparison{stat.Compare(zipped, zipped)}},
			}}},
		Ranks: []drive.Scaling{{Benchmark: "bcast", Unit: "us", Size: 1024, Targets: two, Ranks: []int{2, 4},
			Values: [][][]float64{{zipped, zipped}, {native, native}}}},
		NPB: []Kernel{{Name: "cg", Class: "S", Ranks: 4, Targets: two,
			Results: [][]npb.Result{{{Seconds: 1.5, Verified: true}}, {{Seconds: 0.5, Verified: false}}},
			Matrix:  [][]int64{{0, 1, 10, 20}, {2, 0, 0, 0}, {100, 0, 0, 3}, {0, 0, 4, 0}}}},
	}
}

// TestReportHasTheNumbers checks that both forms have the numbers, the differences that are not
// significant, and the results that did not verify. The page has a figure for each set of curves
// and needs no other file.
func TestReportHasTheNumbers(t *testing.T) {
	html, err := sample().HTML()
	if err != nil {
		t.Fatal(err)
	}
	md, err := sample().Markdown()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Bidirectional bandwidth, 2 ranks", "Broadcast of 1K bytes over ranks", "41.5",
		"(n.s.)", "NO", "130", "a setting", drive.Clocks, "Traffic of cg S, 4 ranks"} {
		for form, text := range map[string]string{"HTML": string(html), "Markdown": string(md)} {
			if !strings.Contains(text, want) {
				t.Errorf("the %s has no %q", form, want)
			}
		}
	}
	if n := strings.Count(string(html), "data:image/svg"); n != 3 {
		t.Errorf("%d figures, want 3", n)
	}
	for _, outside := range []string{"src=\"http", "href=\"http", "<script"} {
		if strings.Contains(string(html), outside) {
			t.Errorf("the page needs %s", outside)
		}
	}
}

// TestIncompleteReportSaysSo checks that an incomplete report says so, and that two or three rounds
// claim nothing about differences.
func TestIncompleteReportSaysSo(t *testing.T) {
	d := sample()
	d.Incomplete = "ended early"
	c := d.Sizes[0]
	c.Rounds = 2
	for i, row := range c.Rows {
		for k, v := range row.Values {
			row.Values[k] = v[:2]
		}
		c.Rows[i].Against = []stat.Comparison{stat.Compare(row.Values[0], row.Values[1])}
	}
	html, err := d.HTML()
	if err != nil {
		t.Fatal(err)
	}
	md, err := d.Markdown()
	if err != nil {
		t.Fatal(err)
	}
	for form, text := range map[string]string{"HTML": string(html), "Markdown": string(md)} {
		if !strings.Contains(text, "ended early") || !strings.Contains(text, "too few to test differences") ||
			strings.Contains(text, "(n.s.)") {
			t.Errorf("%s:\n%.3000s", form, text)
		}
	}
}

func TestAcross(t *testing.T) {
	k := sample().NPB[0]
	if n := k.Across(); n != 130 {
		t.Errorf("%d bytes across, want 130", n)
	}
	k.Matrix = nil
	if n := k.Across(); n != -1 {
		t.Errorf("not measured: %d", n)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0.0123: "0.0123", 0: "0", 1.234: "1.23", 12.34: "12.3", 123.4: "123",
		12345: "12345"} {
		if got := number(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}
