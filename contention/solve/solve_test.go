package solve

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/contention/num"
	"github.com/leidenzipper/zipper/contention/sharing"
)

// randomCase returns two clusters of hosts and two zippers, with transfers of random size and start
// in both directions and inside the clusters.
func randomCase[T num.Number[T]](tb testing.TB, seed uint64, hosts, count int) (*sharing.Network[T], []Transfer[T]) {
	tb.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	var rs []sharing.Resource[T]
	add := func(name string, kind sharing.Kind, capacity int64) int {
		i := len(rs)
		rs = append(rs, sharing.Resource[T]{Name: name + ".out", Kind: kind, Capacity: num.Int[T](capacity),
			Twin: i + 1, Asymmetric: true},
			sharing.Resource[T]{Name: name + ".in", Kind: kind, Capacity: num.Int[T](capacity), Twin: i,
				Asymmetric: true})
		return i
	}
	domain := len(rs)
	for range 2 {
		rs = append(rs, sharing.Resource[T]{Name: "domain", Kind: sharing.Domain, Capacity: num.Int[T](100), Twin: -1})
	}
	var nics [2][]int
	for c := range nics {
		for range hosts {
			nics[c] = append(nics[c], add("host", sharing.NIC, 100))
		}
	}
	var ports, cpu [2]int
	for z := range ports {
		ports[z] = add("port", sharing.Port, 400)
		cpu[z] = add("cpu", sharing.Copy, int64(150+100*z))
	}
	var flows []sharing.Flow[T]
	known := map[[3]int]int{}
	ts := make([]Transfer[T], count)
	for i := range ts {
		from, to := rng.IntN(2*hosts), rng.IntN(2*hosts-1)
		if to >= from {
			to++
		}
		z := rng.IntN(2)
		ts[i] = Transfer[T]{Name: "t", Bytes: num.Int[T](1 + rng.Int64N(5000)), Start: num.Int[T](rng.Int64N(20))}
		if i > 0 && count < 1000 && rng.IntN(8) == 0 {
			ts[i].After = []int{rng.IntN(i)}
		}
		if k, ok := known[[3]int{from, to, z}]; ok {
			ts[i].Flow = k
			continue
		}
		known[[3]int{from, to, z}] = len(flows)
		ts[i].Flow = len(flows)
		c, d := from/hosts, to/hosts
		var f sharing.Flow[T]
		use := func(r int) {
			f.Uses = append(f.Uses, sharing.Use[T]{Resource: r, Weight: num.Int[T](1)})
		}
		use(nics[c][from%hosts])
		if c != d {
			use(ports[z] + c)
			use(cpu[z] + c)
			f.Hops = []sharing.Hop{{Domain: domain + c, From: from % hosts, To: hosts + z},
				{Domain: domain + d, From: hosts + z, To: to % hosts}}
		} else {
			f.Hops = []sharing.Hop{{Domain: domain + c, From: from % hosts, To: to % hosts}}
		}
		use(nics[d][to%hosts] + 1)
		flows = append(flows, f)
	}
	n, err := sharing.New(rs, flows)
	if err != nil {
		tb.Fatal(err)
	}
	return n, ts
}

func rules[T num.Number[T]]() []sharing.Rule[T] {
	return []sharing.Rule[T]{sharing.MaxMin[T]{}, sharing.Zhu[T]{}, sharing.Penalty[T]{},
		sharing.Penalty[T]{Clamp: true}}
}

func TestFloatMatchesExact(t *testing.T) {
	for seed := range uint64(12) {
		n, ts := randomCase[num.Rat](t, seed, 4, 14)
		m, fs := randomCase[num.Float](t, seed, 4, 14)
		for k, rule := range rules[num.Rat]() {
			exact, err := Run(n, ts, rule, Options{})
			if err != nil {
				t.Fatal(err)
			}
			fast, err := Run(m, fs, rules[num.Float]()[k], Options{})
			if err != nil {
				t.Fatal(err)
			}
			coarse, err := Run(m, fs, rules[num.Float]()[k], Options{Grain: 1e-3})
			if err != nil {
				t.Fatal(err)
			}
			for i := range ts {
				e, f, c := exact.Finish[i].Float64(), float64(fast.Finish[i]), float64(coarse.Finish[i])
				if math.Abs(e-f) > 1e-7*e {
					t.Errorf("seed %d, %s: transfer %d ends at %v, exactly %v", seed, rule.Name(), i, f, e)
				}
				if math.Abs(e-c) > 1e-2*e {
					t.Errorf("seed %d, %s: transfer %d ends at %v with grain, exactly %v", seed, rule.Name(), i, c, e)
				}
			}
		}
	}
}

