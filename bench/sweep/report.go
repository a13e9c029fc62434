package sweep

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/stat"
)

// Report is what was measured. Modes were in turn; the last is what the others are compared with.
// All values are microseconds for an operation.
type Report struct {
	Environment drive.Environment `json:"environment"`
	Modes       []string          `json:"modes"`
	Rounds      int               `json:"rounds"`
	Order       string            `json:"order"` // of the sizes
	Curves      []*Curve          `json:"curves"`
	Failures    []string          `json:"failures,omitempty"`
}

// Curve is an operation over sizes, on so many ranks in two clusters.
type Curve struct {
	Operation string   `json:"operation"`
	Ranks     string   `json:"ranks"` // "4+4"
	Points    []*Point `json:"points"`
}

// Point is one size. Values that were measured in one turn have the same round.
type Point struct {
	Size   int       `json:"size"`
	Values [][]Value `json:"values"` // of each mode
	// Again are values of the point alone, in jobs of their own, where it was a curve's worst: of
	// many points the worst is so partly by chance.
	Again [][]Value `json:"again,omitempty"`
}

// Value is what a mode took in a round.
type Value struct {
	Round int     `json:"round"`
	Micro float64 `json:"us"`
}

// curve finds a curve, or begins it.
func (r *Report) curve(operation, ranks string) *Curve {
	for _, c := range r.Curves {
		if c.Operation == operation && c.Ranks == ranks {
			return c
		}
	}
	c := &Curve{Operation: operation, Ranks: ranks}
	r.Curves = append(r.Curves, c)
	return c
}

// Add notes what a mode took for an operation of a size.
func (r *Report) Add(operation, ranks string, size, mode, round int, micro float64, again bool) {
	c := r.curve(operation, ranks)
	k, found := slices.BinarySearchFunc(c.Points, size, func(p *Point, n int) int { return p.Size - n })
	if !found {
		c.Points = slices.Insert(c.Points, k, &Point{Size: size, Values: make([][]Value, len(r.Modes))})
	}
	p := c.Points[k]
	to := p.Values
	if again {
		if p.Again == nil {
			p.Again = make([][]Value, len(r.Modes))
		}
		to = p.Again
	}
	to[mode] = append(to[mode], Value{round, micro})
}

// Fail notes why values are missing.
func (r *Report) Fail(what string) {
	if !slices.Contains(r.Failures, what) {
		r.Failures = append(r.Failures, what)
	}
}

// compare is a mode beside the last one, in rounds in which both were measured.
func compare(values [][]Value, mode int) stat.Comparison {
	var a, b []float64
	for _, v := range values[mode] {
		for _, w := range values[len(values)-1] {
			if v.Round == w.Round {
				a, b = append(a, v.Micro), append(b, w.Micro)
			}
		}
	}
	return stat.Compare(a, b)
}

// Worst is the size at which a mode took longest beside the last one, nil if there is none.
func (c *Curve) Worst(mode int) (worst *Point) {
	most := 0.0
	for _, p := range c.Points {
		if x := compare(p.Values, mode); x.Ratio > most {
			worst, most = p, x.Ratio
		}
	}
	return worst
}

// Table writes a line of Markdown for the worst point of every curve and mode: its size, medians in
// us, the ratio of the times (above 1: slower) with the 95 % interval of its median, the same
// measured again, and how many sizes are above 1.05.
func (r *Report) Table(w io.Writer) error {
	last := r.Modes[len(r.Modes)-1]
	fmt.Fprintf(w, "%d rounds of %s in turn, links: %s, sizes %s; load at the start %s\n\n", r.Rounds,
		strings.Join(r.Modes, ", "), r.Environment.Shaping, r.Order, r.Environment.Load)
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintf(t, "| operation\t| ranks\t| mode\t| worst at\t| us\t| %s, us\t| ratio\t| again\t| sizes above 1.05 |\n", last)
	fmt.Fprintln(t, "|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---|")
	for _, c := range r.Curves {
		for m, name := range r.Modes[:len(r.Modes)-1] {
			p := c.Worst(m)
			if p == nil {
				fmt.Fprintf(t, "| %s\t| %s\t| %s\t| not measured\t|\t|\t|\t|\t| |\n", c.Operation, c.Ranks, name)
				continue
			}
			above, of := 0, 0
			for _, q := range c.Points {
				if x := compare(q.Values, m); x.Ratio > 0 {
					of++
					if x.Ratio > aimed {
						above++
					}
				}
			}
			x, again := compare(p.Values, m), ""
			if p.Again != nil {
				again = ratio(compare(p.Again, m))
			}
			fmt.Fprintf(t, "| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t| %d of %d |\n", c.Operation, c.Ranks, name,
				Bytes(p.Size), number(x.A.Median), number(x.B.Median), ratio(x), again, above, of)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, f := range r.Failures {
		fmt.Fprintf(w, "\nnot measured: %s\n", f)
	}
	return nil
}

// aimed is the ratio that no point should exceed.
const aimed = 1.05

// ratio is the median with its interval, which few rounds do not have.
func ratio(c stat.Comparison) string {
	switch {
	case c.Ratio == 0:
		return "-"
	case c.RatioHi == 0:
		return fmt.Sprintf("%.2f", c.Ratio)
	}
	return fmt.Sprintf("%.2f (%.2f - %.2f)", c.Ratio, c.RatioLo, c.RatioHi)
}

func number(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// CSV writes every value.
func (r *Report) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	c.Write([]string{"operation", "ranks", "size", "mode", "round", "again", "us"})
	for _, curve := range r.Curves {
		for _, p := range curve.Points {
			for again, all := range [][][]Value{p.Values, p.Again} {
				for m, values := range all {
					for _, v := range values {
						c.Write([]string{curve.Operation, curve.Ranks, strconv.Itoa(p.Size), r.Modes[m],
							strconv.Itoa(v.Round), strconv.Itoa(again), strconv.FormatFloat(v.Micro, 'g', 8, 64)})
					}
				}
			}
		}
	}
	c.Flush()
	return c.Error()
}

// JSON writes all of it.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
