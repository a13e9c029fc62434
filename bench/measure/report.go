// Package measure holds the two plans that scripts/bench carries out in the lab, and the report of
// the measured values. The plan sweep has every operation of MPI that spans clusters over powers of
// two and their neighbours, to find holes: sizes at which an operation is slow. The plan longhaul
// has rows between two sites with a long link between them, with an aim for each. The package does
// not measure itself: bench/measure/zipper-measure does, with the program in mpi/ in MPI jobs.
//
// Over a long link every value carries how late the link was meanwhile (package delayline). A
// measurement is void if the link was too late, or dropped what it should not have: it is written
// and marked, and counts for no median.
package measure

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/lab/delayline"
	"github.com/leidenzipper/zipper/bench/stat"
)

// Row is something to measure, on several targets in turn.
type Row struct {
	// Name is the row's name in tables; in the plan sweep it is that of an operation.
	Name string `json:"row"`
	// Ranks is the number of ranks in both clusters, such as "4+4"; it is empty if Name tells it.
	Ranks string `json:"ranks,omitempty"`
	// Size is the size of the messages in bytes; it is 0 if Name tells it or there is none.
	Size int `json:"size,omitempty"`
	// Unit is the unit of the values.
	Unit string `json:"unit"`
	// AtMost tells that the aim is an upper bound.
	AtMost bool `json:"aim_is_upper_bound,omitempty"`
	// Both tells that the values are rates of both directions together.
	Both bool `json:"-"`
	// Aim returns the value to reach over a link, in Unit; nil means that there is none.
	Aim func(o delayline.Options) float64 `json:"-"`
}

// sameCurve tells whether two rows are points of one curve, which differ in size alone.
func (r Row) sameCurve(other Row) bool { return r.Name == other.Name && r.Ranks == other.Ranks }

// Is tells whether two rows are the same.
func (r Row) Is(other Row) bool { return r.sameCurve(other) && r.Size == other.Size }

// Units of rows.
const (
	Mbit  = "Mbit/s"
	Milli = "ms"
	Micro = "us"
	MB    = "MB"
	Ratio = ""
)

// Report holds what was measured in one lab.
type Report struct {
	// Environment describes the machine at the start.
	Environment drive.Environment `json:"environment"`
	// Line describes the long link; it is nil if the lab has none.
	Line *delayline.Options `json:"line,omitempty"`
	// Congestion is TCP's congestion control on all nodes; it is empty if the plan does not choose
	// it.
	Congestion string `json:"congestion_control,omitempty"`
	// Targets are the names of what was measured in turn. In the plan sweep the others are compared
	// with the last one.
	Targets []string `json:"targets"`
	// Order is the order of the sizes in a job; it is empty if jobs have one size.
	Order string `json:"order,omitempty"`
	// Last is the number of calls of a collective that are timed until the last rank's end; 0 means
	// that its time is the mean of all ranks' times.
	Last int `json:"last,omitempty"`
	// Rounds is the number of rounds that were completed.
	Rounds int `json:"rounds"`
	// Figures are sorted by row in the order in which the rows first came, then by size. Rows of
	// one name and number of ranks stay together.
	Figures []*Figure `json:"figures"`
}

// Figure holds the values of one row on one target.
type Figure struct {
	Row
	// Target is the name of the target.
	Target string `json:"target"`
	// Aim is the value to reach, in Unit; 0 means that there is none.
	Aim float64 `json:"aim,omitempty"`
	// Values are in the order in which they were measured.
	Values []Value `json:"values,omitempty"`
	// Reason tells why a value is missing; it is empty if none is.
	Reason string `json:"not_measured,omitempty"`
}

// Value is a measured value of one round.
type Value struct {
	// Round counts from 0. Values of different targets with the same round were measured in turn.
	Round int `json:"round"`
	// Again tells that the point was measured alone after all rounds because it was a curve's
	// worst: among many points the worst is so partly by chance. Round then counts these
	// measurements.
	Again bool `json:"again,omitempty"`
	// Value is in the figure's unit.
	Value float64 `json:"value"`
	// Late tells how late the long link was meanwhile; it is nil if the lab has none.
	Late *Lateness `json:"late,omitempty"`
	// Void tells why the value does not count; it is empty if it does.
	Void string `json:"void,omitempty"`
}

// Lateness tells in microseconds how long after its time a packet left the long link, in the worse
// of both directions.
type Lateness struct {
	// Median is the median of all packets.
	Median float64 `json:"median_us"`
	// P99 is the 99th percentile.
	P99 float64 `json:"p99_us"`
	// Max is the worst packet's.
	Max float64 `json:"max_us"`
}

