package contend

import (
	"bytes"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// Histogram draws the number of transfers by error, a line for each rule, as "svg", "png" or "pdf".
func Histogram(title string, list []Outcome, format string) ([]byte, error) {
	p := plot.New()
	p.Title.Text = title
	p.X.Label.Text, p.Y.Label.Text = "error of the predicted time, %", "transfers"
	p.BackgroundColor = color.White
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	for k, rule := range predicted(list) {
		bins := make(plotter.XYs, histogramBins)
		for i := range bins {
			bins[i].X = (float64(i-histogramBins/2) + 0.5) * 5
		}
		for i := range list {
			for j := range list[i].Transfers {
				if _, ok := list[i].Transfers[j].Predicted[rule]; !ok || list[i].Failed[rule] != "" {
					continue
				}
				at := int(math.Floor(list[i].Transfers[j].Error(rule)/0.05)) + histogramBins/2
				bins[min(max(at, 0), histogramBins-1)].Y++
			}
		}
		line, err := plotter.NewLine(bins)
		if err != nil {
			return nil, fmt.Errorf("histogram of %s: %w", rule, err)
		}
		line.StepStyle = plotter.MidStep
		line.Color, line.Width, line.Dashes = plotutil.Color(k), vg.Points(1.5), plotutil.Dashes(k)
		p.Add(line)
		p.Legend.Add(rule, line)
	}
	w, err := p.WriterTo(16*vg.Centimeter, 10*vg.Centimeter, format)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
