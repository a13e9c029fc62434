package contention_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/contention/num"
	"github.com/leidenzipper/zipper/contention/sharing"
	"github.com/leidenzipper/zipper/contention/solve"
)

type zipperVector struct {
	Name  string
	Steps []struct {
		T0, T1   json.Number
		T        string
		Rate     map[string]float64
		Tpb      map[string]string
		Limiting map[string][]string
	}
	Finish    map[string]json.RawMessage    // a number or "n/d"
	Gains     map[string]map[string]float64 `json:"gain_if_doubled"`
	Gain      map[string]map[string]float64
	TimeShare map[string]map[string]float64 `json:"time_share"`
	RhoEff    map[string]float64            `json:"rho_eff"`
	RhoSeg    map[string][]string           `json:"rho_seg"`
	Pipelined map[string]float64
	Blocking  map[string]float64
	Maxmin    map[string]float64
	MaxminLim map[string][]string `json:"maxmin_lim"`
	Zhu       map[string]float64
	ZhuWhy    map[string][2]json.RawMessage `json:"zhu_why"`
}

func zipperVectors(t *testing.T) map[string]zipperVector {
	t.Helper()
	list := load(t).Zipper
	if len(list) != 16 {
		t.Fatalf("%d vectors, want 16", len(list))
	}
	m := map[string]zipperVector{}
	for _, raw := range list {
		var v zipperVector
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		m[v.Name] = v
	}
	return m
}

// world builds a network from short descriptions.
type world struct {
	t         *testing.T
	resources []sharing.Resource[rat]
	flows     []sharing.Flow[rat]
	transfers []solve.Transfer[rat]
}

func (w *world) find(name string) int {
	i := slices.IndexFunc(w.resources, func(r sharing.Resource[rat]) bool { return r.Name == name })
	if i < 0 {
		w.t.Fatalf("no resource %s", name)
	}
	return i
}

func (w *world) resource(kind sharing.Kind, capacity int64, names ...string) {
	for _, n := range names {
		w.resources = append(w.resources, sharing.Resource[rat]{Name: n, Kind: kind, Capacity: num.Int[rat](capacity),
			Twin: -1})
	}
}

// twins makes two resources each other's reverse direction.
func (w *world) twins(a, b string) {
	i, j := w.find(a), w.find(b)
	w.resources[i].Twin, w.resources[j].Twin = j, i
	w.resources[i].Asymmetric, w.resources[j].Asymmetric = true, true
}

// flow adds a transfer; "fwd/netL+netH" uses fwd with weight 1/netL + 1/netH.
func (w *world) flow(name string, bytes int64, path ...string) {
	f := sharing.Flow[rat]{Name: name}
	for _, p := range path {
		r, per, derived := strings.Cut(p, "/")
		u := sharing.Use[rat]{Resource: w.find(r)}
		if derived {
			for _, q := range strings.Split(per, "+") {
				u.Per = append(u.Per, w.find(q))
			}
		} else {
			u.Weight = num.Int[rat](1)
		}
		f.Uses = append(f.Uses, u)
	}
	w.transfers = append(w.transfers, solve.Transfer[rat]{Name: name, Flow: len(w.flows), Bytes: num.Int[rat](bytes)})
	w.flows = append(w.flows, f)
}

func (w *world) network() *sharing.Network[rat] {
	n, err := sharing.New(w.resources, w.flows)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *world) names(limits []sharing.Limit) (names []string) {
	for _, l := range limits {
		names = append(names, w.resources[l.Resource].Name)
	}
	slices.Sort(names)
	return names
}

