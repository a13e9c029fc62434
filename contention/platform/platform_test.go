package platform

import (
	"math"
	"math/big"
	"os"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/contention/num"
	"github.com/leidenzipper/zipper/contention/sharing"
	"github.com/leidenzipper/zipper/contention/solve"
)

func parse(t *testing.T, s string) *Platform {
	t.Helper()
	p, err := Read(strings.NewReader(s))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mb(n int64) *big.Rat { return big.NewRat(n*1e6, 1) }

// finish returns the finish times of the messages under a sharing rule, in seconds.
func finish(t *testing.T, p *Platform, rule sharing.Rule[num.Rat], messages ...Message) []float64 {
	t.Helper()
	g, err := Build[num.Rat](p, messages)
	if err != nil {
		t.Fatal(err)
	}
	r, err := solve.Run(g.Network, g.Transfers, rule, solve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var list []float64
	for i := range messages {
		last := 0.0
		for _, k := range g.Last[i] {
			last = math.Max(last, r.Finish[k].Float64())
		}
		list = append(list, last)
	}
	return list
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 5e-6*want {
		t.Errorf("%s: %.9g s, want %.9g", what, got, want)
	}
}

// TestExamplesFromFile repeats the worked examples with a platform file.
func TestExamplesFromFile(t *testing.T) {
	maxmin := sharing.MaxMin[num.Rat]{}
	var four []Message
	for i := range 4 {
		four = append(four, Message{From: "a" + string(rune('1'+i)), To: "h" + string(rune('1'+i)), Bytes: mb(1000)})
	}
	for _, f := range finish(t, parse(t, lab), maxmin, four...) {
		near(t, "E2", f, 2)
	}
	blocking := strings.NewReplacer("a: 3500", "a: 780", "{copy: 2000 MB/s}", "{threads: 1}").Replace(lab)
	one := Message{From: "a1", To: "h1", Bytes: mb(1000)}
	near(t, "E1", finish(t, parse(t, blocking), maxmin, one)[0], 1.567766)
	back := Message{From: "h1", To: "a1", Bytes: mb(1000)}
	for _, f := range finish(t, parse(t, blocking), maxmin, one, back) {
		near(t, "E1 both ways", f, 3.135531)
	}
	oneway := strings.Replace(blocking, "threads: 1", "threads: 1, one_way: true", 1)
	for _, f := range finish(t, parse(t, oneway), maxmin, one, back) {
		near(t, "E1 one forwarder a direction", f, 1.567766)
	}
	two := strings.Replace(blocking, "threads: 1", "threads: 2", 1)
	near(t, "a second thread does not help one message", finish(t, parse(t, two), maxmin, one)[0], 1.567766)
	for _, f := range finish(t, parse(t, two), maxmin, one, back) {
		near(t, "two threads", f, 1.567766)
	}
	stored := strings.Replace(blocking, "forwarder: {threads: 1}", "relay: store-and-forward", 1)
	near(t, "E7 whole message", finish(t, parse(t, stored), maxmin, Message{From: "a1", To: "h1", Bytes: mb(64)})[0],
		.100337)
	segments := strings.Replace(blocking, "forwarder: {threads: 1}", "relay: segmented\n    segment: 16 MB", 1)
	near(t, "E7 segments", finish(t, parse(t, segments), maxmin, Message{From: "a1", To: "h1", Bytes: mb(64)})[0],
		.086623)
	second := lab + "  - {name: z2, ports: {a: 3500 MB/s, b: 3500 MB/s}, forwarder: {copy: 1000 MB/s}}\n"
	big := Message{From: "a1", To: "h1", Bytes: mb(6000)}
	near(t, "E3 equal", finish(t, parse(t, second+"rails: {policy: equal}\n"), maxmin, big)[0], 3)
	near(t, "E3 proportional", finish(t, parse(t, second+"rails: {policy: proportional}\n"), maxmin, big)[0], 2)
	near(t, "not cut", finish(t, parse(t, second+"rails: {policy: equal, min: 7GB}\n"), maxmin, big)[0], 3)
	near(t, "from the zipper", finish(t, parse(t, lab), maxmin, Message{From: "z1", To: "h1", Bytes: mb(3500)})[0], 1)
	apart := second + "  - {name: z3, ports: {a: 3500 MB/s, b: 500 MB/s}}\n"
	near(t, "zipper to zipper", finish(t, parse(t, apart), maxmin, Message{From: "z1", To: "z3", Bytes: mb(3500)})[0],
		1)
	late := strings.Replace(lab, "    forwarder:", "    handshake: 50us\n    latency: 10us\n    forwarder:", 1)
	near(t, "handshake and latency", finish(t, parse(t, late), maxmin, Message{From: "a1", To: "h1", Bytes: mb(2)})[0],
		.00106)
	// A zipper's latency from cluster to cluster replaces its own latency and the clusters'. Inside
	// a cluster nothing changes.
	timed := strings.Replace(strings.Replace(late, "    latency: 10us", "    latency: 10us\n    through: 40us", 1),
		"nic: 3500 MB/s", "nic: 3500 MB/s\n    latency: 300us", 1)
	near(t, "through", finish(t, parse(t, timed), maxmin, Message{From: "a1", To: "h1", Bytes: mb(2)})[0], .00109)
	near(t, "latency inside", finish(t, parse(t, timed), maxmin, Message{From: "a1", To: "a2", Bytes: mb(7)})[0], .0023)
}

func TestPenaltyFromFile(t *testing.T) {
	// E6 with unit messages of 1000 MB and lone rates of 1000 MB/s.
	s := strings.NewReplacer("3500", "1000", "    forwarder: {copy: 2000 MB/s}\n", "").Replace(lab)
	p := parse(t, s)
	f := finish(t, p, sharing.Penalty[num.Rat]{}, Message{From: "a1", To: "h1", Bytes: mb(1000)},
		Message{From: "a1", To: "a2", Bytes: mb(1000)},
		Message{From: "a3", To: "h2", Bytes: mb(1000)}, Message{From: "h3", To: "h2", Bytes: mb(1000)})
	for i, want := range []float64{17. / 6, 17. / 6, 2.5, 1.5} {
		near(t, "E6", f[i], want)
	}
}

func TestTwoCrossings(t *testing.T) {
	s := lab + `  - {name: z2, ports: {b: 3500 MB/s, c: 500 MB/s}, relay: store-and-forward}
`
	s = strings.Replace(s, "zippers:", "  - {name: c, nic: 1000 MB/s}\nzippers:", 1)
	p := parse(t, s)
	// a1 > z1 > z2 at 2000 MB/s, then z2 > c1 at 500 MB/s.
	near(t, "two zippers", finish(t, p, sharing.MaxMin[num.Rat]{}, Message{From: "a1", To: "c1", Bytes: mb(1000)})[0],
		.5+2)
	p = parse(t, s+"routes:\n  - {from: a, to: c, via: [z1, z2]}\n")
	near(t, "explicit route, backwards", finish(t, p, sharing.MaxMin[num.Rat]{},
		Message{From: "c1", To: "a1", Bytes: mb(1000)})[0], 2+.5)
}

func TestBadPlatforms(t *testing.T) {
	for _, x := range []struct{ old, new, want string }{
		{"name: lab", "nam: lab", `line 2: unknown field "nam"`},
		{"copy: 2000 MB/s", "copi: 2000 MB/s", `line 19: unknown field "copi"`},
		{"nic: 3500 MB/s", "nic: 0 MB/s", "line 7: capacity 0 MB/s: must be more than 0"},
		{"nic: 3500 MB/s", "nic: -5 MB/s", "line 7"},
		{"nic: 3500 MB/s", "nic: .nan", "line 7"},
		{"nic: 3500 MB/s", "speed: 1", "line 4: cluster a: nic is missing"},
		{"      a: 3500 MB/s", "      q: 3500 MB/s", `line 14: zipper z1: port to unknown cluster "q"`},
		{"      a: 3500 MB/s\n", "", "joins at least two clusters"},
		{"name: b", "name: a", "line 8: cluster \"a\""},
		{"[h1, h2, h3, h4]", "[h1, h1]", "named twice"},
		{"[h1, h2, h3, h4]", "[1, 2]", "a number is a rank"},
		{"hosts: 4", "hosts: 100000000", "line 5: hosts"},
		{"name: lab", "name: lab\nsharing: fair", `line 3: sharing "fair": use max-min, streams, buffered, zhu`},
		{"name: lab", "name: lab\nrails: {policy: none}", `line 3: rails: policy "none"`},
		{"{copy: 2000 MB/s}", "{copy: 2000 MB/s, threads: 1}", "not both"},
		{"cores: 2", "cores: -1", "must not be negative"},
	} {
		_, err := Read(strings.NewReader(strings.Replace(lab, x.old, x.new, 1)))
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q: error %v, want one with %q", x.new, err, x.want)
		}
	}
	for _, s := range []string{"", "x", "- 1", "{", "clusters: []"} {
		if _, err := Read(strings.NewReader(s)); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
	third := strings.Replace(lab, "zippers:", "  - {name: c, nic: 1000 MB/s}\nzippers:", 1) +
		"  - {name: z2, ports: {b: 1 GB/s, c: 1 GB/s}}\n  - {name: z3, ports: {c: 1 GB/s, a: 1 GB/s}}\nroutes:\n"
	for route, want := range map[string]string{
		"{from: a, to: b, via: [z1, z2, z3, z1]}": "line 24: route from a to b: the route has a cycle",
		"{from: a, to: c, via: [z1, z9]}":         `unknown zipper "z9"`,
		"{from: a, to: c, via: [z2]}":             "zipper z2 has no port to cluster a",
		"{from: a, to: a, via: [z2]}":             "two different clusters",
		"{from: a, to: c, via: [z1, z2, z2]}":     "cycle",
	} {
		if _, err := Read(strings.NewReader(third + "  - " + route + "\n")); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", route, err, want)
		}
	}
}

func TestBadMessages(t *testing.T) {
	apart := parse(t, strings.Replace(lab, "zippers:", "  - {name: c, nic: 1000 MB/s}\nzippers:", 1))
	for want, m := range map[string]Message{
		"line 7: unknown host \"x\"":            {From: "x", To: "h1", Bytes: mb(1), Line: 7},
		"line 8: message from a1 to itself":     {From: "a1", To: "a1", Bytes: mb(1), Line: 8},
		"no zipper leads from cluster a to":     {From: "a1", To: "c1", Bytes: mb(1)},
		"has no size":                           {From: "a1", To: "h1"},
		"zipper z1 has no port to cluster c":    {From: "z1", To: "c1", Bytes: mb(1)},
		"waits for message number 5: there are": {From: "a1", To: "h1", Bytes: mb(1), After: []int{5}},
	} {
		if _, err := Build[num.Float](apart, []Message{m}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(lab)
	f.Add(lab + "routes:\n  - {from: a, to: b, via: [z1]}\nrails: {policy: equal}\n")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := Read(strings.NewReader(s))
		if err != nil {
			return
		}
		// A platform that Read accepts must build and run, or give an error.
		places := p.Places()
		g, err := Build[num.Float](p, []Message{{From: places[0], To: places[len(places)-1], Bytes: mb(1)}})
		if err != nil {
			return
		}
		r, err := solve.Run(g.Network, g.Transfers, sharing.MaxMin[num.Float]{}, solve.Options{})
		if err != nil {
			t.Fatalf("%v\n%s", err, s)
		}
		if !num.Finite(r.Makespan) || r.Makespan.Sign() <= 0 {
			t.Fatalf("makespan %v\n%s", r.Makespan, s)
		}
	})
}

// TestDocumentedExample checks that the platform file named in the documentation is valid.
func TestDocumentedExample(t *testing.T) {
	example, err := os.ReadFile("../../examples/contention/platform.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := parse(t, string(example))
	if len(p.Clusters) != 2 || len(p.Zippers) != 1 || len(p.Routes) != 1 || p.Clusters[0].Backbone == nil {
		t.Errorf("%+v", p)
	}
}

// TestEager checks that only messages longer than eager wait for the handshake.
func TestEager(t *testing.T) {
	eager := parse(t, strings.Replace(lab, "    forwarder:",
		"    eager: 64KiB\n    handshake: 50us\n    latency: 10us\n    forwarder:", 1))
	for bytes, want := range map[int64]float64{65536: .00001 + 65536./2e9, 65537: .00006 + 65537./2e9} {
		near(t, "eager", finish(t, eager, sharing.MaxMin[num.Rat]{},
			Message{From: "a1", To: "h1", Bytes: big.NewRat(bytes, 1)})[0], want)
	}
}
