package predict

import (
	"cmp"
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// maxRows is the largest number of messages and resources that a picture shows: the longest and the
// busiest.
const maxRows = 60

// Picture draws a timeline of the messages, coloured by their limits, above the utilisation of the
// resources. format is "svg" or "png".
func (r *Report) Picture(w io.Writer, format string) error {
	timeline, messages := r.timeline()
	bars, resources, err := r.bars()
	if err != nil {
		return err
	}
	const margin = vg.Centimeter / 2
	width := 24 * vg.Centimeter
	upper := vg.Length(3+.45*float64(messages)) * vg.Centimeter
	lower := vg.Length(2+.45*float64(resources)) * vg.Centimeter
	var canvas interface {
		vg.CanvasSizer
		io.WriterTo
	}
	switch format {
	case "svg":
		canvas = vgsvg.New(width, upper+lower)
	case "png":
		canvas = vgimg.PngCanvas{Canvas: vgimg.New(width, upper+lower)}
	default:
		return fmt.Errorf("picture format %q: use svg or png", format)
	}
	whole := draw.New(canvas)
	timeline.Draw(draw.Crop(whole, margin, -vg.Centimeter, lower, 0))
	bars.Draw(draw.Crop(whole, margin, -vg.Centimeter, 0, -upper))
	_, err = canvas.WriteTo(w)
	return err
}

// rows draws horizontal bars between two times, as a part of a plot.
type rows struct {
	spans []row // bars
}

type row struct {
	y        int         // number of the row from below
	from, to float64     // times in seconds
	fill     color.Color // colour of the bar
}

func (b rows) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, s := range b.spans {
		c.FillPolygon(s.fill, []vg.Point{{X: x(s.from), Y: y(float64(s.y) - .35)},
			{X: x(s.to), Y: y(float64(s.y) - .35)},
			{X: x(s.to), Y: y(float64(s.y) + .35)}, {X: x(s.from), Y: y(float64(s.y) + .35)}})
	}
}

// palette returns colours that most people can tell apart (Okabe and Ito).
func palette() []color.Color {
	return []color.Color{color.RGBA{230, 159, 0, 255}, color.RGBA{86, 180, 233, 255}, color.RGBA{0, 158, 115, 255},
		color.RGBA{0, 114, 178, 255},
		color.RGBA{213, 94, 0, 255}, color.RGBA{204, 121, 167, 255}, color.RGBA{240, 228, 66, 255}}
}

func (r *Report) timeline() (*plot.Plot, int) {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%s, rule %s: %.4g s, bottleneck %s", r.Platform, r.Rule, r.Makespan, r.Bottleneck)
	p.X.Label.Text = "seconds"
	list := slices.Clone(r.Messages)
	if pairs := r.pairs(); len(list) > maxRows && len(pairs) <= maxRows {
		return r.byPair(p, pairs)
	}
	if len(list) > maxRows {
		slices.SortStableFunc(list, func(a, b Message) int { return cmp.Compare(b.Finish-b.Start, a.Finish-a.Start) })
		list = list[:maxRows]
		p.Title.Text += fmt.Sprintf(" (the %d longest of %d messages)", maxRows, len(r.Messages))
	}
	slices.SortStableFunc(list, func(a, b Message) int { return cmp.Compare(b.Start, a.Start) })
	var bars rows
	fill := fills(p)
	var labels []plot.Tick
	for y, m := range list {
		labels = append(labels, plot.Tick{Value: float64(y), Label: m.Name})
		// Waiting and latency.
		bars.spans = append(bars.spans, row{y, m.Start, m.Finish, color.Gray{215}})
		if len(m.Rates) == 0 && len(m.Limits) > 0 {
			bars.spans = append(bars.spans, row{y, m.Start, m.Finish, fill(m.Limits[0].Resource)})
		}
		for _, s := range m.Rates {
			bars.spans = append(bars.spans, row{y, s.From, s.To, fill(s.Limit)})
		}
	}
	return r.finish(p, bars, labels)
}

func (r *Report) finish(p *plot.Plot, bars rows, labels []plot.Tick) (*plot.Plot, int) {
	p.Add(bars)
	p.Y.Tick.Marker = plot.ConstantTicks(labels)
	p.Y.Min, p.Y.Max = -1, float64(len(labels))
	p.X.Min, p.X.Max = 0, 1.25*math.Max(r.Makespan, 1e-9) // with room for the legend
	p.Legend.Top = true
	return p, len(labels)
}

