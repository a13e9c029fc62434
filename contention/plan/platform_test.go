package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/contention/platform"
)

const lab = `
name: lab
clusters:
  - {name: a, hosts: 2, cores: 2, nic: 1000 MB/s}
  - {name: b, hosts: 2, cores: 2, nic: 1000 MB/s, speed: 2}
  - {name: c, hosts: 2, nic: 1000 MB/s}
zippers:
  - {name: z, cores: 1, ports: {a: 1000 MB/s, b: 800 MB/s}, forwarder: {copy: 500 MB/s}}
  - {name: y, ports: {b: 1000 MB/s, c: 1000 MB/s}, forwarder: {threads: 1}}
`

func TestFromPlatform(t *testing.T) {
	p, err := platform.Read(strings.NewReader(lab))
	if err != nil {
		t.Fatal(err)
	}
	// Rank 0 communicates with all others; 1, 2 and 3, 4 are pairs.
	edges := []Edge{{0, 1, 50}, {0, 2, 50}, {0, 3, 50}, {0, 4, 50}, {1, 2, 90}, {3, 4, 90}}
	x, err := FromPlatform(p, 5, edges)
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Sites) != 4 || x.Crossings[0][2] != 2 || x.Crossings[0][1] != 1 || x.Crossings[3][1] != 0 ||
		x.Crossings[3][2] != unreachable {
		t.Errorf("%+v", x)
	}
	if x.Rate != 2*500e6+2*500e6 {
		t.Errorf("rate %v", x.Rate)
	}
	x.Sites[0].Room = 2 // otherwise all fit into one cluster and the zipper
	x.Sites[1].Room = 2
	at, exact, err := Solve(x)
	if err != nil || !exact || x.Crossing(at) != 0 || at[0] != 3 {
		t.Fatalf("%v exact %v %v", at, exact, err)
	}
	hosts, err := Hosts(p, at)
	if err != nil || hosts[0] != "z" {
		t.Errorf("%v %v", hosts, err)
	}
	// Rank 0, on the zipper node, belongs to the cluster with which it exchanges the most, or to a
	// if both are equal.
	for _, heavy := range []int{-1, 0, 1} {
		want := make([]string, len(at))
		more := *x
		for r, s := range at {
			if want[r] = x.Sites[s].Name; s == heavy {
				more.Edges = append(more.Edges[:len(edges):len(edges)], Edge{0, r, 1})
			}
		}
		want[0] = x.Sites[max(heavy, 0)].Name
		if got := Clusters(p, &more, at); !slices.Equal(got, want) {
			t.Errorf("%v at %v, want %v", got, at, want)
		}
	}
	order, err := InOrder(x)
	if err != nil || order[0] != 0 || order[4] != 2 {
		t.Errorf("%v %v", order, err)
	}
	if err := x.Check(at); err != nil {
		t.Error(err)
	}
	if err := x.Check(Placement{3, 2, 0, 0, 0}); err == nil {
		t.Error("a rank on z cannot reach cluster c")
	}
	if n := p.UsefulZippers("a", "b"); n != 4 {
		t.Errorf("N* = %d, want 2000/500", n)
	}
	if n := p.UsefulZippers("a", "c"); n != 0 {
		t.Errorf("N* without a zipper = %d", n)
	}
}