// check compares a max-min run with a vector: steps, finishes, gains, shares.
func (w *world) check(v zipperVector) {
	t := w.t
	n := w.network()
	r := run(t, n, w.transfers, sharing.MaxMin[rat]{})
	if len(r.Steps) != len(v.Steps) {
		t.Fatalf("%d steps, want %d", len(r.Steps), len(v.Steps))
	}
	for s, want := range v.Steps {
		from, _ := want.T0.Float64()
		to, _ := want.T1.Float64()
		wantRounded(t, "step start", r.Steps[s].From.Float64(), from)
		wantRounded(t, "step end", r.Steps[s].To.Float64(), to)
		if len(r.Steps[s].Active) != len(want.Rate) {
			t.Errorf("step %d: %d active, want %d", s, len(r.Steps[s].Active), len(want.Rate))
		}
		for j, i := range r.Steps[s].Active {
			name := w.flows[i].Name
			wantRounded(t, "rate of "+name, r.Steps[s].Rate[j].Float64(), want.Rate[name])
			lim := slices.Sorted(slices.Values(want.Limiting[name]))
			if got := w.names(r.Steps[s].Limits[j]); !slices.Equal(got, lim) {
				t.Errorf("step %d: %s limited by %v, want %v", s, name, got, lim)
			}
		}
	}
	for i, f := range w.flows {
		var want float64
		if err := json.Unmarshal(v.Finish[f.Name], &want); err != nil {
			t.Fatal(err)
		}
		wantRounded(t, "finish of "+f.Name, r.Finish[i].Float64(), want)
		var sum rat
		for _, s := range r.Limited[i] {
			sum = sum.Add(s.Time)
			wantRounded(t, "share of "+f.Name, s.Time.Div(r.Finish[i]).Float64(),
				v.TimeShare[f.Name][w.resources[s.Limit.Resource].Name])
		}
		if sum.Cmp(r.Finish[i]) != 0 || len(r.Limited[i]) != len(v.TimeShare[f.Name]) {
			t.Errorf("%s: shares %v do not add up to its time or are not those of %v", f.Name, r.Limited[i],
				v.TimeShare[f.Name])
		}
	}
	candidates := solve.Candidates(n, r)
	for name, want := range v.Gains {
		set := []int{w.find(name)}
		for i, r := range w.resources { // the vectors double both directions
			if r.Name == name+".back" {
				set = append(set, i)
			}
		}
		g, err := solve.Double(n, w.transfers, sharing.MaxMin[rat]{}, solve.Options{}, r, nil, set...)
		if err != nil {
			t.Fatal(err)
		}
		wantRounded(t, "makespan gain of "+name, g.Makespan.Float64(), want["*"])
		for i, f := range w.flows {
			wantRounded(t, "gain of "+name+" for "+f.Name, g.Transfer[i].Float64(), want[f.Name])
			if want[f.Name] != 0 && !slices.Contains(candidates, w.find(name)) {
				t.Errorf("%s gains but is no candidate", name)
			}
		}
	}
}