// TestInvariants checks that traffic fits the capacities, that all bytes move, and that the time
// for which a transfer was limited is the time in which it moved.
func TestInvariants(t *testing.T) {
	for seed := range uint64(8) {
		n, ts := randomCase[num.Rat](t, seed, 3, 12)
		for _, rule := range rules[num.Rat]() {
			r, err := Run(n, ts, rule, Options{Record: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range r.Overload { // switches only bind the penalty rule
				if o.Vertex < 0 && rule.Name() != "penalty" {
					t.Errorf("seed %d: %s oversubscribes %v", seed, rule.Name(), o)
				}
			}
			moved, busy := make([]num.Rat, len(ts)), make([]num.Rat, len(ts))
			for _, s := range r.Steps {
				dt := s.To.Sub(s.From)
				for j, i := range s.Active {
					moved[i], busy[i] = moved[i].Add(dt.Mul(s.Rate[j])), busy[i].Add(dt)
				}
			}
			for i, x := range ts {
				if moved[i].Cmp(x.Bytes) != 0 {
					t.Errorf("%s moved %v of %v bytes", rule.Name(), moved[i], x.Bytes)
				}
				var limited num.Rat
				for _, s := range r.Limited[i] {
					limited = limited.Add(s.Time)
				}
				if limited.Cmp(busy[i]) != 0 || r.Start[i].Add(busy[i]).Cmp(r.Finish[i]) != 0 {
					t.Errorf("%s: limited %v, busy %v, from %v to %v", rule.Name(), limited, busy[i], r.Start[i],
						r.Finish[i])
				}
				for _, p := range x.After {
					if r.Start[i].Cmp(r.Finish[p]) < 0 {
						t.Errorf("transfer %d starts before %d ends", i, p)
					}
				}
			}
		}
	}
}

func TestDelayTailAndEmpty(t *testing.T) {
	one := num.Int[num.Rat](1)
	n, err := sharing.New([]sharing.Resource[num.Rat]{{Name: "wire", Capacity: one, Twin: -1}},
		[]sharing.Flow[num.Rat]{{Name: "f", Uses: []sharing.Use[num.Rat]{{Weight: one}}}})
	if err != nil {
		t.Fatal(err)
	}
	ts := []Transfer[num.Rat]{
		{Name: "a", Bytes: one, Delay: one, Tail: num.Frac(1, 2)},
		{Name: "b", After: []int{0}, Delay: num.Frac(1, 4)}, // empty
		{Name: "c", After: []int{1}, Bytes: one},
	}
	r, err := Run(n, ts, sharing.MaxMin[num.Rat]{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []num.Rat{num.Frac(5, 2), num.Frac(11, 4), num.Frac(15, 4)} {
		if r.Finish[i].Cmp(want) != 0 {
			t.Errorf("%s ends at %v, want %v", ts[i].Name, r.Finish[i], want)
		}
	}
	if r.Used[0].Cmp(num.Int[num.Rat](2)) != 0 {
		t.Errorf("used %v bytes of the wire, want 2", r.Used[0])
	}
}

func TestBadTransfers(t *testing.T) {
	wire := []sharing.Resource[num.Float]{{Name: "wire", Capacity: 1, Twin: -1}}
	n, err := sharing.New(wire, []sharing.Flow[num.Float]{{Name: "f", Uses: []sharing.Use[num.Float]{{Weight: 1}}}})
	if err != nil {
		t.Fatal(err)
	}
	nan := num.Float(math.NaN())
	for want, ts := range map[string][]Transfer[num.Float]{
		"cycle":    {{Name: "x", After: []int{1}}, {Name: "y", After: []int{0}}},
		"no flow":  {{Name: "x", Flow: 3}},
		"size":     {{Name: "x", Bytes: -1}},
		"delay":    {{Name: "x", Delay: nan}},
		"start":    {{Name: "x", Start: num.Float(math.Inf(1))}},
		"number 9": {{Name: "x", After: []int{9}}},
	} {
		if _, err := Run(n, ts, sharing.MaxMin[num.Float]{}, Options{}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// TestManyTransfers checks many transfers whose events are handled together: everything moves, none
// sooner than alone, no use exceeds a capacity, and the times are close to those of each event on
// its own. BenchmarkRun and BenchmarkBuffered measure the time of 100 000 transfers.
func TestManyTransfers(t *testing.T) {
	const grain = 1e-2
	n, ts := randomCase[num.Float](t, 1, 8, 1500)
	relay(n, ts)
	for _, rule := range []sharing.Rule[num.Float]{sharing.MaxMin[num.Float]{}, sharing.Buffered[num.Float]{}} {
		fine, err := Run(n, ts, rule, Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(n, ts, rule, Options{Grain: grain})
		if err != nil {
			t.Fatal(err)
		}
		var sum, worst float64
		for i := range ts {
			took := (r.Finish[i] - r.Start[i]).Float64()
			if least := (ts[i].Bytes / n.Alone(ts[i].Flow)).Float64(); took < least*(1-grain) {
				t.Errorf("%s: transfer %d took %v, alone it takes %v", rule.Name(), i, took, least)
			}
			e := math.Abs(took/(fine.Finish[i]-fine.Start[i]).Float64() - 1)
			sum, worst = sum+e, math.Max(worst, e)
		}
		for k, u := range r.Used {
			if float64(u) > float64(n.Resources[k].Capacity*r.Makespan)*(1+2*grain) {
				t.Errorf("%s: %v units of resource %d in %v s", rule.Name(), u, k, r.Makespan)
			}
		}
		mean, span := sum/float64(len(ts)), math.Abs((r.Makespan/fine.Makespan).Float64()-1)
		t.Logf("%s: %d events instead of %d; times differ by %.2f %% in the mean, %.1f %% at most, the makespan by %.2f %%",
			rule.Name(), r.Events, fine.Events, 100*mean, 100*worst, 100*span)
		if mean > grain || span > 2*grain {
			t.Errorf("%s: times differ by %v in the mean, the makespan by %v", rule.Name(), mean, span)
		}
		if r.Events > fine.Events*2/3 {
			t.Errorf("%s: %d events, each on its own %d", rule.Name(), r.Events, fine.Events)
		}
	}
}

// relay turns the flows of a random case into flows over forwarders with windows. It chooses sizes
// and capacities such that the steps of buffered are pieces.
func relay(n *sharing.Network[num.Float], ts []Transfer[num.Float]) {
	const scale = 1e5
	for i := range n.Resources {
		n.Resources[i].Capacity *= scale
	}
	for i := range ts {
		ts[i].Bytes *= scale
	}
	for i := range n.Flows {
		f := &n.Flows[i]
		if len(f.Hops) == 1 {
			continue
		}
		f.Window = 4 << 20
		for k, hop := range []int{1, 1, 0, 2} {
			f.Uses[k].Hop = hop
		}
	}
}

func BenchmarkRun(b *testing.B) {
	for _, size := range []struct {
		name         string
		hosts, count int
		grain        float64
	}{{"1000", 16, 1000, 0}, {"100000", 64, 100_000, 1e-2}} {
		n, ts := randomCase[num.Float](b, 1, size.hosts, size.count)
		for _, rule := range rules[num.Float]()[:3] {
			b.Run(rule.Name()+"/"+size.name, func(b *testing.B) {
				for b.Loop() {
					r, err := Run(n, ts, rule, Options{Grain: size.grain})
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(r.Events), "events")
				}
			})
		}
	}
}
