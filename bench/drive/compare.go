package drive

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"

	"github.com/leidenzipper/zipper/bench/figure"
	"github.com/leidenzipper/zipper/bench/osu"
	"github.com/leidenzipper/zipper/bench/stat"
)

// Comparison of a benchmark on targets that ran in turn: A B A B … .
type Comparison struct {
	Benchmark string   `json:"benchmark"`
	Unit      string   `json:"unit"`
	Targets   []string `json:"targets"` // the first is compared with each other one
	Ranks     int      `json:"ranks"`
	Rounds    int      `json:"rounds"`
	Rows      []Sizes  `json:"rows"`
}

// Sizes is one message size: a value per target and round, and the comparisons with the first target.
type Sizes struct {
	Size    int               `json:"size"`
	Values  [][]float64       `json:"values"` // [target][round]: the round's median
	Against []stat.Comparison `json:"against"`
}

// Compare runs the benchmarks on all targets in turn, rounds times, each time in one job. progress, if not nil, is told before each run.
func (r *Runner) Compare(ctx context.Context, targets []Target, o osu.Options, rounds int, progress func(round int, t Target), names ...string) ([]*Comparison, error) {
	var cs []*Comparison
	for _, name := range names {
		c := &Comparison{Benchmark: name, Rounds: rounds}
		for _, t := range targets {
			c.Targets = append(c.Targets, t.Name)
		}
		cs = append(cs, c)
	}
	for round := range rounds {
		for i, t := range targets {
			if progress != nil {
				progress(round, t)
			}
			all, _, err := r.OSU(ctx, t, o, names...)
			if err != nil {
				return nil, err
			}
			for n, res := range all {
				cs[n].add(i, res)
			}
		}
	}
	for _, c := range cs {
		for k, row := range c.Rows {
			for _, other := range row.Values[1:] {
				c.Rows[k].Against = append(c.Rows[k].Against, stat.Compare(row.Values[0], other))
			}
		}
	}
	return cs, nil
}

// add takes one round's result of a target.
func (c *Comparison) add(target int, res *osu.Result) {
	c.Unit, c.Ranks = res.Unit, res.Ranks
	for _, row := range res.Rows {
		k := slices.IndexFunc(c.Rows, func(s Sizes) bool { return s.Size == row.Size })
		if k < 0 {
			k = len(c.Rows)
			c.Rows = append(c.Rows, Sizes{Size: row.Size, Values: make([][]float64, len(c.Targets))})
		}
		c.Rows[k].Values[target] = append(c.Rows[k].Values[target], row.Value.Median)
	}
}

// Table writes medians and, for each further target, the ratio first/other with its 95 % interval and whether the difference is
// significant (Mann–Whitney, 5 %).
func (c *Comparison) Table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "# %s (%s), %d rounds of each in turn; medians of the rounds\n", c.Benchmark, c.Unit, c.Rounds)
	fmt.Fprint(t, "size\t")
	for _, n := range c.Targets {
		fmt.Fprintf(t, "%s\t", n)
	}
	for _, n := range c.Targets[1:] {
		fmt.Fprintf(t, "%s/%s\t95 %%\t\t", c.Targets[0], n)
	}
	fmt.Fprintln(t)
	for _, row := range c.Rows {
		fmt.Fprintf(t, "%d\t", row.Size)
		for _, v := range row.Values {
			fmt.Fprintf(t, "%.2f\t", stat.Median(v))
		}
		for _, a := range row.Against {
			verdict := "no difference shown"
			if a.Differs {
				verdict = fmt.Sprintf("p = %.3g", a.P)
			}
			fmt.Fprintf(t, "%.3f\t%.3f - %.3f\t%s\t", a.Ratio, a.RatioLo, a.RatioHi, verdict)
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// CSV writes every value: one line per size, target and round.
func (c *Comparison) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	out.Write([]string{"benchmark", "unit", "size", "target", "round", "median"})
	for _, row := range c.Rows {
		for i, vals := range row.Values {
			for round, v := range vals {
				out.Write([]string{c.Benchmark, c.Unit, strconv.Itoa(row.Size), c.Targets[i], strconv.Itoa(round), strconv.FormatFloat(v, 'g', 8, 64)})
			}
		}
	}
	out.Flush()
	return out.Error()
}

// Figure is a chart of the medians of all rounds with the range of the rounds.
func (c *Comparison) Figure() figure.Figure {
	f := figure.Figure{Title: c.Benchmark, X: "message size (bytes)", Y: axis(c.Unit), LogX: true, LogY: true}
	for i, name := range c.Targets {
		s := figure.Series{Name: name}
		for _, row := range c.Rows {
			v := row.Values[i]
			s.Points = append(s.Points, figure.Point{X: float64(row.Size), Y: stat.Median(v), Lo: slices.Min(v), Hi: slices.Max(v)})
		}
		f.Series = append(f.Series, s)
	}
	return f
}
