package measure

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/leidenzipper/zipper/bench/stat"
)

// Aims writes the table of the plan longhaul, in Markdown: for every row and target the median, the
// lowest and the highest of the rounds that count, the aim and whether it is met, and the long
// link's lateness in the worst of all rounds.
func (r *Report) Aims(w io.Writer) error {
	fmt.Fprintf(w, "%v; %s; %d rounds in turn; TCP carries at most %.0f Mbit/s\n\n", *r.Line, r.Congestion, r.Rounds,
		Payload(*r.Line))
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintln(t, "| row\t| target\t| median\t| lowest - highest\t| unit\t| aim\t| verdict\t| line late, us: median, p99, max |")
	fmt.Fprintln(t, "|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---|")
	var reasons notes
	for _, f := range r.Figures {
		c := f.cells(reasons.note(f.Reason))
		fmt.Fprintf(t, "| %s |\n", strings.Join(c[:], "\t| "))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	reasons.write(w)
	return nil
}

// cells returns the figure's line in the table; note marks the reason why a value is missing.
func (f *Figure) cells(note string) [8]string {
	aim := ""
	if f.Aim > 0 {
		aim = map[bool]string{true: "<= ", false: ">= "}[f.AtMost] + number(f.Aim)
	}
	if len(f.Values) == 0 {
		return [8]string{f.Name, f.Target, "not measured " + note, "", f.Unit, aim, "", ""}
	}
	good, verdict := f.counting(), ""
	bad := len(f.Values) - len(good)
	switch {
	case len(good) == 0:
		for _, v := range f.Values {
			good = append(good, v.Value)
		}
		verdict, bad = "VOID: "+f.Values[len(f.Values)-1].Void, 0
	case f.Aim > 0 && f.MeetsAim():
		verdict = "met"
	case f.Aim > 0:
		verdict = "missed"
	}
	if bad > 0 {
		verdict = fmt.Sprintf("%s, %d void", verdict, bad)
	}
	var late Lateness
	for _, v := range f.Values {
		late = late.worse(*v.Late)
	}
	return [8]string{f.Name, f.Target, number(stat.Median(good)), number(slices.Min(good)) + " - " +
		number(slices.Max(good)), f.Unit, aim,
		strings.TrimSpace(strings.TrimPrefix(verdict, ", ") + " " + note),
		fmt.Sprintf("%.0f, %.0f, %.0f", late.Median, late.P99, late.Max)}
}
