package contention_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/contention/ethernet"
	"github.com/leidenzipper/zipper/contention/num"
	"github.com/leidenzipper/zipper/contention/sharing"
	"github.com/leidenzipper/zipper/contention/solve"
)

type zhuVector struct {
	Name           string
	Links          ordered[[2]string]
	Backbone       string `json:"beta_backbone_rel"`
	Paper          json.RawMessage
	Oversubscribed []string `json:"paper_oversubscribed"`
	Strict         map[string]string
	Fair           map[string]string `json:"fairness_only"`
	Mbps           map[string]float64
	Pops           int
	Sizes          map[string]int64
	Finish         map[string]string
	FinishFair     map[string]string `json:"finish_fairness_only"`
}

func zhuNetwork(t *testing.T, x zhuVector) *sharing.Network[rat] {
	t.Helper()
	one := num.Int[rat](1)
	backbone := one
	if x.Backbone != "" {
		backbone = one.Div(exact(t, x.Backbone))
	}
	var links []ethernet.Link
	for _, k := range x.Links.keys {
		l := x.Links.values[k]
		links = append(links, ethernet.Link{Name: k, From: l[0], To: l[1]})
	}
	n, err := ethernet.Build(links, func(node string) string { return node[:1] }, one, backbone)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func all(n int) []sharing.Active {
	list := make([]sharing.Active, n)
	for i := range list {
		list[i] = sharing.Active{Flow: i, Count: 1}
	}
	return list
}

func TestZhu(t *testing.T) {
	v := load(t).Zhu
	if len(v) != 16 {
		t.Fatalf("%d vectors, want 16", len(v))
	}
	for _, x := range v {
		t.Run(x.Name, func(t *testing.T) {
			n := zhuNetwork(t, x)
			if x.Sizes != nil {
				zhuDynamic(t, x, n)
				return
			}
			check := func(mode string, rule sharing.Zhu[rat], want map[string]string) {
				a, err := rule.Share(n, all(len(n.Flows)))
				if err != nil {
					t.Fatal(mode, err)
				}
				for i, k := range x.Links.keys {
					wantExact(t, mode+": beta of "+k, num.Int[rat](1).Div(a.Rate[i]), want[k])
					if mbps := a.Rate[i].Float64() * 940; mode == "strict" && math.Abs(mbps-x.Mbps[k]) > 0.51e-4 {
						t.Errorf("%s: %s gets %.4f Mbit/s, want %.4f", mode, k, mbps, x.Mbps[k])
					}
					if len(a.Limits[i]) == 0 {
						t.Errorf("%s: nothing limits %s", mode, k)
					}
				}
				over := sharing.Overloads(n, all(len(n.Flows)), a)
				var names []string
				for _, o := range over {
					names = append(names, n.Resources[o.Resource].Name)
				}
				if mode == "paper" && len(x.Oversubscribed) == len(over) {
					for i, w := range x.Oversubscribed { // "N:Y2"
						if !strings.HasPrefix(names[i], w[2:]+".") {
							t.Errorf("oversubscribed %v, want %v", names, x.Oversubscribed)
						}
					}
				} else if len(over) > 0 {
					t.Errorf("%s: oversubscribed %v", mode, names)
				}
			}
			pops := 0
			check("strict", sharing.Zhu[rat]{Pops: &pops}, x.Strict)
			if pops != x.Pops {
				t.Errorf("%d pops, want %d", pops, x.Pops)
			}
			check("fair", sharing.Zhu[rat]{Fair: true}, x.Fair)
			var paper map[string]string
			if json.Unmarshal(x.Paper, &paper) == nil {
				check("paper", sharing.Zhu[rat]{Paper: true}, paper)
			} else if _, err := (sharing.Zhu[rat]{Paper: true}).Share(n, all(len(n.Flows))); err == nil ||
				!strings.Contains(err.Error(), "e4") {
				t.Errorf("paper mode: error %v, want one that names e4", err)
			}
		})
	}
}

func zhuDynamic(t *testing.T, x zhuVector, n *sharing.Network[rat]) {
	ts := unitTransfers(n)
	for i, k := range x.Links.keys {
		ts[i].Bytes = num.Int[rat](x.Sizes[k])
	}
	for rule, want := range map[sharing.Zhu[rat]]map[string]string{{}: x.Finish, {Fair: true}: x.FinishFair} {
		r, err := solve.Run(n, ts, rule, solve.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i, k := range x.Links.keys {
			wantExact(t, "finish of "+k, r.Finish[i], want[k])
		}
	}
}
