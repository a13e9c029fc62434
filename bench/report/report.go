// Package report turns measurements into one page that needs no other file (HTML with the figures
// inside) and into Markdown with the tables alone.
package report

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/figure"
	"github.com/leidenzipper/zipper/bench/npb"
	"github.com/leidenzipper/zipper/bench/stat"
)

// Data is the whole content of a report, and its JSON form.
type Data struct {
	Title string `json:"title"`
	// Set is quick or full.
	Set         string            `json:"set"`
	Environment drive.Environment `json:"environment"`
	// Setting is a sentence about the compared targets.
	Setting string `json:"setting"`
	// Sizes has benchmarks over message size.
	Sizes []*drive.Comparison `json:"sizes"`
	// Ranks has collectives over the number of ranks.
	Ranks []drive.Scaling `json:"ranks"`
	NPB   []Kernel        `json:"npb"`
	// Seconds is how long the measurements took.
	Seconds float64 `json:"seconds"`
	// Incomplete tells why a part is missing; it is empty if none is.
	Incomplete string `json:"incomplete,omitempty"`
}

// Kernel is an NPB kernel on all targets.
type Kernel struct {
	Name    string   `json:"name"`
	Class   string   `json:"class"`
	Ranks   int      `json:"ranks"`
	Targets []string `json:"targets"`
	// Results are by target and round: [target][round].
	Results [][]npb.Result `json:"results"`
	// Matrix has the bytes of data from and to each virtual rank; nil: not measured.
	Matrix [][]int64 `json:"matrix"`
}

// Across returns the number of bytes of data that went from one cluster to the other, each with
// half of the ranks, or -1 if that was not measured.
func (k Kernel) Across() int64 {
	if k.Matrix == nil {
		return -1
	}
	var sum int64
	for from, row := range k.Matrix {
		for to, n := range row {
			if from < k.Ranks/2 != (to < k.Ranks/2) {
				sum += n
			}
		}
	}
	return sum
}

// seconds returns the times of the rounds on a target, and whether all were verified.
func (k Kernel) seconds(target int) (s []float64, verified bool) {
	verified = len(k.Results[target]) > 0
	for _, r := range k.Results[target] {
		s, verified = append(s, r.Seconds), verified && r.Verified
	}
	return s, verified
}

type section struct {
	Title, Note string
	SVG         template.URL
	Wide        bool // a table with many columns
	Head        []string
	Rows        [][]string
}

var titles = map[string]string{"latency": "Latency", "bw": "Bandwidth", "bibw": "Bidirectional bandwidth",
	"barrier": "Barrier", "bcast": "Broadcast", "reduce": "Reduce",
	"allreduce": "Allreduce", "alltoall": "All to all", "alltoallv": "All to all, vector"}

func title(benchmark string) string {
	if t := titles[benchmark]; t != "" {
		return t
	}
	return benchmark
}

