// Package osu has the point-to-point and collective benchmarks that MPI users know from the OSU
// micro-benchmarks: the same loops, message sizes, units and columns, so that scripts and readers
// that know them can use them, with medians and confidence intervals beside the means. They were
// written from the documentation of the original; no code is shared.
//
// The original runs a fixed number of iterations and prints one mean. Here the iterations are cut
// into repetitions of about RepSeconds, whose means are the sample of Summary, and repeated by
// stat.Rule.
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
	"time"

	"github.com/leidenzipper/zipper/bench/stat"
)

// Options describe a run. The zero value is not usable; start from Defaults.
type Options struct {
	// MinSize and MaxSize are in bytes. A MaxSize of 0 means the benchmark's own (4 MiB point to
	// point, 1 MiB collectives).
	MinSize, MaxSize int
	// Window is the number of messages in flight in bandwidth tests.
	Window int
	// Warmup is the largest number of iterations before measuring; 0 means as many as the original.
	Warmup     int
	RepSeconds float64
	Rule       stat.Rule
	// Init is the time that MPI_Init took in this process, for the benchmark init.
	Init time.Duration
}

// Defaults returns the original's options where it has them.
func Defaults() Options {
	return Options{MinSize: 1, Window: 64, RepSeconds: 0.02, Rule: stat.Rule{Min: 10, Max: 50, Width: 0.025}}
}

// Row is the result of one message size.
type Row struct {
	// Size is in bytes per message (per rank in collectives).
	Size  int          `json:"size"`
	Value stat.Summary `json:"value"`
	// Reached tells that the interval became narrow enough.
	Reached bool `json:"converged"`
	// Rate is the number of messages per second of mbw_mr.
	Rate float64 `json:"rate,omitempty"`
	// MinRank and MaxRank are the means of the fastest and the slowest rank, for collectives.
	MinRank float64 `json:"min_rank"`
	MaxRank float64 `json:"max_rank"`
	// Overlap is the share of nonblocking communication that is hidden behind computation, in %.
	Overlap float64 `json:"overlap,omitempty"`
	// Overall, Compute and Pure are the times from which Overlap is computed, in µs.
	Overall float64   `json:"overall,omitempty"`
	Compute float64   `json:"compute,omitempty"`
	Pure    float64   `json:"pure,omitempty"`
	Samples []float64 `json:"samples"`
}

// Result is the result of one benchmark.
type Result struct {
	Name  string `json:"name"`
	Unit  string `json:"unit"` // us or MB/s (10^6 bytes)
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

// sized tells whether the table has a column of sizes; the original's barrier has none.
func (r *Result) sized() bool { return !strings.HasSuffix(r.Name, "barrier") && r.Name != startup }

// TableHead returns the title and the names of the columns.
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

// TableLine returns the line of one size.
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

// TableFoot explains the mark.
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

// startup is the benchmark of MPI_Init.
const startup = "init"

var (
	pointToPoint    = []string{"latency", "bw", "bibw", "mbw_mr", "multi_lat"}
	collectiveNames = map[string]bool{"barrier": true, "bcast": true, "reduce": true, "allreduce": true,
		"alltoall": true, "alltoallv": true,
		"gather": true, "scatter": true, "allgather": true, "allgatherv": true}
)

// Names returns all benchmarks: point to point, collectives, the collectives with an i in front for
// their nonblocking forms, and that of MPI_Init.
func Names() []string {
	var blocking, nonblocking []string
	for _, n := range slices.Sorted(maps.Keys(collectiveNames)) {
		blocking, nonblocking = append(blocking, n), append(nonblocking, "i"+n)
	}
	return slices.Concat(pointToPoint, blocking, nonblocking, []string{startup})
}

// Known returns an error for an unknown benchmark.
func Known(name string) error {
	if slices.Contains(Names(), name) {
		return nil
	}
	return fmt.Errorf("osu: no benchmark %q; there are %s", name, strings.Join(Names(), ", "))
}

// warmup returns the number of iterations before the measured ones: as many as in the original, but
// at most most.
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

// sizes returns the sizes from the smallest by doubling, up to the largest at most.
func sizes(lo, hi int) []int {
	var s []int
	for n := max(lo, 1); n <= hi; n *= 2 {
		s = append(s, n)
	}
	return s
}
