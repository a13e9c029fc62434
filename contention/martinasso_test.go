package contention_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/leidenzipper/zipper/contention/num"
	"github.com/leidenzipper/zipper/contention/penalty"
	"github.com/leidenzipper/zipper/contention/sharing"
	"github.com/leidenzipper/zipper/contention/solve"
)

type staticVector struct {
	Name     string
	Edges    ordered[[2]string]
	ReadingU staticReading `json:"reading_U"`
	ReadingC staticReading `json:"reading_C"`
	ReadingR staticReading `json:"reading_R"`
	Maxmin   struct {
		FirstRates map[string]string `json:"first_rates"`
		Finish     map[string]string `json:"finish_in_Tref"`
	}
}

type staticReading struct {
	Rho     map[string]string
	Steps   map[string][]string `json:"rho_steps"`
	Finish  map[string]string   `json:"finish_in_Tref"`
	Seconds map[string]float64  `json:"finish_s_Tref"`
	Load    map[string]string   `json:"receiver_load"`
}

type dynamicVector struct {
	Name   string
	Edges  ordered[[2]string]
	Size   map[string]int64
	Start  map[string]string
	Finish map[string]string
	Steps  []struct {
		T   string
		Rho map[string]string
	}
}

// oneSwitch returns a switch of unit links: resource 0 is the domain, then the sending and
// receiving link of each host. Flows follow the order of edges.
func oneSwitch(t *testing.T, edges ordered[[2]string]) (*sharing.Network[rat], []string) {
	t.Helper()
	one := num.Int[rat](1)
	resources := []sharing.Resource[rat]{{Name: "switch", Kind: sharing.Domain, Capacity: one, Twin: -1}}
	var hosts []string
	index := map[string]int{}
	host := func(name string) int {
		i, ok := index[name]
		if !ok {
			i = len(hosts)
			index[name] = i
			hosts = append(hosts, name)
			resources = append(resources, sharing.Resource[rat]{Name: name + ".out", Capacity: one, Twin: 2*i + 2},
				sharing.Resource[rat]{Name: name + ".in", Capacity: one, Twin: 2*i + 1})
		}
		return i
	}
	var flows []sharing.Flow[rat]
	for _, k := range edges.keys {
		from, to := host(edges.values[k][0]), host(edges.values[k][1])
		flows = append(flows, sharing.Flow[rat]{Name: k, Hops: []sharing.Hop{{Domain: 0, From: from, To: to}},
			Uses: []sharing.Use[rat]{{Resource: 2*from + 1, Weight: one}, {Resource: 2*to + 2, Weight: one}}})
	}
	n, err := sharing.New(resources, flows)
	if err != nil {
		t.Fatal(err)
	}
	return n, hosts
}

func unitTransfers(n *sharing.Network[rat]) []solve.Transfer[rat] {
	ts := make([]solve.Transfer[rat], len(n.Flows))
	for i := range ts {
		ts[i] = solve.Transfer[rat]{Name: n.Flows[i].Name, Flow: i, Bytes: num.Int[rat](1)}
	}
	return ts
}

