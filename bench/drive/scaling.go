package drive

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"

	"github.com/leidenzipper/zipper/bench/figure"
	"github.com/leidenzipper/zipper/bench/stat"
)

// Scaling holds the results of a benchmark at one message size over the number of ranks.
type Scaling struct {
	Benchmark string `json:"benchmark"`
	// Unit is "us" or "MB/s" (10^6 bytes).
	Unit string `json:"unit"`
	// Size is the message size in bytes; 0 for the barrier.
	Size    int      `json:"size"`
	Targets []string `json:"targets"`
	// Ranks are the numbers of ranks of all clusters together.
	Ranks []int `json:"ranks"`
	// Values has the median of each round, [target][number of ranks][round].
	Values [][][]float64 `json:"values"`
}

// OverRanks selects one benchmark at one message size from comparisons on different numbers of
// ranks, in their order. It is empty for a size that was not measured.
func OverRanks(all []*Comparison, name string, size int) Scaling {
	s := Scaling{Benchmark: name, Size: size}
	for _, c := range all {
		for _, row := range c.Rows {
			if c.Benchmark != name || row.Size != size {
				continue
			}
			s.Unit, s.Targets = c.Unit, c.Targets
			s.Values = slices.Grow(s.Values, len(c.Targets))[:len(c.Targets)]
			s.Ranks = append(s.Ranks, c.Ranks)
			for t, v := range row.Values {
				s.Values[t] = append(s.Values[t], v)
			}
		}
	}
	return s
}

// Rounds returns the number of rounds of each target.
func (s *Scaling) Rounds() int {
	if len(s.Ranks) == 0 {
		return 0
	}
	return len(s.Values[0][0])
}

// Table writes medians, a line for each number of ranks in all clusters together, and the ratios of
// the first target's to those of the others.
func (s *Scaling) Table(w io.Writer) error {
	fmt.Fprintf(w, "# %s of %d bytes (%s), %d rounds of each in turn; medians of the rounds\n", s.Benchmark, s.Size,
		s.Unit, s.Rounds())
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "ranks in all\t")
	for _, n := range s.Targets {
		fmt.Fprintf(t, "%s\t", n)
	}
	fmt.Fprint(t, comparisonHead(s.Targets))
	for i, n := range s.Ranks {
		fmt.Fprintf(t, "\n%d\t", n)
		for _, v := range s.Values {
			fmt.Fprintf(t, "%.2f\t", stat.Median(v[i]))
		}
		for _, v := range s.Values[1:] {
			fmt.Fprint(t, against(stat.Compare(s.Values[0][i], v[i])))
		}
	}
	fmt.Fprintln(t)
	return t.Flush()
}

// CSV writes every value: one line per number of ranks, target and round.
func (s *Scaling) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	out.Write([]string{"benchmark", "unit", "size", "ranks", "target", "round", "median"})
	for i, n := range s.Ranks {
		for t, name := range s.Targets {
			for round, v := range s.Values[t][i] {
				out.Write([]string{s.Benchmark, s.Unit, strconv.Itoa(s.Size), strconv.Itoa(n), name,
					strconv.Itoa(round), strconv.FormatFloat(v, 'g', 8, 64)})
			}
		}
	}
	out.Flush()
	return out.Error()
}

// Figure returns a chart of the medians of all rounds with the range of the rounds.
func (s *Scaling) Figure() figure.Figure {
	title := s.Benchmark
	if s.Size > 0 {
		title = fmt.Sprintf("%s of %s bytes", s.Benchmark, figure.Bytes(float64(s.Size)))
	}
	f := figure.Figure{Title: title, X: "ranks", Y: axis(s.Unit), LogY: true}
	for t, name := range s.Targets {
		series := figure.Series{Name: name}
		for i, n := range s.Ranks {
			v := s.Values[t][i]
			series.Points = append(series.Points, figure.Point{X: float64(n), Y: stat.Median(v), Lo: slices.Min(v),
				Hi: slices.Max(v)})
		}
		f.Series = append(f.Series, series)
	}
	return f
}

// axis returns the label of values in a unit.
func axis(unit string) string {
	return map[string]string{"us": "time (us)", "MB/s": "bandwidth (MB/s)"}[unit]
}
