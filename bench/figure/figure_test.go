package figure

import (
	"bytes"
	"image/png"
	"math"
	"strings"
	"testing"
)

func sample() Figure {
	f := Figure{Title: "latency", X: "size (B)", Y: "time (us)", LogX: true, LogY: true}
	for i, n := range []string{"zipped", "routed"} {
		s := Series{Name: n}
		for x := 1.0; x <= 1<<20; x *= 4 {
			y := float64(i+1)*10 + x/1000
			s.Points = append(s.Points, Point{x, y, y * 0.9, y * 1.1})
		}
		f.Series = append(f.Series, s)
	}
	return f
}

func TestDraw(t *testing.T) {
	svg, err := sample().Draw("svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", "zipped", "routed", "4K", "1M", "latency"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("the SVG has no %q", want)
		}
	}
	b, err := sample().Draw("png")
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if s := img.Bounds().Size(); s.X < 400 || s.Y < 300 {
		t.Errorf("the picture is %v", s)
	}
}

func TestDrawOmitsOddValues(t *testing.T) {
	f := Figure{Title: "odd", LogX: true, LogY: true, Series: []Series{{"s",
		[]Point{{0, 1, 1, 1}, {1, -1, -1, -1}, {2, math.NaN(), 0, 0}, {4, 3, 0, math.Inf(1)}, {8, 3, -5, 4}}}}}
	f.Series[0].Points[3].Hi = 4
	if _, err := f.Draw("svg"); err != nil {
		t.Error(err)
	}
	f.Series[0].Points = f.Series[0].Points[:3]
	if _, err := f.Draw("svg"); err == nil || !strings.Contains(err.Error(), "nothing to show") {
		t.Errorf("a figure without points: %v", err)
	}
	if _, err := sample().Draw("gif87"); err == nil {
		t.Error("an unknown format was accepted")
	}
}

// TestAxisOfOneValueIsPositive checks that the axis does not begin at 0, which has no logarithm, if
// there is one value, or all values are equal.
func TestAxisOfOneValueIsPositive(t *testing.T) {
	for _, y := range []float64{0.3, 1, 5e4} {
		f := Figure{Title: "one", LogX: true, LogY: true, Series: []Series{{"a", []Point{{1, y, y, y}}},
			{"b", []Point{{1, y, y, y}}}}}
		if _, err := f.Draw("svg"); err != nil {
			t.Errorf("%v: %v", y, err)
		}
	}
}

func TestDrawBars(t *testing.T) {
	f := Figure{Title: "kernels", Y: "time", Groups: []string{"cg", "ep"},
		Series: []Series{{"zipped", []Point{{0, 1.5, 1, 2}, {1, 1.1, 1, 1}}}, {"native", []Point{{0, 1, 1, 1}}}}}
	svg, err := f.Draw("svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"cg", "ep", "zipped", "native"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("the SVG has no %q", want)
		}
	}
}

// TestAxisHasSomeLabels checks that an axis of less than a decade has labels, and a wide one only
// the powers of ten.
func TestAxisHasSomeLabels(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		want   string
	}{{220, 480, "300 400"}, {0.4, 6, "0.5 1 2 5"}, {0.01, 2000, "0.01 0.1 1 10 100 1000"}} {
		var got []string
		for _, tick := range (logTicks{}).Ticks(c.lo, c.hi) {
			if tick.Label != "" {
				got = append(got, tick.Label)
			}
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%v to %v: %s, want %s", c.lo, c.hi, s, c.want)
		}
	}
}
