// Package report turns measurements into one page that stands alone (HTML with the figures inside) and the same in Markdown.
package report

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"strings"

	"github.com/leidenzipper/zipper/bench/drive"
	"github.com/leidenzipper/zipper/bench/figure"
	"github.com/leidenzipper/zipper/bench/npb"
	"github.com/leidenzipper/zipper/bench/stat"
)

// Data is everything a report shows; it is also its JSON form.
type Data struct {
	Title       string              `json:"title"`
	Set         string              `json:"set"` // quick or full
	Environment drive.Environment   `json:"environment"`
	Setting     string              `json:"setting"` // what was compared with what, in a sentence
	Sizes       []*drive.Comparison `json:"sizes"`   // benchmarks over message size
	Ranks       []Scaling           `json:"ranks"`   // collectives over the number of ranks
	NPB         []Kernel            `json:"npb"`
	Seconds     float64             `json:"seconds"` // how long the measurements took
}

// Scaling is a collective at one message size over the number of ranks.
type Scaling struct {
	Benchmark string      `json:"benchmark"`
	Size      int         `json:"size"`
	Targets   []string    `json:"targets"`
	Ranks     []int       `json:"ranks"`
	Values    [][]float64 `json:"values"` // [target][number of ranks], microseconds; 0 = not measured
}

// Kernel is an NPB kernel on all targets.
type Kernel struct {
	Name    string       `json:"name"`
	Class   string       `json:"class"`
	Ranks   int          `json:"ranks"`
	Targets []string     `json:"targets"`
	Results []npb.Result `json:"results"`
	Bytes   uint64       `json:"bytes"` // of data across the zipper, both directions
}

func (s Scaling) title() string {
	if s.Size == 0 {
		return s.Benchmark + " over ranks"
	}
	return fmt.Sprintf("%s of %s over ranks", s.Benchmark, figure.Bytes(float64(s.Size)))
}

type section struct {
	Title, Note string
	SVG         template.URL
	Alt         string
	Head        []string
	Rows        [][]string
}

func (d *Data) sections() ([]section, error) {
	var out []section
	for _, c := range d.Sizes {
		f := c.Figure()
		f.Title = fmt.Sprintf("%s, %d ranks", c.Benchmark, c.Ranks)
		s, err := draw(f)
		if err != nil {
			return nil, err
		}
		s.Note = fmt.Sprintf("Median of %d round(s) each, run in turn; bars: range of the rounds. %s.", c.Rounds, c.Unit)
		s.Head = append([]string{"size"}, c.Targets...)
		for _, t := range c.Targets[1:] {
			s.Head = append(s.Head, c.Targets[0]+"/"+t)
		}
		for _, row := range c.Rows {
			r := []string{figure.Bytes(float64(row.Size))}
			for _, v := range row.Values {
				r = append(r, fmt.Sprintf("%.2f", stat.Median(v)))
			}
			for _, a := range row.Against {
				cell := fmt.Sprintf("%.2f", a.Ratio)
				if !a.Differs {
					cell += " (n.s.)"
				}
				r = append(r, cell)
			}
			s.Rows = append(s.Rows, r)
		}
		out = append(out, s)
	}
	for _, sc := range d.Ranks {
		f := figure.Figure{Title: sc.title(), X: "ranks", Y: "time (us)", LogY: true}
		head := []string{"ranks"}
		rows := make([][]string, len(sc.Ranks))
		for i, n := range sc.Ranks {
			rows[i] = []string{fmt.Sprint(n)}
		}
		for t, name := range sc.Targets {
			head = append(head, name)
			series := figure.Series{Name: name}
			for i, n := range sc.Ranks {
				v := sc.Values[t][i]
				series.Points = append(series.Points, figure.Point{X: float64(n), Y: v, Lo: v, Hi: v})
				rows[i] = append(rows[i], fmt.Sprintf("%.2f", v))
			}
			f.Series = append(f.Series, series)
		}
		s, err := draw(f)
		if err != nil {
			return nil, err
		}
		s.Head, s.Rows, s.Note = head, rows, "Microseconds; half of the ranks in each cluster."
		out = append(out, s)
	}
	if len(d.NPB) > 0 {
		s := section{Title: "NAS parallel benchmarks", Note: "Seconds; every result is checked against the official values.", Head: []string{"kernel", "class", "ranks"}}
		for _, t := range d.NPB[0].Targets {
			s.Head = append(s.Head, t, "verified")
		}
		s.Head = append(s.Head, "bytes across")
		for _, k := range d.NPB {
			row := []string{k.Name, k.Class, fmt.Sprint(k.Ranks)}
			for _, r := range k.Results {
				row = append(row, fmt.Sprintf("%.3f", r.Seconds), map[bool]string{true: "yes", false: "NO"}[r.Verified])
			}
			s.Rows = append(s.Rows, append(row, fmt.Sprint(k.Bytes)))
		}
		out = append(out, s)
	}
	return out, nil
}

func draw(f figure.Figure) (section, error) {
	svg, err := f.Draw("svg")
	if err != nil {
		return section{}, err
	}
	return section{Title: f.Title, Alt: f.Title, SVG: template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(svg))}, nil
}

//go:embed page.html
var page string

// HTML is the page with its figures and numbers inside; it needs no other file.
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
	err = t.Execute(&b, map[string]any{"D": d, "Sections": sections, "JSON": string(raw)})
	return b.Bytes(), err
}

// Markdown is the tables without the figures.
func (d *Data) Markdown() ([]byte, error) {
	sections, err := d.sections()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := d.Environment
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", d.Title, d.Setting)
	fmt.Fprintf(&b, "Set: %s, %.0f s. %s, %s, %d CPUs (%s), %d MB, load %s at the start, links: %s. %s. MPI: %v.\n", d.Set, d.Seconds,
		e.Time.Format("2006-01-02 15:04 UTC"), e.Kernel, e.CPUs, e.CPU, e.MemoryMB, e.Load, e.Shaping, e.Go, e.MPI)
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| %s |\n|%s\n", s.Title, s.Note, strings.Join(s.Head, " | "), strings.Repeat("---:|", len(s.Head)))
		for _, r := range s.Rows {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(r, " | "))
		}
	}
	return b.Bytes(), nil
}
