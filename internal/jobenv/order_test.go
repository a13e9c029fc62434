package jobenv

import (
	"slices"
	"strings"
	"testing"
)

func TestOrder(t *testing.T) {
	layout := []Cluster{{Name: "a", Size: 3}, {Name: "b", Size: 2}}
	order, err := ParseOrder("b=1,a,a,b,a", layout)
	if err != nil {
		t.Fatal(err)
	}
	if s := FormatOrder(OrderOf([]string{"b", "a", "a", "b", "a"})); s != "b,a=2,b,a" {
		t.Errorf("runs: %s", s)
	}
	again, err := ParseOrder(FormatOrder(order), layout)
	if err != nil || !slices.Equal(again, order) {
		t.Errorf("%v, %v", again, err)
	}
	if v := VirtualRanks(order, layout); !slices.Equal(v, []int32{3, 0, 1, 4, 2}) {
		t.Errorf("virtual ranks %v", v)
	}
	if a, b := WorldRanks(order, layout, "a"), WorldRanks(order, layout, "b"); !slices.Equal(a, []int{1, 2, 4}) ||
		!slices.Equal(b, []int{0, 3}) {
		t.Errorf("ranks in the world: %v, %v", a, b)
	}
	if b := WorldRanks(nil, layout, "b"); !slices.Equal(b, []int{3, 4}) {
		t.Errorf("cluster by cluster: %v", b)
	}
	many := make([]Cluster, 1<<17)
	for i := range many {
		many[i] = Cluster{Name: []string{"a", "b"}[i%2], Size: 1}
	}
	if err := CheckOrder(many, []Cluster{{Name: "a", Size: 1 << 16}, {Name: "b", Size: 1 << 16}}); err == nil ||
		!strings.Contains(err.Error(), "at most") {
		t.Errorf("262143 bytes: %v", err)
	}
	if VirtualRanks([]Cluster{{Name: "a", Size: 1}, {Name: "a", Size: 2}, {Name: "b", Size: 2}}, layout) != nil {
		t.Error("ranks cluster by cluster are another order")
	}
	for s, want := range map[string]string{"a=2,b=2": "2 ranks of cluster a, the job has 3",
		"a=3,b=2,c": `names cluster "c"`, "a=x": `"a=x": want`, "a=0": "want", "a=3,b=2,": `names cluster ""`} {
		if o, err := ParseOrder(s, layout); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", s, o, err)
		}
	}
}

func TestOrderInEnvironment(t *testing.T) {
	from := func(cluster, order string) (Job, error) {
		return From(func(k string) string {
			return map[string]string{VarJob: "j", VarSecret: goodSecret, VarCluster: cluster, VarLayout: "a=2,b=1",
				VarForwarders: "h:1", VarOrder: order}[k]
		})
	}
	for order, first := range map[string]string{"": "a", "b,a=2": "b", "a,b,a": "a"} {
		for _, c := range []string{"a", "b"} {
			j, err := from(c, order)
			if err != nil || j.First() != (c == first) {
				t.Errorf("%s, order %q: first %v, %v", c, order, j.First(), err)
			}
			if has := slices.Contains(j.Environ(), VarOrder+"="+order); has != (order != "") {
				t.Errorf("order %q in %q: %v", order, j.Environ(), has)
			}
		}
	}
	if _, err := from("a", "b=2,a"); err == nil || !strings.Contains(err.Error(), VarOrder) {
		t.Errorf("%v", err)
	}
}
