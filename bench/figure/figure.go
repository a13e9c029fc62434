// Package figure draws the curves of benchmarks with gonum/plot: one line per target, both axes
// logarithmic where sizes and times span decades, and bars for the spread. It also draws groups of
// bars, one per target. The legend stands below, where it hides nothing.
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
	"gonum.org/v1/plot/vg/draw"
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
	// Title, X and Y are the title and the labels of the axes, with units.
	Title, X, Y string
	LogX, LogY  bool
	// Groups are the names of groups of bars, which replace curves; the X of a point is then the
	// number of its group.
	Groups []string
	Series []Series
}

// Draw renders the figure as "svg", "png" or "pdf". It omits values that are not positive on
// logarithmic axes, and those that are not finite on all axes. A figure without any point is an
// error.
func (f Figure) Draw(format string) ([]byte, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = f.Title, f.X, f.Y
	p.Title.TextStyle.Font.Size = vg.Points(13)
	p.Title.Padding = vg.Points(6)
	p.X.Padding, p.Y.Padding = 0, 0
	p.BackgroundColor = color.White
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{225}, color.Gray{235}
	p.Add(grid)
	add := f.curve
	if f.Groups != nil {
		add = f.bars
		grid.Vertical.Width = 0
		p.NominalX(f.Groups...)
		p.Y.Min = 0
	}
	var legend []plot.Legend
	for i, s := range f.Series {
		shown, err := add(p, i, s)
		if err != nil {
			return nil, fmt.Errorf("figure %q: %w", f.Title, err)
		}
		if shown != nil {
			l := plot.NewLegend()
			l.Left, l.Top = true, true
			l.Add(s.Name, shown...)
			legend = append(legend, l)
		}
	}
	if legend == nil {
		return nil, fmt.Errorf("figure %q has nothing to show", f.Title)
	}
	if f.Groups != nil {
		p.Y.Max *= 1.05
	}
	if f.LogX {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, sizeTicks{}
		widen(&p.X)
	}
	if f.LogY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, logTicks{}
		widen(&p.Y)
	}
	canvas, err := draw.NewFormattedCanvas(font.Length(6.4*72), font.Length(4.2*72), format)
	if err != nil {
		return nil, fmt.Errorf("figure %q: %w", f.Title, err)
	}
	all := draw.New(canvas)
	all.SetColor(color.White)
	all.Fill(all.Rectangle.Path())
	const perLine, column, line = 4, 1.4 * 72, 16
	below := vg.Length((len(legend)+perLine-1)/perLine)*line + vg.Points(8)
	p.Draw(draw.Crop(all, 0, -vg.Points(8), below, 0))
	for i, l := range legend {
		left, top := vg.Length(i%perLine)*column+vg.Points(48), below-vg.Points(5)-vg.Length(i/perLine)*line
		l.Draw(draw.Canvas{Canvas: all.Canvas, Rectangle: vg.Rectangle{Min: vg.Point{X: left, Y: top - line},
			Max: vg.Point{X: left + column, Y: top}}})
	}
	var b bytes.Buffer
	_, err = canvas.WriteTo(&b)
	return b.Bytes(), err
}

// curve adds a line with points and the spread. It returns nil if no point can be shown.
func (f Figure) curve(p *plot.Plot, i int, s Series) ([]plot.Thumbnailer, error) {
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
		return nil, nil
	}
	line, points, err := plotter.NewLinePoints(xy)
	if err != nil {
		return nil, err
	}
	line.Color, line.Width = plotutil.Color(i), vg.Points(1.3)
	points.Color, points.Shape, points.Radius = plotutil.Color(i), plotutil.Shape(i), vg.Points(2.6)
	eb, err := plotter.NewYErrorBars(bars)
	if err != nil {
		return nil, err
	}
	eb.Color, eb.CapWidth = plotutil.Color(i), vg.Points(3)
	p.Add(line, points, eb)
	return []plot.Thumbnailer{line, points}, nil
}

// bars adds one bar to every group.
func (f Figure) bars(p *plot.Plot, i int, s Series) ([]plot.Thumbnailer, error) {
	heights := make(plotter.Values, len(f.Groups))
	shown := false
	for _, q := range s.Points {
		if g := int(q.X); f.fits(q) && g >= 0 && g < len(heights) {
			heights[g], shown = q.Y, true
		}
	}
	if !shown {
		return nil, nil
	}
	width := vg.Points(300) / vg.Length(len(f.Groups)*(len(f.Series)+1))
	b, err := plotter.NewBarChart(heights, width)
	if err != nil {
		return nil, err
	}
	b.Color, b.LineStyle.Width = plotutil.Color(i), 0
	b.Offset = width * (vg.Length(i) - vg.Length(len(f.Series)-1)/2)
	p.Add(b)
	return []plot.Thumbnailer{b}, nil
}

func (f Figure) fits(q Point) bool {
	for _, v := range []float64{q.X, q.Y} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return (!f.LogX || q.X > 0) && (!f.LogY || q.Y > 0)
}

// widen keeps an axis with one value from beginning at or below 0.
func widen(a *plot.Axis) {
	if a.Min == a.Max {
		a.Min, a.Max = a.Min/2, a.Max*2
	}
}

type errorPoints struct {
	plotter.XYs
	plotter.YErrors
}

// sizeTicks marks powers of 2, and labels those of 4 as bytes, KiB and MiB.
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

// logTicks marks 1 to 9 of every decade and labels so many of them that a narrow axis has some
// labels, and a wide axis not too many.
type logTicks struct{}

func (logTicks) Ticks(lo, hi float64) []plot.Tick {
	labelled := map[int]bool{1: true}
	if decades := math.Log10(hi / lo); decades < 1 {
		labelled = map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true, 7: true}
	} else if decades < 3 {
		labelled = map[int]bool{1: true, 2: true, 5: true}
	}
	var t []plot.Tick
	for decade := math.Floor(math.Log10(lo)); decade <= math.Ceil(math.Log10(hi)); decade++ {
		for m := 1; m < 10; m++ {
			v := float64(m) * math.Pow(10, decade)
			if v < lo*0.999 || v > hi*1.001 {
				continue
			}
			label := ""
			if labelled[m] {
				label = fmt.Sprintf("%.*f", int(max(0, -decade)), v)
			}
			t = append(t, plot.Tick{Value: v, Label: label})
		}
	}
	return t
}

// Bytes formats a size for readers: 512, 4K, 1M.
func Bytes(v float64) string {
	switch {
	case v >= 1<<20:
		return fmt.Sprintf("%gM", v/(1<<20))
	case v >= 1<<10:
		return fmt.Sprintf("%gK", v/(1<<10))
	}
	return fmt.Sprintf("%g", v)
}
