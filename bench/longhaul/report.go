package longhaul

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/lab/delayline"
	"github.com/leidenzipper/zipper/bench/stat"
)

// Value is one round's measurement.
type Value struct {
	Round      int     `json:"round"`
	Value      float64 `json:"value"`
	LateMedian float64 `json:"late_median_us"` // of the long link meanwhile, the worse of both directions
	Late99     float64 `json:"late_p99_us"`
	LateMax    float64 `json:"late_max_us"`
	Void       string  `json:"void,omitempty"` // why it does not count
}

// Figure is what a row is on one target.
type Figure struct {
	Row    string  `json:"row"`
	Target string  `json:"target"`
	Unit   string  `json:"unit"`
	Aim    float64 `json:"aim,omitempty"`
	Most   bool    `json:"aim_is_upper_bound,omitempty"`
	Values []Value `json:"values,omitempty"`
	Reason string  `json:"not_measured,omitempty"`
}

// Report is what was measured over one link.
type Report struct {
	Environment drive.Environment `json:"environment"`
	Line        delayline.Options `json:"line"`
	Congestion  string            `json:"congestion_control"`
	Rounds      int               `json:"rounds"`
	Figures     []*Figure         `json:"figures"`
}

// figure finds a row's figure, or begins it.
func (r *Report) figure(row Row, target string) *Figure {
	for _, f := range r.Figures {
		if f.Row == row.Name && f.Target == target {
			return f
		}
	}
	f := &Figure{Row: row.Name, Target: target, Unit: row.Unit, Most: row.Most}
	if row.Aim != nil {
		f.Aim = row.Aim(r.Line)
	}
	// Rows stay together, in the order in which they first came.
	at := len(r.Figures)
	for i, other := range r.Figures {
		if other.Row == row.Name {
			at = i + 1
		}
	}
	r.Figures = slices.Insert(r.Figures, at, f)
	return f
}

// Add notes a measurement, with what the long link said of the time that it took.
func (r *Report) Add(row Row, target string, round int, value float64, ways []delayline.Stats) {
	v := Value{Round: round, Value: value, Void: row.impossible(value, r.Line)}
	for _, s := range ways {
		v.LateMedian = max(v.LateMedian, us(s.LateMedian))
		v.Late99 = max(v.Late99, us(s.Late99))
		v.LateMax = max(v.LateMax, us(s.LateMax))
		v.Void = cmp.Or(v.Void, s.Void(r.Line.Delay))
	}
	f := r.figure(row, target)
	f.Values = append(f.Values, v)
}

// Miss notes why a row has no value on a target. One that has values keeps them.
func (r *Report) Miss(row Row, target, reason string) {
	if f := r.figure(row, target); f.Reason == "" {
		f.Reason = reason
	}
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// counting are the values that are not void.
func (f *Figure) counting() (all []float64) {
	for _, v := range f.Values {
		if v.Void == "" {
			all = append(all, v.Value)
		}
	}
	return all
}

// Met tells whether the median reaches the aim.
func (f *Figure) Met() bool {
	m := stat.Median(f.counting())
	if f.Most {
		return m <= f.Aim
	}
	return m >= f.Aim
}

// Table writes a line of Markdown for every row and target: median, lowest and highest of the
// rounds that count, the aim and whether it is met, and the long link's lateness in the worst of
// all rounds.
func (r *Report) Table(w io.Writer) error {
	fmt.Fprintf(w, "%v; %s; %d rounds in turn; TCP carries at most %.0f Mbit/s\n\n", r.Line, r.Congestion, r.Rounds,
		Payload(r.Line))
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintln(t, "| row\t| target\t| median\t| lowest - highest\t| unit\t| aim\t| verdict\t| line late, us: median, p99, max |")
	fmt.Fprintln(t, "|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---|")
	var notes []string // reasons, each once
	for _, f := range r.Figures {
		c := f.cells(&notes)
		fmt.Fprintf(t, "| %s |\n", strings.Join(c[:], "\t| "))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(notes) > 0 {
		fmt.Fprintln(w)
	}
	for i, reason := range notes {
		fmt.Fprintf(w, "[%d] %s\n", i+1, reason)
	}
	return nil
}

// cells are those of the figure's line in the table; a reason that is not among the notes is added
// there.
func (f *Figure) cells(notes *[]string) [8]string {
	note := ""
	if f.Reason != "" {
		i := slices.Index(*notes, f.Reason)
		if i < 0 {
			i = len(*notes)
			*notes = append(*notes, f.Reason)
		}
		note = fmt.Sprintf("[%d]", i+1)
	}
	aim := ""
	if f.Aim > 0 {
		aim = map[bool]string{true: "<= ", false: ">= "}[f.Most] + number(f.Aim)
	}
	if len(f.Values) == 0 {
		return [8]string{f.Row, f.Target, "not measured " + note, "", f.Unit, aim, "", ""}
	}
	good, verdict := f.counting(), ""
	bad := len(f.Values) - len(good)
	switch {
	case len(good) == 0:
		for _, v := range f.Values {
			good = append(good, v.Value)
		}
		verdict, bad = "VOID: "+f.Values[len(f.Values)-1].Void, 0
	case f.Aim > 0 && f.Met():
		verdict = "met"
	case f.Aim > 0:
		verdict = "missed"
	}
	if bad > 0 {
		verdict = fmt.Sprintf("%s, %d void", verdict, bad)
	}
	var late Value
	for _, v := range f.Values {
		late.LateMedian, late.Late99, late.LateMax = max(late.LateMedian, v.LateMedian), max(late.Late99, v.Late99),
			max(late.LateMax, v.LateMax)
	}
	return [8]string{f.Row, f.Target, number(stat.Median(good)), number(slices.Min(good)) + " - " +
		number(slices.Max(good)), f.Unit, aim,
		strings.TrimSpace(strings.TrimPrefix(verdict, ", ") + " " + note),
		fmt.Sprintf("%.0f, %.0f, %.0f", late.LateMedian, late.Late99, late.LateMax)}
}

// number has three significant digits or all before the point.
func number(v float64) string {
	if math.Abs(v) >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// CSV writes every value, and a line without one for what was not measured.
func (r *Report) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	c.Write([]string{"delay_ms", "row", "target", "unit", "aim", "round", "value", "late_median_us", "late_p99_us",
		"late_max_us", "void", "not_measured"})
	g := func(v float64) string { return strconv.FormatFloat(v, 'g', 8, 64) }
	for _, f := range r.Figures {
		head := []string{g(Milliseconds(r.Line.Delay)), f.Row, f.Target, f.Unit, g(f.Aim)}
		for _, v := range f.Values {
			c.Write(append(slices.Clone(head), strconv.Itoa(v.Round), g(v.Value), g(v.LateMedian), g(v.Late99),
				g(v.LateMax), v.Void, ""))
		}
		if f.Reason != "" {
			c.Write(append(slices.Clone(head), "", "", "", "", "", "", f.Reason))
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
