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

// Comparison holds a benchmark's results on targets that ran in turn: A B A B … .
type Comparison struct {
	Benchmark string `json:"benchmark"`
	Unit      string `json:"unit"`
	// Targets are the names; the first target is compared with each other one.
	Targets []string `json:"targets"`
	Ranks   int      `json:"ranks"`
	// Rounds is the number of complete rounds, on all targets.
	Rounds int     `json:"rounds"`
	Rows   []Sizes `json:"rows"`
}

// Sizes holds the results of one message size: a value per target and round, and the comparisons
// with the first target.
type Sizes struct {
	Size    int               `json:"size"`
	Values  [][]float64       `json:"values"` // [target][round]: the round's median
	Against []stat.Comparison `json:"against"`
}

// Compare runs the benchmarks on all targets in turn, rounds times, each time in one job. It calls
// progress, if not nil, before each run. With an error, also at the end of ctx, it returns the
// comparisons of the rounds that were complete; there may be none (Rounds 0, no Rows).
func (r *Runner) Compare(ctx context.Context, targets []Target, o osu.Options, rounds int,
	progress func(round int, t Target), names ...string) ([]*Comparison, error) {
	var cs []*Comparison
	for _, name := range names {
		c := &Comparison{Benchmark: name}
		for _, t := range targets {
			c.Targets = append(c.Targets, t.Name)
		}
		cs = append(cs, c)
	}
	defer func() {
		for _, c := range cs {
			c.test()
		}
	}()
	for round := range rounds {
		whole := make([][]*osu.Result, len(targets))
		for i, t := range targets {
			if progress != nil {
				progress(round, t)
			}
			var err error
			if whole[i], _, err = r.OSU(ctx, t, o, names...); err != nil {
				return cs, err
			}
		}
		for n, c := range cs {
			c.Rounds++
			for i, all := range whole {
				c.add(i, all[n])
			}
		}
	}
	return cs, nil
}

// test compares the first target with each other one.
func (c *Comparison) test() {
	for k, row := range c.Rows {
		for _, other := range row.Values[1:] {
			c.Rows[k].Against = append(c.Rows[k].Against, stat.Compare(row.Values[0], other))
		}
	}
}

// add adds one round's result of a target.
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

// Table writes medians and, for each further target, the ratio first/other with its 95 % interval,
// Mann–Whitney's p and the verdict whether it shows a difference (5 %).
func (c *Comparison) Table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "# %s (%s), %d rounds of each in turn; medians of the rounds\n", c.Benchmark, c.Unit, c.Rounds)
	fmt.Fprint(t, "size\t")
	for _, n := range c.Targets {
		fmt.Fprintf(t, "%s\t", n)
	}
	fmt.Fprintln(t, comparisonHead(c.Targets))
	for _, row := range c.Rows {
		fmt.Fprintf(t, "%d\t", row.Size)
		for _, v := range row.Values {
			fmt.Fprintf(t, "%.2f\t", stat.Median(v))
		}
		for _, a := range row.Against {
			fmt.Fprint(t, against(a))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// comparisonHead returns the head of the columns of against, for each further target.
func comparisonHead(targets []string) (head string) {
	for _, n := range targets[1:] {
		head += fmt.Sprintf("%s/%s\t95 %%\t\t", targets[0], n)
	}
	return head
}

// against returns the ratio, its interval (- if there are too few values) and the verdict.
func against(c stat.Comparison) string {
	interval, verdict := "-", fmt.Sprintf("p = %.3g", c.P)
	if c.RatioHi > 0 {
		interval = fmt.Sprintf("%.3f - %.3f", c.RatioLo, c.RatioHi)
	}
	if c.TooFew {
		verdict = "too few rounds"
	} else if !c.Differs {
		verdict += ", no difference shown"
	}
	return fmt.Sprintf("%.3f\t%s\t%s\t", c.Ratio, interval, verdict)
}

// CSV writes every value: one line per size, target and round.
func (c *Comparison) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	out.Write([]string{"benchmark", "unit", "size", "target", "round", "median"})
	for _, row := range c.Rows {
		for i, vals := range row.Values {
			for round, v := range vals {
				out.Write([]string{c.Benchmark, c.Unit, strconv.Itoa(row.Size), c.Targets[i], strconv.Itoa(round),
					strconv.FormatFloat(v, 'g', 8, 64)})
			}
		}
	}
	out.Flush()
	return out.Error()
}

// Figure returns a chart of the medians of all rounds with the range of the rounds.
func (c *Comparison) Figure() figure.Figure {
	f := figure.Figure{Title: c.Benchmark, X: "message size (bytes)", Y: axis(c.Unit), LogX: true, LogY: true}
	for i, name := range c.Targets {
		s := figure.Series{Name: name}
		for _, row := range c.Rows {
			v := row.Values[i]
			s.Points = append(s.Points, figure.Point{X: float64(row.Size), Y: stat.Median(v), Lo: slices.Min(v),
				Hi: slices.Max(v)})
		}
		f.Series = append(f.Series, s)
	}
	return f
}