func (d *Data) sections() ([]section, error) {
	var out []section
	for _, c := range d.Sizes {
		s, err := overSize(c)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	for _, sc := range d.Ranks {
		s, err := overRanks(sc)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	k, err := kernels(d.NPB)
	return append(out, k...), err
}

func overSize(c *drive.Comparison) (section, error) {
	f := c.Figure()
	f.Title = ""
	s, err := draw(fmt.Sprintf("%s, %d ranks", title(c.Benchmark), c.Ranks), f)
	if err != nil {
		return s, err
	}
	unit := map[string]string{"us": "Microseconds", "MB/s": "MB/s (10^6 bytes per second)"}[c.Unit]
	s.Note = fmt.Sprintf("%s over message size (%s). ", unit, c.Benchmark) + rounds(c.Rounds)
	s.Head = append([]string{"size"}, c.Targets...)
	for _, t := range c.Targets[1:] {
		s.Head = append(s.Head, c.Targets[0]+"/"+t)
	}
	for _, row := range c.Rows {
		r := []string{figure.Bytes(float64(row.Size))}
		for _, v := range row.Values {
			r = append(r, number(stat.Median(v)))
		}
		for _, a := range row.Against {
			cell := fmt.Sprintf("%.2f", a.Ratio)
			if !a.TooFew && !a.Differs {
				cell += " (n.s.)"
			}
			r = append(r, cell)
		}
		s.Rows = append(s.Rows, r)
	}
	return s, nil
}

// rounds describes the values and bars.
func rounds(n int) string {
	switch {
	case n == 1:
		return "One round: no spread, and no difference is tested; more rounds (--rounds, or the full set) do both."
	case n < 4:
		return fmt.Sprintf("Medians of %d rounds, targets in turn; bars: range of the rounds; too few to test differences: that takes 4.",
			n)
	}
	return fmt.Sprintf("Medians of %d rounds, targets in turn; bars: range of the rounds; n.s.: no difference shown (Mann-Whitney, 5 %%).",
		n)
}

// number formats a value with about three digits.
func number(v float64) string {
	if math.Abs(v) < 1 {
		return fmt.Sprintf("%.3g", v)
	}
	return fmt.Sprintf("%.*f", max(0, 2-int(math.Log10(math.Abs(v)))), v)
}

func overRanks(sc drive.Scaling) (section, error) {
	head := append([]string{"ranks"}, sc.Targets...)
	rows := make([][]string, len(sc.Ranks))
	for i, n := range sc.Ranks {
		rows[i] = []string{fmt.Sprint(n)}
		for t := range sc.Targets {
			rows[i] = append(rows[i], number(stat.Median(sc.Values[t][i])))
		}
	}
	name := title(sc.Benchmark) + " over ranks"
	if sc.Size > 0 {
		name = fmt.Sprintf("%s of %s bytes over ranks", title(sc.Benchmark), figure.Bytes(float64(sc.Size)))
	}
	f := sc.Figure()
	f.Title = ""
	s, err := draw(name, f)
	s.Head, s.Rows, s.Note = head, rows, "Microseconds; half of the ranks in each cluster. "+rounds(sc.Rounds())
	return s, err
}

// kernels returns a figure for each number of ranks, and one table of all.
func kernels(all []Kernel) ([]section, error) {
	if len(all) == 0 {
		return nil, nil
	}
	var out []section
	targets := all[0].Targets
	base := len(targets) - 1
	byRanks := map[int][]Kernel{}
	for _, k := range all {
		byRanks[k.Ranks] = append(byRanks[k.Ranks], k)
	}
	for _, ranks := range slices.Sorted(maps.Keys(byRanks)) {
		f := figure.Figure{Y: "time / time of " + targets[base]}
		for t, name := range targets {
			series := figure.Series{Name: name}
			for i, k := range byRanks[ranks] {
				if t == 0 {
					f.Groups = append(f.Groups, k.Name+" "+k.Class)
				}
				v, _ := k.seconds(t)
				reference, _ := k.seconds(base)
				series.Points = append(series.Points, figure.Point{X: float64(i),
					Y: stat.Median(v) / stat.Median(reference)})
			}
			f.Series = append(f.Series, series)
		}
		s, err := draw(fmt.Sprintf("NAS kernels, %d ranks", ranks), f)
		if err != nil {
			return nil, err
		}
		s.Note = fmt.Sprintf("Time as a multiple of %s's, half of the ranks in each cluster; the seconds are in the table below.",
			targets[base])
		out = append(out, s)
	}
	table := section{Title: "NAS kernels: seconds", Wide: true, Head: []string{"kernel", "class", "ranks"},
		Note: "Medians of the rounds, targets in turn. Every result is checked against the official values (NO: one did not verify). Across: bytes of data between the clusters in one run, start to end."}
	table.Head = append(append(table.Head, targets...), "verified", "across (bytes)")
	for _, k := range all {
		row := []string{k.Name, k.Class, fmt.Sprint(k.Ranks)}
		verified := "yes"
		for t := range targets {
			v, ok := k.seconds(t)
			if row = append(row, fmt.Sprintf("%.3f", stat.Median(v))); !ok {
				verified = "NO"
			}
		}
		across := "-"
		if n := k.Across(); n >= 0 {
			across = fmt.Sprint(n)
		}
		table.Rows = append(table.Rows, append(row, verified, across))
	}
	out = append(out, table)
	for _, k := range all {
		if k.Matrix != nil {
			out = append(out, matrix(k))
		}
	}
	return out, nil
}

func matrix(k Kernel) section {
	s := section{Title: fmt.Sprintf("Traffic of %s %s, %d ranks", k.Name, k.Class, k.Ranks),
		Note: "Bytes of data from (rows) and to (columns) virtual ranks, start to end. The traffic of native collectives inside a cluster is not included.",
		Head: []string{"from"}}
	for to := range k.Matrix {
		s.Head = append(s.Head, fmt.Sprint(to))
	}
	for from, row := range k.Matrix {
		cells := []string{fmt.Sprint(from)}
		for _, n := range row {
			cells = append(cells, fmt.Sprint(n))
		}
		s.Rows = append(s.Rows, cells)
	}
	return s
}

func draw(title string, f figure.Figure) (section, error) {
	svg, err := f.Draw("svg")
	if err != nil {
		return section{}, fmt.Errorf("%s: %w", title, err)
	}
	return section{Title: title,
		SVG: template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(svg))}, nil
}

//go:embed page.html
var page string

// HTML returns the page with its figures and numbers inside.
func (d *Data) HTML() ([]byte, error) {
	sections, err := d.sections()
	if err != nil {
		return nil, err
	}
	raw, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		return nil, err
	}
	t, err := template.New("page").Parse(page)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, map[string]any{"D": d, "Sections": sections, "Clocks": drive.Clocks, "JSON": string(raw)})
	return b.Bytes(), err
}

// Markdown returns the tables without the figures.
func (d *Data) Markdown() ([]byte, error) {
	sections, err := d.sections()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := d.Environment
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", d.Title, d.Setting)
	if d.Incomplete != "" {
		fmt.Fprintf(&b, "**Incomplete:** the results before the end follow.\n\n```\n%s\n```\n\n", d.Incomplete)
	}
	fmt.Fprintf(&b, "Set: %s, %.0f s. %s, host %s, %s, %d CPUs (%s), %d MB, load %s at the start, links: %s. zipper %s, %s; %s. %s\n",
		d.Set, d.Seconds,
		e.Time.Format("2006-01-02 15:04 UTC"), e.Host, e.Kernel, e.CPUs, e.CPU, e.MemoryMB, e.Load, e.Shaping,
		e.Version, e.Go, strings.Join(slices.Sorted(maps.Values(e.MPI)), "; "), drive.Clocks)
	for _, s := range sections {
		if s.Rows == nil { // a figure whose numbers are in another section
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| %s |\n|%s\n", s.Title, s.Note, strings.Join(s.Head, " | "),
			strings.Repeat("---:|", len(s.Head)))
		for _, r := range s.Rows {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(r, " | "))
		}
	}
	return b.Bytes(), nil
}