// worse returns the larger values of both.
func (l Lateness) worse(m Lateness) Lateness {
	return Lateness{max(l.Median, m.Median), max(l.P99, m.P99), max(l.Max, m.Max)}
}

// figure returns a row's figure on a target, and inserts it if it is new.
func (r *Report) figure(row Row, target string) *Figure {
	at := len(r.Figures)
	for i, f := range r.Figures {
		if f.Is(row) && f.Target == target {
			return f
		}
		if f.sameCurve(row) {
			if f.Size > row.Size {
				at = i
				break
			}
			at = i + 1
		}
	}
	f := &Figure{Row: row, Target: target}
	if row.Aim != nil && r.Line != nil {
		f.Aim = row.Aim(*r.Line)
	}
	r.Figures = slices.Insert(r.Figures, at, f)
	return f
}

// Add adds a value of a row on a target. ways are the statistics of the long link, one for each
// direction, of the time that the measurement took.
func (r *Report) Add(row Row, target string, v Value, ways []delayline.Stats) {
	if r.Line != nil {
		v.Void, v.Late = row.impossible(v.Value, *r.Line), &Lateness{}
		for _, s := range ways {
			*v.Late = v.Late.worse(Lateness{micro(s.LateMedian), micro(s.Late99), micro(s.LateMax)})
			v.Void = cmp.Or(v.Void, s.Void(r.Line.Delay))
		}
	}
	f := r.figure(row, target)
	f.Values = append(f.Values, v)
}

// Miss adds the reason why a row has no value on a target. The row keeps the values that it has.
func (r *Report) Miss(row Row, target, reason string) {
	if f := r.figure(row, target); f.Reason == "" {
		f.Reason = reason
	}
}

func micro(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// counting returns the values that are not void, without those that were measured again.
func (f *Figure) counting() (all []float64) {
	for _, v := range f.Values {
		if v.Void == "" && !v.Again {
			all = append(all, v.Value)
		}
	}
	return all
}

// MeetsAim tells whether the median reaches the aim.
func (f *Figure) MeetsAim() bool {
	m := stat.Median(f.counting())
	if f.AtMost {
		return m <= f.Aim
	}
	return m >= f.Aim
}

// notes are reasons below a table, each once.
type notes []string

// note returns the mark in the table for a reason, which is empty for an empty reason.
func (n *notes) note(reason string) string {
	if reason == "" {
		return ""
	}
	i := slices.Index(*n, reason)
	if i < 0 {
		i = len(*n)
		*n = append(*n, reason)
	}
	return fmt.Sprintf("[%d]", i+1)
}

func (n notes) write(w io.Writer) {
	if len(n) > 0 {
		fmt.Fprintln(w)
	}
	for i, reason := range n {
		fmt.Fprintf(w, "[%d] %s\n", i+1, reason)
	}
}

// number formats a value with three significant digits, or with all digits before the point.
func number(v float64) string {
	if math.Abs(v) >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// CSV writes a line for every value, and one without a value for each reason why one is missing.
func (r *Report) CSV(w io.Writer) error {
	g := func(v float64) string { return strconv.FormatFloat(v, 'g', 8, 64) }
	delay := ""
	if r.Line != nil {
		delay = g(Milliseconds(r.Line.Delay))
	}
	c := csv.NewWriter(w)
	c.Write([]string{"row", "ranks", "size", "target", "round", "again", "value", "unit", "aim", "delay_ms",
		"late_median_us", "late_p99_us", "late_max_us", "void", "not_measured"})
	for _, f := range r.Figures {
		head := []string{f.Name, f.Ranks, strconv.Itoa(f.Size), f.Target}
		kind := []string{f.Unit, g(f.Aim), delay}
		for _, v := range f.Values {
			again, late := "0", []string{"", "", ""}
			if v.Again {
				again = "1"
			}
			if v.Late != nil {
				late = []string{g(v.Late.Median), g(v.Late.P99), g(v.Late.Max)}
			}
			c.Write(slices.Concat(head, []string{strconv.Itoa(v.Round), again, g(v.Value)}, kind, late, []string{v.Void, ""}))
		}
		if f.Reason != "" {
			c.Write(slices.Concat(head, []string{"", "", ""}, kind, []string{"", "", "", "", f.Reason}))
		}
	}
	c.Flush()
	return c.Error()
}

// JSON writes the whole report.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