// fills returns a function from the name of the resource that limits a message to a colour. The
// function adds each resource to the legend of plot p once, until all colours of the palette are
// used; further resources are grey and not in the legend.
func fills(p *plot.Plot) func(limit string) color.Color {
	colours := make(map[string]color.Color)
	return func(limit string) color.Color {
		c, ok := colours[limit]
		if !ok {
			c = color.Gray{170} // more limits than there are colours
			if k := len(colours); k < len(palette()) {
				c = palette()[k]
				p.Legend.Add(limit, swatch{c})
			}
			colours[limit] = c
		}
		return c
	}
}

// pairs returns each pair of sender and receiver of the messages once, sorted by name.
func (r *Report) pairs() (list [][2]string) {
	seen := make(map[[2]string]bool)
	for _, m := range r.Messages {
		if pair := [2]string{m.From, m.To}; !seen[pair] {
			seen[pair] = true
			list = append(list, pair)
		}
	}
	slices.SortFunc(list, func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	return list
}

// grains is the resolution of a row in a picture of many messages, in parts of its length.
const grains = 2000

// byPair draws the messages of each of pairs, a sender and a receiver, in one row of plot p, and
// returns the plot and its number of rows. The largest limit of a message determines the colour of
// its bar. Adjacent bars of one colour are merged if their distance is too small to be seen.
func (r *Report) byPair(p *plot.Plot, pairs [][2]string) (*plot.Plot, int) {
	p.Title.Text += fmt.Sprintf(" (%d messages)", len(r.Messages))
	fill, least := fills(p), r.Makespan/grains
	list := slices.Clone(r.Messages)
	slices.SortStableFunc(list, func(a, b Message) int { return cmp.Compare(a.Start, b.Start) })
	var bars rows
	var labels []plot.Tick
	for y, pair := range slices.Backward(pairs) {
		y = len(pairs) - 1 - y
		labels = append(labels, plot.Tick{Value: float64(y), Label: pair[0] + " > " + pair[1]})
		now := row{y: -1}
		for _, m := range list {
			if m.From != pair[0] || m.To != pair[1] {
				continue
			}
			c := color.Color(color.Gray{170})
			if len(m.Limits) > 0 {
				c = fill(m.Limits[0].Resource)
			}
			to := math.Max(m.Finish, m.Start+least/2)
			if now.y == y && now.fill == c && m.Start <= now.to+least {
				now.to = math.Max(now.to, to)
				continue
			}
			if now.y == y {
				bars.spans = append(bars.spans, now)
			}
			now = row{y, m.Start, to, c}
		}
		bars.spans = append(bars.spans, now)
	}
	return r.finish(p, bars, labels)
}

type swatch struct{ fill color.Color }

func (s swatch) Thumbnail(c *draw.Canvas) {
	c.FillPolygon(s.fill, []vg.Point{c.Min, {X: c.Max.X, Y: c.Min.Y}, c.Max, {X: c.Min.X, Y: c.Max.Y}})
}

func (r *Report) bars() (*plot.Plot, int, error) {
	p := plot.New()
	p.X.Label.Text = "mean utilisation, %"
	list := slices.Clone(r.Resources)
	slices.SortStableFunc(list, func(a, b Resource) int { return cmp.Compare(b.Utilisation, a.Utilisation) })
	list = list[:min(len(list), maxRows)]
	slices.Reverse(list)
	if len(list) == 0 {
		return nil, 0, errors.New("no resources to draw")
	}
	var values plotter.Values
	var labels []plot.Tick
	for i, x := range list {
		values = append(values, 100*x.Utilisation)
		labels = append(labels, plot.Tick{Value: float64(i), Label: x.Name})
	}
	b, err := plotter.NewBarChart(values, .3*vg.Centimeter)
	if err != nil {
		return nil, 0, err
	}
	b.Horizontal = true
	b.Color = palette()[3]
	b.LineStyle.Width = 0
	p.Add(b)
	p.Y.Tick.Marker = plot.ConstantTicks(labels)
	p.Y.Min, p.Y.Max = -1, float64(len(list))
	p.X.Min, p.X.Max = 0, math.Max(100, p.X.Max)
	return p, len(list), nil
}