func run(t *testing.T, n *sharing.Network[rat], ts []solve.Transfer[rat], rule sharing.Rule[rat]) *solve.Result[rat] {
	t.Helper()
	r, err := solve.Run(n, ts, rule, solve.Options{Record: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// penalties returns the penalties of transfer i, one for each step.
func penalties(r *solve.Result[rat], i int) (rhos []string) {
	for _, s := range r.Steps {
		for j, a := range s.Active {
			if a != i {
				continue
			}
			rhos = append(rhos, num.Int[rat](1).Div(s.Rate[j]).String())
		}
	}
	return rhos
}

func TestMartinassoStatic(t *testing.T) {
	v := load(t).Martinasso.Static
	if len(v) != 15 {
		t.Fatalf("%d vectors, want 15", len(v))
	}
	for _, x := range v {
		n, hosts := oneSwitch(t, x.Edges)
		for reading, want := range map[penalty.Reading]staticReading{
			penalty.Unmixed: x.ReadingU, penalty.Off: x.ReadingC, penalty.Residual: x.ReadingR} {
			t.Run(x.Name+"/"+reading.String(), func(t *testing.T) {
				rule := sharing.Penalty[rat]{Reading: map[int]penalty.Reading{0: reading}}
				r := run(t, n, unitTransfers(n), rule)
				var edges []penalty.Edge
				for i, k := range x.Edges.keys {
					edges = append(edges, penalty.Edge{From: n.Flows[i].Hops[0].From, To: n.Flows[i].Hops[0].To})
					wantExact(t, "finish of "+k, r.Finish[i], want.Finish[k])
					if got := penalties(r, i); fmt.Sprint(got) != fmt.Sprint(want.Steps[k]) {
						t.Errorf("penalties of %s by step %v, want %v", k, got, want.Steps[k])
					}
					if s := r.Finish[i].Float64() * 0.010706; math.Abs(s-want.Seconds[k]) > 1e-8 {
						t.Errorf("%s finishes after %v s, want %v", k, s, want.Seconds[k])
					}
				}
				rho := penalty.Rho[rat](edges, reading)
				for i, k := range x.Edges.keys {
					wantExact(t, "rho of "+k, rho[i], want.Rho[k])
				}
				loads := penalty.Loads(edges, rho)
				if len(loads) != len(want.Load) {
					t.Errorf("%d loads, want %d", len(loads), len(want.Load))
				}
				first := r.Steps[0]
				over := sharing.Overloads(n, sharing.Each(first.Active...),
					sharing.Allocation[rat]{Rate: first.Rate, Limits: first.Limits})
				for v, l := range loads {
					wantExact(t, "load of "+hosts[v], l, want.Load[hosts[v]])
					warned := false
					for _, o := range over {
						warned = warned || o.Resource == 0 && o.Vertex == v && o.Load.Cmp(l) == 0
					}
					if warned != (l.Cmp(num.Int[rat](1)) > 0) {
						t.Errorf("load %v of %s: warning %v", l, hosts[v], warned)
					}
				}
			})
		}
		t.Run(x.Name+"/max-min", func(t *testing.T) {
			r := run(t, n, unitTransfers(n), sharing.MaxMin[rat]{})
			for i, k := range x.Edges.keys {
				wantExact(t, "first rate of "+k, r.Steps[0].Rate[i], x.Maxmin.FirstRates[k])
				wantExact(t, "finish of "+k, r.Finish[i], x.Maxmin.Finish[k])
			}
		})
	}
}

func TestMartinassoDynamic(t *testing.T) {
	v := load(t).Martinasso.Dynamic
	if len(v) != 4 {
		t.Fatalf("%d vectors, want 4", len(v))
	}
	for _, x := range v {
		t.Run(x.Name, func(t *testing.T) {
			n, _ := oneSwitch(t, x.Edges)
			ts := unitTransfers(n)
			for i, k := range x.Edges.keys {
				ts[i].Bytes = num.Int[rat](x.Size[k])
				if s, ok := x.Start[k]; ok {
					ts[i].Start = exact(t, s)
				}
			}
			r := run(t, n, ts, sharing.Penalty[rat]{})
			for i, k := range x.Edges.keys {
				wantExact(t, "finish of "+k, r.Finish[i], x.Finish[k])
			}
			if len(r.Steps) != len(x.Steps) {
				t.Fatalf("%d steps, want %d", len(r.Steps), len(x.Steps))
			}
			for s, want := range x.Steps {
				wantExact(t, "end of step", r.Steps[s].To, want.T)
				if len(r.Steps[s].Active) != len(want.Rho) {
					t.Errorf("step %d: %d active, want %d", s, len(r.Steps[s].Active), len(want.Rho))
				}
				for j, i := range r.Steps[s].Active {
					k := x.Edges.keys[i]
					wantExact(t, fmt.Sprintf("rho of %s in step %d", k, s), num.Int[rat](1).Div(r.Steps[s].Rate[j]),
						want.Rho[k])
				}
			}
		})
	}
}

// TestMartinassoPublished checks the printed numbers of Figures 3 and 4, in bytes and seconds.
func TestMartinassoPublished(t *testing.T) {
	figure := map[string]ordered[[2]string]{}
	for _, x := range load(t).Martinasso.Static {
		figure[x.Name] = x.Edges
	}
	tref := exact(t, "0.010706")
	bytes := num.Int[rat](20971520)
	timed := func(name string) (map[string]float64, *solve.Result[rat], []string) {
		n, _ := oneSwitch(t, figure[name])
		n, err := n.Scale(bytes.Div(tref), 0) // capacity 1/alpha, alpha = Tref/bytes
		if err != nil {
			t.Fatal(err)
		}
		ts := unitTransfers(n)
		for i := range ts {
			ts[i].Bytes = bytes
		}
		r := run(t, n, ts, sharing.Penalty[rat]{})
		finish := map[string]float64{}
		for i, k := range figure[name].keys {
			finish[k] = r.Finish[i].Float64()
		}
		return finish, r, figure[name].keys
	}
	finish, r, keys := timed("fig3")
	for k, want := range map[string]float64{"a": .0363749, "b": .0363749, "c": .0363749, "d": .0297984, "e": .0297984,
		"f": .0160590} {
		if math.Abs(finish[k]-want) > 0.51e-7 {
			t.Errorf("Fig. 3: %s finishes at %.8f, printed %.7f", k, finish[k], want)
		}
	}
	rest := make([]rat, len(keys))
	for i := range rest {
		rest[i] = bytes
	}
	for s, want := range []map[string]float64{{"a": 11983725.714, "d": 11534336}, {"a": 4294168.381}} {
		for j, i := range r.Steps[s].Active {
			rest[i] = rest[i].Sub(r.Steps[s].Rate[j].Mul(r.Steps[s].To.Sub(r.Steps[s].From)))
			if w, ok := want[keys[i]]; ok && math.Abs(rest[i].Float64()-w) > 0.001 {
				t.Errorf("Fig. 3: %s has %.3f B left after step %d, want %.3f", keys[i], rest[i].Float64(), s+1, w)
			}
		}
	}
	printed := map[string]map[string]float64{
		"fig4A": {"a": .036132, "b": .036132, "c": .026765, "d": .026765, "e": .013382},
		"fig4B": {"a": .043894, "b": .043894, "c": .037471, "d": .037471, "e": .037471},
	}
	measured := map[string]map[string]float64{
		"fig4A": {"a": .036328, "b": .036326, "c": .027653, "d": .027651, "e": .013413},
		"fig4B": {"a": .045236, "b": .045228, "c": .040073, "d": .040072, "e": .040071},
	}
	for name, want := range printed {
		finish, _, _ := timed(name)
		for k, w := range want {
			if math.Floor(finish[k]*1e6+1e-6)/1e6 != w { // the paper truncates
				t.Errorf("%s: %s finishes at %.8f, printed %.6f", name, k, finish[k], w)
			}
			if m := measured[name][k]; math.Abs(finish[k]-m)/m > 0.15 {
				t.Errorf("%s: %s is more than 15 %% from the measured time", name, k)
			}
		}
	}
}

// TestExtractRoundTrip checks that Extract returns the penalties when it gets the solver's times.
func TestExtractRoundTrip(t *testing.T) {
	for _, x := range load(t).Martinasso.Static {
		n, _ := oneSwitch(t, x.Edges)
		r := run(t, n, unitTransfers(n), sharing.Penalty[rat]{})
		edges := make([]penalty.Edge, len(n.Flows))
		for i, f := range n.Flows {
			edges[i] = penalty.Edge{From: f.Hops[0].From, To: f.Hops[0].To}
		}
		got, err := penalty.Extract(r.Finish, num.Int[rat](1), num.Int[rat](1), func(alive []int) ([]rat, error) {
			var left []penalty.Edge
			for _, i := range alive {
				left = append(left, edges[i])
			}
			return penalty.Rho[rat](left, penalty.Unmixed), nil
		})
		if err != nil {
			t.Fatal(x.Name, err)
		}
		for i, k := range x.Edges.keys {
			wantExact(t, x.Name+": extracted rho of "+k, got[i], x.ReadingU.Rho[k])
		}
	}
}