func TestZipperMaxMin(t *testing.T) {
	v := zipperVectors(t)
	build := map[string]func(*world){
		"D1a": func(w *world) { // E1
			w.resource(sharing.Port, 780, "netL")
			w.resource(sharing.Port, 3500, "netH")
			w.resource(sharing.Thread, 1, "fwd")
			w.flow("f", 1000, "netL", "netH", "fwd/netL+netH")
		},
		"D1b": func(w *world) {
			w.resource(sharing.Port, 780, "netL", "netL.back")
			w.resource(sharing.Port, 3500, "netH", "netH.back")
			w.resource(sharing.Thread, 1, "fwd")
			w.flow("f", 1000, "netL", "netH", "fwd/netL+netH")
			w.flow("g", 1000, "netL.back", "netH.back", "fwd/netL.back+netH.back")
		},
		"D1c": func(w *world) {
			w.resource(sharing.Port, 780, "netL", "netL.back")
			w.resource(sharing.Port, 3500, "netH", "netH.back")
			w.resource(sharing.Thread, 1, "fwdAB", "fwdBA")
			w.flow("f", 1000, "netL", "netH", "fwdAB/netL+netH")
			w.flow("g", 1000, "netL.back", "netH.back", "fwdBA/netL.back+netH.back")
		},
		"D2": func(w *world) { // E2
			w.resource(sharing.Port, 3500, "Z.A.in", "Z.B.out")
			w.resource(sharing.Copy, 2000, "Z.cpu.AB")
			for _, i := range []string{"1", "2", "3", "4"} {
				w.resource(sharing.NIC, 3500, "L"+i+".out", "H"+i+".in")
				w.flow("f"+i, 1000, "L"+i+".out", "Z.A.in", "Z.cpu.AB", "Z.B.out", "H"+i+".in")
			}
		},
		"D3 equal stripes": func(w *world) { stripes(w, 3000, 3000) },
		"D3 proportional stripes": func(w *world) {
			parts := solve.Split(num.Int[rat](6000), []rat{num.Int[rat](2000), num.Int[rat](1000)})
			stripes(w, int64(parts[0].Float64()), int64(parts[1].Float64()))
		},
		"D4": func(w *world) { // E4
			w.resource(sharing.NIC, 1000, "L1.out", "L2.in", "L3.out", "H1.in", "H2.in")
			w.resource(sharing.Copy, 1200, "Z.cpu.AB")
			w.flow("f1", 1000, "L1.out", "Z.cpu.AB", "H1.in")
			w.flow("f2", 500, "L1.out", "L2.in")
			w.flow("f3", 2000, "L3.out", "Z.cpu.AB", "H2.in")
		},
	}
	for name, b := range build {
		t.Run(name, func(t *testing.T) {
			w := &world{t: t}
			b(w)
			w.check(v[name])
		})
	}
}

func stripes(w *world, first, second int64) {
	w.resource(sharing.NIC, 3500, "L1.out", "H1.in")
	w.resource(sharing.Copy, 2000, "Z1.cpu.AB")
	w.resource(sharing.Copy, 1000, "Z2.cpu.AB")
	w.flow("s1", first, "L1.out", "Z1.cpu.AB", "H1.in")
	w.flow("s2", second, "L1.out", "Z2.cpu.AB", "H1.in")
}

