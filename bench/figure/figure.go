// Package figure draws the curves of benchmarks with gonum/plot: one line per target, both axes logarithmic where sizes and times span
// decades, and bands for the spread.
package figure

import (
	"bytes"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// Point is one measured value with its spread; Lo = Hi = Y draws no bar.
type Point struct{ X, Y, Lo, Hi float64 }

// Series is a curve.
type Series struct {
	Name   string
	Points []Point
}

// Figure is a chart.
type Figure struct {
	Title, X, Y string // with units
	LogX, LogY  bool
	Series      []Series
}

// Draw renders the figure as "svg", "png" or "pdf". Values that are not positive are left out on logarithmic axes, those that are not
// finite always; a figure without any point is an error.
func (f Figure) Draw(format string) ([]byte, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = f.Title, f.X, f.Y
	p.Title.TextStyle.Font.Size = vg.Points(13)
	p.Title.Padding = vg.Points(6)
	p.BackgroundColor = color.White
	if f.LogX {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, sizeTicks{}
	}
	if f.LogY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{225}, color.Gray{235}
	p.Add(grid)
	p.Legend.Left, p.Legend.Top = true, true
	p.Legend.Padding = vg.Points(2)
	drawn := 0
	for i, s := range f.Series {
		var xy plotter.XYs
		var bars errorPoints
		for _, q := range s.Points {
			if !f.fits(q) {
				continue
			}
			xy = append(xy, plotter.XY{X: q.X, Y: q.Y})
			lo, hi := math.Max(0, q.Y-q.Lo), math.Max(0, q.Hi-q.Y)
			if f.LogY && q.Lo <= 0 {
				lo = 0
			}
			bars.XYs = append(bars.XYs, plotter.XY{X: q.X, Y: q.Y})
			bars.YErrors = append(bars.YErrors, struct{ Low, High float64 }{lo, hi})
		}
		if len(xy) == 0 {
			continue
		}
		drawn++
		line, points, err := plotter.NewLinePoints(xy)
		if err != nil {
			return nil, fmt.Errorf("figure %q: %w", f.Title, err)
		}
		line.Color, line.Width = plotutil.Color(i), vg.Points(1.3)
		points.Color, points.Shape, points.Radius = plotutil.Color(i), plotutil.Shape(i), vg.Points(2.3)
		eb, err := plotter.NewYErrorBars(bars)
		if err != nil {
			return nil, fmt.Errorf("figure %q: %w", f.Title, err)
		}
		eb.Color, eb.CapWidth = plotutil.Color(i), vg.Points(3)
		p.Add(line, points, eb)
		p.Legend.Add(s.Name, line, points)
	}
	if drawn == 0 {
		return nil, fmt.Errorf("figure %q has nothing to show", f.Title)
	}
	w, err := p.WriterTo(font.Length(6.4*72), font.Length(4.2*72), format)
	if err != nil {
		return nil, fmt.Errorf("figure %q: %w", f.Title, err)
	}
	var b bytes.Buffer
	_, err = w.WriteTo(&b)
	return b.Bytes(), err
}

func (f Figure) fits(q Point) bool {
	for _, v := range []float64{q.X, q.Y} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return (!f.LogX || q.X > 0) && (!f.LogY || q.Y > 0)
}

type errorPoints struct {
	plotter.XYs
	plotter.YErrors
}

// sizeTicks marks powers of 4 as bytes, KiB and MiB.
type sizeTicks struct{}

func (sizeTicks) Ticks(lo, hi float64) []plot.Tick {
	var t []plot.Tick
	for v, i := 1.0, 0; v <= hi*1.001; v, i = v*2, i+1 {
		if v < lo*0.999 {
			continue
		}
		label := ""
		if i%2 == 0 {
			label = Bytes(v)
		}
		t = append(t, plot.Tick{Value: v, Label: label})
	}
	return t
}

// Bytes is a size for people: 512, 4K, 1M.
func Bytes(v float64) string {
	switch {
	case v >= 1<<20:
		return fmt.Sprintf("%gM", v/(1<<20))
	case v >= 1<<10:
		return fmt.Sprintf("%gK", v/(1<<10))
	}
	return fmt.Sprintf("%g", v)
}
