// Package osu has the point-to-point and collective benchmarks that MPI users know from the OSU
// micro-benchmarks: the same loops, message sizes, units and columns, so that scripts and eyes that
// know them work, with medians and confidence intervals beside the means. Written from their
// documentation; no code is shared.
//
// What differs: the original runs a fixed number of iterations and prints one mean. Here the
// iterations are cut into repetitions of about RepSeconds; their means are the sample that Summary
// describes, repeated by stat.Rule.
package osu

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/leidenzipper/zipper/bench/stat"
)

// Options of a run. The zero value is not usable; start from Defaults.
type Options struct {
	MinSize, MaxSize int // bytes; MaxSize 0: the benchmark's own (4 MiB point to point, 1 MiB collectives)
	Window           int // messages in flight in bandwidth tests
	Warmup           int // iterations before measuring, at most; 0: as many as the original
	RepSeconds       float64
	Rule             stat.Rule
}

// Defaults are the original's where it has one.
func Defaults() Options {
	return Options{MinSize: 1, Window: 64, RepSeconds: 0.02, Rule: stat.Rule{Min: 10, Max: 50, Width: 0.025}}
}

// Row is one message size's result.
type Row struct {
	Size    int          `json:"size"` // bytes per message (per rank in collectives)
	Value   stat.Summary `json:"value"`
	Reached bool         `json:"converged"`      // the interval became narrow enough
	Rate    float64      `json:"rate,omitempty"` // mbw_mr: messages per second
	MinRank float64      `json:"min_rank"`       // collectives: fastest and slowest rank's mean
	MaxRank float64      `json:"max_rank"`
	// nonblocking: share of the communication hidden behind computation, %
	Overlap float64   `json:"overlap,omitempty"`
	Overall float64   `json:"overall,omitempty"` // and the times it comes from, µs
	Compute float64   `json:"compute,omitempty"`
	Pure    float64   `json:"pure,omitempty"`
	Samples []float64 `json:"samples"`
}

// Result of one benchmark.
type Result struct {
	Name  string `json:"name"`
	Unit  string `json:"unit"` // "us" or "MB/s" (10^6 bytes)
	Ranks int    `json:"ranks"`
	Rows  []Row  `json:"rows"`
}

// Table writes the result in the original's layout with further columns to the right: TableHead,
// TableLine of each size, TableFoot.
func (r *Result) Table(w io.Writer) error {
	var b strings.Builder
	b.WriteString(r.TableHead())
	for i := range r.Rows {
		b.WriteString(r.TableLine(&r.Rows[i]))
	}
	b.WriteString(TableFoot)
	_, err := io.WriteString(w, b.String())
	return err
}

// sized: the original's barrier has no column of sizes.
func (r *Result) sized() bool { return !strings.HasSuffix(r.Name, "barrier") }

// TableHead is the title and the names of the columns.
func (r *Result) TableHead() string {
	var b strings.Builder
	head := map[string]string{"us": "Latency (us)", "MB/s": "Bandwidth (MB/s)"}[r.Unit]
	if r.collective() {
		head = "Avg Latency(us)"
	}
	fmt.Fprintf(&b, "# Zipper MPI %s Test, OSU style, %d ranks\n", r.Name, r.Ranks)
	extra := []string{}
	switch {
	case r.Name == "mbw_mr":
		extra = []string{"Messages/s"}
	case r.nonblocking():
		head = "Overall(us)"
		extra = []string{"Compute(us)", "Pure Comm.(us)", "Overlap(%)"}
	case r.collective():
		extra = []string{"Min Rank(us)", "Max Rank(us)"}
	}
	if r.sized() {
		fmt.Fprintf(&b, "%-10s%18s", "# Size", head)
	} else {
		fmt.Fprintf(&b, "# %16s", head)
	}
	for _, h := range append(extra, "Median", "Min", "Max", "CI95 +-", "Reps") {
		fmt.Fprintf(&b, "%16s", h)
	}
	b.WriteByte('\n')
	return b.String()
}

