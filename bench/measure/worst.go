package measure

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/leidenzipper/zipper/bench/stat"
)

// aimed is the ratio of times that no point of a sweep should exceed.
const aimed = 1.05

// curve holds the figures of a row at all sizes on all targets.
type curve []*Figure

// curves returns the curves in the order of their figures.
func (r *Report) curves() (all []curve) {
	for i, f := range r.Figures {
		if i == 0 || !f.sameCurve(r.Figures[i-1].Row) {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], f)
	}
	return all
}

// point is a target beside the last target at one size of a curve.
type point struct {
	figure *Figure
	// first compares the values of the rounds, again those that were measured again.
	first, again stat.Comparison
}

// points returns the sizes of a curve at which both the target and base were measured in the same
// round.
func (c curve) points(target, base string) (all []point) {
	for _, f := range c {
		for _, b := range c {
			if f.Target != target || b.Target != base || f.Size != b.Size {
				continue
			}
			if p := (point{f, compare(f, b, false), compare(f, b, true)}); p.first.Ratio > 0 {
				all = append(all, p)
			}
		}
	}
	return all
}

// compare compares two figures by the rounds in which both were measured.
func compare(f, base *Figure, again bool) stat.Comparison {
	var a, b []float64
	for _, v := range f.Values {
		for _, w := range base.Values {
			if v.Round == w.Round && v.Again == again && w.Again == again {
				a, b = append(a, v.Value), append(b, w.Value)
			}
		}
	}
	return stat.Compare(a, b)
}

// worst returns the point with the highest ratio, nil if there is no point.
func worst(points []point) (most *point) {
	for i := range points {
		if most == nil || points[i].first.Ratio > most.first.Ratio {
			most = &points[i]
		}
	}
	return most
}

// Worst returns each row at whose size some target took longest beside the last one, each once.
func (r *Report) Worst() (rows []Row) {
	last := r.Targets[len(r.Targets)-1]
	for _, c := range r.curves() {
		listed := map[int]bool{}
		for _, target := range r.Targets[:len(r.Targets)-1] {
			if p := worst(c.points(target, last)); p != nil && !listed[p.figure.Size] {
				listed[p.figure.Size] = true
				rows = append(rows, p.figure.Row)
			}
		}
	}
	return rows
}

// Holes writes the table of the plan sweep, in Markdown: for the worst point of every curve and
// target its size, the medians, the ratio of the times (above 1: slower) with the 95 % interval of
// its median, the same measured again, and the number of sizes whose ratio is above 1.05.
func (r *Report) Holes(w io.Writer) error {
	last := r.Targets[len(r.Targets)-1]
	timed := "the mean of all ranks"
	if r.Last > 0 {
		timed = "until the last rank's end"
	}
	fmt.Fprintf(w, "%d rounds of %s in turn, links: %s, sizes %s, times of collectives %s; load at the start %s\n\n",
		r.Rounds, strings.Join(r.Targets, ", "), r.Environment.Shaping, r.Order, timed, r.Environment.Load)
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintf(t, "| operation\t| ranks\t| mode\t| worst at\t| us\t| %s, us\t| ratio\t| again\t| sizes above 1.05 |\n", last)
	fmt.Fprintln(t, "|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---|")
	var reasons notes
	for _, c := range r.curves() {
		for _, target := range r.Targets[:len(r.Targets)-1] {
			cells := append([]string{c[0].Name, c[0].Ranks, target}, c.hole(target, last, c.marks(&reasons, target, last))...)
			fmt.Fprintf(t, "| %s |\n", strings.Join(cells, "\t| "))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	reasons.write(w)
	return nil
}

// marks returns the marks of the reasons why values on two targets are missing.
func (c curve) marks(reasons *notes, targets ...string) string {
	var marks []string
	for _, f := range c {
		if f.Reason == "" || !slices.Contains(targets, f.Target) {
			continue
		}
		if m := reasons.note(f.Target + ": " + f.Reason); !slices.Contains(marks, m) {
			marks = append(marks, m)
		}
	}
	return strings.Join(marks, " ")
}

// hole returns the cells of a target's line in the table; marks are those of missing values.
func (c curve) hole(target, last, marks string) []string {
	points := c.points(target, last)
	p := worst(points)
	if p == nil {
		return []string{strings.TrimSpace("not measured " + marks), "", "", "", "", ""}
	}
	above, again := 0, ""
	for _, q := range points {
		if q.first.Ratio > aimed {
			above++
		}
	}
	if p.again.Ratio > 0 {
		again = ratio(p.again)
	}
	return []string{Bytes(p.figure.Size), number(p.first.A.Median), number(p.first.B.Median), ratio(p.first), again,
		strings.TrimSpace(fmt.Sprintf("%d of %d %s", above, len(points), marks))}
}

// ratio formats the median of the ratios with its interval, which few rounds do not have.
func ratio(c stat.Comparison) string {
	if c.RatioHi == 0 {
		return fmt.Sprintf("%.2f", c.Ratio)
	}
	return fmt.Sprintf("%.2f (%.2f - %.2f)", c.Ratio, c.RatioLo, c.RatioHi)
}
