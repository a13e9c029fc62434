package osu

import (
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/bench/stat"
)

// TestColumnsAreTheOriginals checks that the columns on the left are the original's, in its order,
// so that programs that read its output read ours.
func TestColumnsAreTheOriginals(t *testing.T) {
	row := Row{Size: 1024, Value: stat.Summary{Mean: 12, Median: 11, N: 10}, Rate: 5, MinRank: 9, MaxRank: 15,
		Overall: 30, Compute: 17, Pure: 16, Overlap: 20}
	for name, want := range map[string][2]string{
		"latency":    {"# Size Latency (us)", "1024 12.00"},
		"bibw":       {"# Size Bandwidth (MB/s)", "1024 12.00"},
		"mbw_mr":     {"# Size Bandwidth (MB/s) Messages/s", "1024 12.00 5.00"},
		"allreduce":  {"# Size Avg Latency(us) Min Rank(us) Max Rank(us)", "1024 12.00 9.00 15.00"},
		"iallreduce": {"# Size Overall(us) Compute(us) Pure Comm.(us) Overlap(%)", "1024 30.00 17.00 16.00 20.00"},
		"barrier":    {"# Avg Latency(us) Min Rank(us) Max Rank(us)", "12.00 9.00 15.00"},
		"ibarrier":   {"# Overall(us) Compute(us) Pure Comm.(us) Overlap(%)", "30.00 17.00 16.00 20.00"},
	} {
		r := Result{Name: name, Unit: "us", Ranks: 4, Rows: []Row{row}}
		if strings.Contains(name, "bw") {
			r.Unit = "MB/s"
		}
		var b strings.Builder
		if err := r.Table(&b); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(b.String(), "\n")
		for i, w := range want {
			if got := strings.Join(strings.Fields(lines[i+1]), " "); !strings.HasPrefix(got, w+" ") {
				t.Errorf("%s: %q does not begin with %q", name, got, w)
			}
		}
	}
}

func TestWarmupIsTheOriginals(t *testing.T) {
	for _, c := range []struct {
		name             string
		size, most, want int
	}{{"latency", 1, 0, 100}, {"latency", 8192, 0, 100}, {"latency", 8193, 0, 10}, {"bw", 1, 0, 10},
		{"bw", 1 << 20, 0, 2}, {"bcast", 1, 5, 5}, {"bcast", 1 << 20, 5, 1}} {
		if got := warmup(c.name, c.size, c.most); got != c.want {
			t.Errorf("%s of %d, at most %d: %d, want %d", c.name, c.size, c.most, got, c.want)
		}
	}
}