// TableLine is one size.
func (r *Result) TableLine(row *Row) string {
	var b strings.Builder
	if r.sized() {
		fmt.Fprintf(&b, "%-10d", row.Size)
	}
	switch {
	case r.Name == "mbw_mr":
		fmt.Fprintf(&b, "%18.2f%16.2f", row.Value.Mean, row.Rate)
	case r.nonblocking():
		fmt.Fprintf(&b, "%18.2f%16.2f%16.2f%16.2f", row.Overall, row.Compute, row.Pure, row.Overlap)
	case r.collective():
		fmt.Fprintf(&b, "%18.2f%16.2f%16.2f", row.Value.Mean, row.MinRank, row.MaxRank)
	default:
		fmt.Fprintf(&b, "%18.2f", row.Value.Mean)
	}
	v := row.Value
	mark := ""
	if !row.Reached {
		mark = "*"
	}
	fmt.Fprintf(&b, "%16.2f%16.2f%16.2f%16s%16d\n", v.Median, v.Min, v.Max, fmt.Sprintf("%.2f%s", v.CI, mark), v.N)
	return b.String()
}

// TableFoot says what the mark is.
const TableFoot = "# *: the 95 % interval of the mean was still wider than wanted after the last repetition\n"

// CSV writes one line per size with a header.
func (r *Result) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	c.Write([]string{"benchmark", "unit", "ranks", "size", "mean", "median", "min", "max", "ci95", "reps", "converged",
		"rate", "min_rank", "max_rank", "overall", "compute", "pure", "overlap"})
	f := func(v float64) string { return strconv.FormatFloat(v, 'g', 8, 64) }
	for _, row := range r.Rows {
		v := row.Value
		c.Write([]string{r.Name, r.Unit, strconv.Itoa(r.Ranks), strconv.Itoa(row.Size), f(v.Mean), f(v.Median),
			f(v.Min), f(v.Max), f(v.CI), strconv.Itoa(v.N),
			strconv.FormatBool(row.Reached), f(row.Rate), f(row.MinRank), f(row.MaxRank), f(row.Overall),
			f(row.Compute), f(row.Pure), f(row.Overlap)})
	}
	c.Flush()
	return c.Error()
}

// JSON writes the whole result with its samples on one line.
func (r *Result) JSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

func (r *Result) collective() bool {
	_, ok := collectiveNames[strings.TrimPrefix(r.Name, "i")]
	return ok
}

func (r *Result) nonblocking() bool { return r.collective() && strings.HasPrefix(r.Name, "i") }

var (
	pointToPoint    = []string{"latency", "bw", "bibw", "mbw_mr", "multi_lat"}
	collectiveNames = map[string]bool{"barrier": true, "bcast": true, "reduce": true, "allreduce": true,
		"alltoall": true, "alltoallv": true,
		"gather": true, "scatter": true, "allgather": true, "allgatherv": true}
)

// Names lists all benchmarks: point to point, collectives, and these with an i in front for their
// nonblocking forms.
func Names() []string {
	var blocking, nonblocking []string
	for _, n := range slices.Sorted(maps.Keys(collectiveNames)) {
		blocking, nonblocking = append(blocking, n), append(nonblocking, "i"+n)
	}
	return slices.Concat(pointToPoint, blocking, nonblocking)
}

// Known is the error for a name that is no benchmark's, nil for one that is.
func Known(name string) error {
	if slices.Contains(Names(), name) {
		return nil
	}
	return fmt.Errorf("osu: no benchmark %q; there are %s", name, strings.Join(Names(), ", "))
}

// warmup is how many iterations come before the measured ones: as many as the original has, at most
// the wanted number.
func warmup(name string, size, most int) int {
	n, large := warmupSmall, warmupLarge
	if name == "bw" || name == "bibw" || name == "mbw_mr" {
		n, large = warmupSmallWindows, warmupLargeWindows
	}
	if size > largeMessage {
		n = large
		most = (most + 9) / 10
	}
	if most > 0 {
		n = min(n, most)
	}
	return n
}

// Sizes from the smallest to the largest by doubling, both included if powers of two.
func sizes(lo, hi int) []int {
	var s []int
	for n := max(lo, 1); n <= hi; n *= 2 {
		s = append(s, n)
	}
	return s
}
