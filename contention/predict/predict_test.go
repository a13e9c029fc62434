package predict

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"image/png"
	"io"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/contention/pattern"
	"github.com/leidenzipper/zipper/contention/platform"
)

const lab = `
name: lab
clusters:
  - {name: a, hosts: 4, nic: 1000 MB/s}
  - {name: b, hosts: 4, nic: 1000 MB/s}
zippers:
  - name: z
    ports: {a: 3500 MB/s, b: 3500 MB/s}
    forwarder: {copy: 1200 MB/s}
`

func read(t *testing.T, s string) *platform.Platform {
	t.Helper()
	p, err := platform.Read(strings.NewReader(s))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-5*math.Abs(want) {
		t.Errorf("%s = %.8g, want %.8g", what, got, want)
	}
}

// e4 predicts the worked example of local and crossing messages.
func e4(t *testing.T, o Options) *Report {
	t.Helper()
	p := read(t, lab)
	ms, err := pattern.Read(strings.NewReader("a1 b1 1000MB name=f1\na1 a2 500MB name=f2\na3 b2 2000MB name=f3\n"),
		p.Places())
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(p, ms, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWorkedExample(t *testing.T) {
	r := e4(t, Options{Gains: true, Rates: true})
	if !r.Exact || r.Rule != "max-min" || r.Bottleneck != "z.cpu.a>b" {
		t.Errorf("exact %v, rule %s, bottleneck %s", r.Exact, r.Rule, r.Bottleneck)
	}
	near(t, "makespan", r.Makespan, 2.633333)
	near(t, "gain", r.Gains[0].Makespan, .240506)
	f1 := r.Messages[0]
	near(t, "f1", f1.Finish, 1.833333)
	if f1.Limits[0].Resource != "a1.out" || len(f1.Rates) != 2 {
		t.Errorf("f1: %+v", f1)
	}
	near(t, "f1 share", f1.Limits[0].Share, .545455)
	near(t, "f1 first rate", f1.Rates[0].Rate, 500e6)
	near(t, "f1 second rate", f1.Rates[1].Rate, 600e6)
	for _, x := range r.Resources {
		if x.Name == "z.cpu.a>b" {
			near(t, "utilisation", x.Utilisation, 3000./1200/2.633333)
		}
	}
	fast := e4(t, Options{Grain: 1e-4})
	if fast.Exact {
		t.Error("a run with a grain is not exact")
	}
	if math.Abs(fast.Makespan-r.Makespan) > 1e-3*r.Makespan {
		t.Errorf("floats: %v, exact %v", fast.Makespan, r.Makespan)
	}
}

// TestCriticalSet checks two separate bottlenecks of equal size, where only doubling both helps.
func TestCriticalSet(t *testing.T) {
	p := read(t, lab)
	ms, err := pattern.Read(strings.NewReader("a1 a2 500MB\na1 a3 500MB\nb1 b2 500MB\nb1 b3 500MB\n"), p.Places())
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(p, ms, Options{Gains: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Gains) != 1 || r.Bottleneck != "a1.out with b1.out" {
		t.Fatalf("gains %+v, bottleneck %s", r.Gains, r.Bottleneck)
	}
	near(t, "gain of both", r.Gains[0].Makespan, .5)
}

func TestRules(t *testing.T) {
	for _, rule := range []string{"max-min", "zhu", "zhu-paper", "penalty"} {
		if r := e4(t, Options{Sharing: rule}); r.Rule != rule || r.Makespan <= 0 {
			t.Errorf("%s: %s %v", rule, r.Rule, r.Makespan)
		}
	}
	p := read(t, lab)
	ms, _ := pattern.Generate("ring", p.Places())
	if _, err := Run(p, ms, Options{Sharing: "guess"}); err == nil {
		t.Error("an unknown rule was accepted")
	}
	if _, err := Run(p, nil, Options{}); err == nil {
		t.Error("no messages were accepted")
	}
}

func TestStripesArePlannedAgain(t *testing.T) {
	p := read(t, strings.NewReplacer("1000 MB/s", "3500 MB/s", "1200", "2000").Replace(lab)+
		"  - {name: y, ports: {a: 3500 MB/s, b: 3500 MB/s}, forwarder: {copy: 1000 MB/s}}\nrails: {policy: proportional}\n")
	r, err := Run(p, []platform.Message{{Name: "m", From: "a1", To: "b1", Bytes: big.NewRat(6e9, 1)}},
		Options{Gains: true, Rates: true})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "makespan", r.Makespan, 2)
	if len(r.Messages[0].Rates) != 1 {
		t.Fatalf("%+v", r.Messages[0])
	}
	near(t, "rate of both stripes", r.Messages[0].Rates[0].Rate, 3e9)
	for _, g := range r.Gains {
		if len(g.Resources) == 1 {
			near(t, "gain of "+g.Resources[0], g.Makespan, 1./7)
		}
	}
	if len(r.Gains) < 2 {
		t.Errorf("gains %+v", r.Gains)
	}
}

func TestOutputs(t *testing.T) {
	r := e4(t, Options{Gains: true, Rates: true, Sharing: "penalty"})
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(b, &back); err != nil || back.Makespan != r.Makespan || len(back.Messages) != 3 {
		t.Errorf("JSON: %v %+v", err, back)
	}
	var table bytes.Buffer
	if err := e4(t, Options{Gains: true}).Table(&table, 2); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"bottleneck z.cpu.a>b", "f1 ", "a1.out 55 %", "... and 1 more", "... and 6 more",
		"would save", "24.1 %"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("table without %q:\n%s", want, table.String())
		}
	}
	var svg, image bytes.Buffer
	if err := r.Picture(&svg, "svg"); err != nil {
		t.Fatal(err)
	}
	texts := ""
	for d := xml.NewDecoder(&svg); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := token.(xml.CharData); ok {
			texts += string(s)
		}
	}
	for _, want := range []string{"f1", "f3", "z.cpu.a&gt;b", "seconds"} {
		if !strings.Contains(texts, strings.ReplaceAll(want, "&gt;", ">")) {
			t.Errorf("the picture does not show %q", want)
		}
	}
	if err := r.Picture(&image, "png"); err != nil {
		t.Fatal(err)
	}
	if img, err := png.Decode(&image); err != nil || img.Bounds().Dx() < 500 {
		t.Errorf("PNG: %v", err)
	}
	if err := r.Picture(io.Discard, "gif"); err == nil {
		t.Error("gif was accepted")
	}
}
