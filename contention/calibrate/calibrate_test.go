package calibrate

import (
	"bytes"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/contention/num"
	"github.com/leidenzipper/zipper/contention/platform"
	"github.com/leidenzipper/zipper/contention/sharing"
	"github.com/leidenzipper/zipper/contention/solve"
)

// measure runs messages on a true platform and returns their rates, three times with a spread of
// one percent.
func measure(t *testing.T, p *platform.Platform, pairs ...string) (rates [][]float64) {
	t.Helper()
	var ms []platform.Message
	for _, pair := range pairs {
		from, to, _ := strings.Cut(pair, ">")
		ms = append(ms, platform.Message{From: from, To: to, Bytes: num.Int[num.Rat](1e9).Rat()})
	}
	g, err := platform.Build[num.Float](p, ms)
	if err != nil {
		t.Fatal(err)
	}
	r, err := solve.Run(g.Network, g.Transfers, sharing.Zhu[num.Float]{}, solve.Options{Record: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range ms {
		x := float64(r.Steps[0].Rate[i])
		rates = append(rates, []float64{.99 * x, x, 1.01 * x})
	}
	return rates
}

func sum(rates [][]float64) []float64 {
	total := make([]float64, 3)
	for _, r := range rates {
		for i := range r {
			total[i] += r[i]
		}
	}
	return total
}

// TestFitRecoversThePlatform checks that a platform which is measured on itself comes out of the
// fit.
func TestFitRecoversThePlatform(t *testing.T) {
	for name, x := range map[string]struct{ forwarder, want string }{
		"blocking":      {"{threads: 1}", "{threads: 1, one_way: false}"},
		"one a way":     {"{threads: 1, one_way: true}", "{threads: 1, one_way: true}"},
		"copy":          {"{copy: 30 MB/s}", "{copy: 30000000, half: false}"},
		"half duplex":   {"{copy: 70 MB/s, half: true}", "{copy: 70000000, half: true}"},
		"fast as ports": {"{copy: 900 MB/s}", "# forwarder: as fast as its ports"},
	} {
		truth := `
clusters:
  - {name: a, hosts: 4, nic: {in: 100 MB/s, out: 100 MB/s, asymmetric: true}}
  - {name: b, hosts: 4, nic: 100 MB/s}
zippers:
  - {name: z, ports: {a: 100 MB/s, b: 90 MB/s}, forwarder: ` + x.forwarder + "}\n"
		p, err := platform.Read(strings.NewReader(truth))
		if err != nil {
			t.Fatal(err)
		}
		one := func(pair string) []float64 { return measure(t, p, pair)[0] }
		many := []string{"a1>b1", "a2>b2", "a3>b3"}
		back := []string{"b1>a1", "b2>a2", "b3>a3"}
		s := Samples{Clusters: []Cluster{
			{Name: "a", Hosts: []string{"a1", "a2", "a3", "a4"}, Lone: one("a1>a2"), OutAlone: one("a1>a2"),
				OutBusy: measure(t, p, "a1>a2", "a3>a1", "a4>a1")[0], Latency: []float64{1e-5, 1.1e-5}},
			{Name: "b", Hosts: []string{"b1", "b2", "b3", "b4"}, Lone: one("b1>b2"), OutAlone: one("b1>b2"),
				OutBusy: measure(t, p, "b1>b2", "b3>b1", "b4>b1")[0]},
		}, Zippers: []Zipper{{Name: "z", Handshake: []float64{1e-3, 1.1e-3, 0.9e-3},
			Through: []float64{5e-4, 6e-4, 4e-4}, Eager: 65536, Socket: 131072,
			In:     map[string][]float64{"a": one("a1>z"), "b": one("b1>z")},
			Out:    map[string][]float64{"a": one("z>a1"), "b": one("z>b1")},
			Single: map[string][]float64{"a>b": one("a1>b1"), "b>a": one("b1>a1")},
			Both: map[string][]float64{"a>b": measure(t, p, "a1>b1", "b2>a2")[0],
				"b>a": measure(t, p, "b1>a1", "a2>b2")[0]},
			Many: map[string][]float64{"a>b": sum(measure(t, p, many...)), "b>a": sum(measure(t, p, back...))}}}}
		var file bytes.Buffer
		got, err := Write(&file, s)
		if err != nil {
			t.Fatal(name, err)
		}
		for _, want := range []string{x.want, `nic: {in: 100000000, out: 100000000, asymmetric: true} # bytes/s ±`,
			"sharing: zhu", `"b": {in: 90000000, out: 90000000}`} {
			if !strings.Contains(file.String(), want) {
				t.Errorf("%s: no %q in\n%s", name, want, file.String())
			}
		}
		if z := got.Zippers[0]; z.Eager.RatString() != "65536" || z.Socket.RatString() != "131072" ||
			z.Handshake.RatString() != "1/1000" || z.Through.RatString() != "1/2000" {
			t.Errorf("%s: eager %v, socket %v, handshake %v, through %v", name, z.Eager, z.Socket, z.Handshake,
				z.Through)
		}
		if !got.Clusters[0].NIC.Asymmetric || got.Clusters[1].NIC.Asymmetric {
			t.Errorf("%s: asymmetric %v %v", name, got.Clusters[0].NIC.Asymmetric, got.Clusters[1].NIC.Asymmetric)
		}
	}
}

func TestMissingMeasurements(t *testing.T) {
	for want, s := range map[string]Samples{
		"no clusters":             {},
		"cluster a: lone message": {Clusters: []Cluster{{Name: "a", Hosts: []string{"x"}}}},
		"-1 is not above 0": {Clusters: []Cluster{{Name: "a", Hosts: []string{"x"},
			Lone: []float64{-1}}}},
		"zipper z: out of the zipper to a": {Clusters: []Cluster{{Name: "a", Hosts: []string{"x"}, Lone: []float64{1}}},
			Zippers: []Zipper{{Name: "z", In: map[string][]float64{"a": {1}}}}},
		"not valid": {Clusters: []Cluster{{Name: "a", Hosts: []string{"x", "x"},
			Lone: []float64{1}}}},
	} {
		if _, err := Write(new(bytes.Buffer), s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// TestSegments checks that a forwarder is not taken for slow because the last piece of a message
// crosses the second link after all others, however short the messages are.
func TestSegments(t *testing.T) {
	for rate, want := range map[float64]string{ // rates in MB/s of 500 kB over ports of 6.3 MB/s
		5.1: "# forwarder: as fast as its ports",
		3.9: "forwarder: {copy: 4922362, half: false}",
	} {
		rates := func(x float64) map[string][]float64 {
			return map[string][]float64{"a": {6.3e6, 6.3e6}, "b": {6.3e6, 6.3e6}, "a>b": {1e6 * x, 1e6 * x}}
		}
		z := Zipper{Name: "z", In: rates(rate), Out: rates(rate), Single: rates(rate), Many: rates(rate), Bytes: 500_000,
			Segment: 128 << 10}
		var file bytes.Buffer
		if err := z.forwarder(&file, []string{"a", "b"}, map[string]float64{"a": 6.3e6, "b": 6.3e6},
			map[string]float64{"a": 6.3e6, "b": 6.3e6}); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(file.String()); !strings.HasPrefix(got, want) {
			t.Errorf("%.1f MB/s: %s, want %s", rate, got, want)
		}
	}
}