// TestZipperGainCaveats checks the doubling test with tied resources, and with stripes that are
// planned again.
func TestZipperGainCaveats(t *testing.T) {
	w := &world{t: t}
	w.resource(sharing.NIC, 1000, "L1.out", "L2.in", "L3.out", "H1.in", "H2.in")
	w.resource(sharing.Copy, 1200, "Z.cpu.AB")
	w.flow("f1", 1000, "L1.out", "Z.cpu.AB", "H1.in")
	w.flow("f2", 500, "L1.out", "L2.in")
	w.flow("f3", 2000, "L3.out", "Z.cpu.AB", "H2.in")
	n := w.network()
	r := run(t, n, w.transfers, sharing.MaxMin[rat]{})
	gains, err := solve.Gains(n, w.transfers, sharing.MaxMin[rat]{}, solve.Options{}, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.resources[gains[0].Resources[0]].Name; got != "Z.cpu.AB" {
		t.Errorf("bottleneck %s, want Z.cpu.AB", got)
	}
	i := slices.IndexFunc(gains, func(g solve.Gain[rat]) bool { return len(g.Resources) == 2 })
	if i < 0 {
		t.Fatal("the tied pair L3.out, H2.in was not tried")
	}
	wantRounded(t, "gain of the tied pair for f3", gains[i].Transfer[2].Float64(), 0.050633)

	w = &world{t: t}
	stripes(w, 4000, 2000)
	n = w.network()
	r = run(t, n, w.transfers, sharing.MaxMin[rat]{})
	replan := func(n *sharing.Network[rat]) ([]solve.Transfer[rat], error) {
		a, err := sharing.MaxMin[rat]{}.Share(n, sharing.Each(0, 1))
		if err != nil {
			return nil, err
		}
		ts := slices.Clone(w.transfers)
		for i, b := range solve.Split(num.Int[rat](6000), a.Rate) {
			ts[i].Bytes = b
		}
		return ts, nil
	}
	for _, z := range []string{"Z1.cpu.AB", "Z2.cpu.AB"} {
		g, err := solve.Double(n, w.transfers, sharing.MaxMin[rat]{}, solve.Options{}, r, replan, w.find(z))
		if err != nil {
			t.Fatal(err)
		}
		wantExact(t, "gain of "+z+" with new stripes", g.Makespan, "1/7")
	}
}

func TestZipperAsymmetric(t *testing.T) {
	v := zipperVectors(t)
	for _, name := range []string{"D5", "D5b"} { // E5
		w := &world{t: t}
		w.resource(sharing.Port, 940, "Z.A.in", "Z.A.out", "Z.B.in", "Z.B.out")
		w.twins("Z.A.in", "Z.A.out")
		w.twins("Z.B.in", "Z.B.out")
		ab, ba := []string{"Z.A.in", "Z.B.out"}, []string{"Z.B.in", "Z.A.out"}
		if name == "D5b" {
			w.resource(sharing.Copy, 1200, "Z.cpu")
			ab, ba = append(ab, "Z.cpu"), append(ba, "Z.cpu")
		}
		for _, i := range []string{"1", "2", "3"} {
			w.resource(sharing.NIC, 940, "L"+i+".out", "H"+i+".in")
			w.flow("f"+i, 1, append([]string{"L" + i + ".out", "H" + i + ".in"}, ab...)...)
		}
		w.resource(sharing.NIC, 940, "H4.out", "L4.in")
		w.flow("r", 1, append([]string{"H4.out", "L4.in"}, ba...)...)
		n := w.network()
		maxmin, err := sharing.MaxMin[rat]{}.Share(n, all(4))
		if err != nil {
			t.Fatal(err)
		}
		zhu, err := sharing.Zhu[rat]{}.Share(n, all(4))
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range w.flows {
			wantRounded(t, name+" max-min "+f.Name, maxmin.Rate[i].Float64(), v[name].Maxmin[f.Name])
			wantRounded(t, name+" zhu "+f.Name, zhu.Rate[i].Float64(), v[name].Zhu[f.Name])
			if want := v[name].MaxminLim[f.Name]; want != nil && !slices.Equal(w.names(maxmin.Limits[i]), want) {
				t.Errorf("%s: max-min limits %s by %v, want %v", name, f.Name, w.names(maxmin.Limits[i]), want)
			}
			var branch string
			var why []string
			if json.Unmarshal(v[name].ZhuWhy[f.Name][0], &branch) != nil ||
				json.Unmarshal(v[name].ZhuWhy[f.Name][1], &why) != nil {
				t.Fatal("zhu_why")
			}
			slices.Sort(why)
			if got := w.names(zhu.Limits[i]); !slices.Equal(got, why) ||
				zhu.Limits[i][0].Contra != (branch == "contra") {
				t.Errorf("%s: zhu limits %s by %v contra %v, want %v %s", name, f.Name, got, zhu.Limits[i][0].Contra,
					why, branch)
			}
		}
	}
}

// e6 returns example E6: f1 L1>z>H1, f2 L1>L2, f3 L3>z>H2, h H3>H2.
func e6(t *testing.T, serial bool, gamma string) *world {
	w := &world{t: t}
	w.resource(sharing.Domain, 1, "A", "B")
	hop := func(d, from, to int) sharing.Hop { return sharing.Hop{Domain: d, From: from, To: to} }
	const z = 0
	add := func(name string, hops ...sharing.Hop) {
		w.transfers = append(w.transfers, solve.Transfer[rat]{Name: name, Flow: len(w.flows), Bytes: num.Int[rat](1)})
		w.flows = append(w.flows, sharing.Flow[rat]{Name: name, Hops: hops, Serial: serial})
	}
	add("f1", hop(0, 1, z), hop(1, z, 1))
	add("f2", hop(0, 1, 2))
	add("f3", hop(0, 3, z), hop(1, z, 2))
	add("h", hop(1, 3, 2))
	if gamma != "" {
		w.resources = append(w.resources, sharing.Resource[rat]{Name: "fwd:Z", Kind: sharing.Copy, Twin: -1,
			Capacity: num.Int[rat](1).Div(exact(t, gamma))})
		for _, i := range []int{0, 2} {
			w.flows[i].Uses = []sharing.Use[rat]{{Resource: 2, Weight: num.Int[rat](1)}}
		}
	}
	return w
}

func TestZipperPenalty(t *testing.T) {
	v := zipperVectors(t)
	one := num.Int[rat](1)
	gamma := exact(t, "1e-9").Div(exact(t, "5.105e-10")).String() // in units of alpha
	for name, w := range map[string]*world{"D6 cut": e6(t, false, ""), "D6 sf": e6(t, true, ""),
		"D6 cut fwd 1e-9": e6(t, false, gamma)} {
		a, err := sharing.Penalty[rat]{}.Share(w.network(), all(4))
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range w.flows {
			wantRounded(t, name+": "+f.Name, one.Div(a.Rate[i]).Float64(), v[name].RhoEff[f.Name])
		}
	}
	for name, w := range map[string]*world{"D6 dyn cut": e6(t, false, ""), "D6 dyn sf": e6(t, true, ""),
		"D6 dyn cut_fwd2": e6(t, false, "2")} {
		want := v[name]
		n := w.network()
		r := run(t, n, w.transfers, sharing.Penalty[rat]{})
		if len(r.Steps) != len(want.Steps) {
			t.Fatalf("%s: %d steps, want %d", name, len(r.Steps), len(want.Steps))
		}
		for s, step := range want.Steps {
			wantExact(t, name+": step end", r.Steps[s].To, step.T)
			for j, i := range r.Steps[s].Active {
				f := w.flows[i].Name
				wantExact(t, name+": time per byte of "+f, one.Div(r.Steps[s].Rate[j]), step.Tpb[f])
				if got := w.names(r.Steps[s].Limits[j]); !slices.Equal(got, step.Limiting[f]) {
					t.Errorf("%s: step %d: %s limited by %v, want %v", name, s, f, got, step.Limiting[f])
				}
			}
		}
		for i, f := range w.flows {
			var finish string
			if err := json.Unmarshal(want.Finish[f.Name], &finish); err != nil {
				t.Fatal(err)
			}
			wantExact(t, name+": finish of "+f.Name, r.Finish[i], finish)
		}
		for res, gains := range want.Gain {
			if res == "fwd" {
				res = "fwd:Z"
			}
			g, err := solve.Double(n, w.transfers, sharing.Penalty[rat]{}, solve.Options{}, r, nil, w.find(res))
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range w.flows {
				wantRounded(t, name+": gain of "+res+" for "+f.Name, g.Transfer[i].Float64(), gains[f.Name])
			}
		}
	}
}

func TestZipperPipeline(t *testing.T) {
	v := zipperVectors(t)["D7"] // E7, MB and MB/s
	in, out, m := num.Int[rat](780), num.Int[rat](3500), num.Int[rat](64)
	for s, want := range v.Pipelined {
		got, err := solve.Pipelined(m, exact(t, s), in, out)
		if err != nil {
			t.Fatal(err)
		}
		wantRounded(t, "segments of "+s, got.Float64(), want)
		wantRounded(t, "blocking", solve.Blocking(m, in, out).Float64(), v.Blocking[s])
	}
	// Unequal last segment, by hand: in 2, 4, 5; out 10/3, 4+4/3, 16/3+2/3.
	got, err := solve.Pipelined(num.Int[rat](10), num.Int[rat](4), num.Int[rat](2), num.Int[rat](3))
	if err != nil {
		t.Fatal(err)
	}
	wantExact(t, "10 in segments of 4", got, "6")
	c := num.Int[rat]
	if got := solve.UsefulZippers(c(14000), c(0), c(14000), c(0), c(3500), c(2000), c(3500)); got != 7 {
		t.Errorf("N* = %d, want 7", got)
	}
}
