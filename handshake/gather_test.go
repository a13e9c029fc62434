package handshake

import (
	"maps"
	"slices"
	"testing"

	"github.com/leidenzipper/zipper/internal/wire"
)

// TestLayoutTellsNamesakes checks that a Layout tells each rank whether a host of another cluster
// has the name of the rank's own.
func TestLayoutTellsNamesakes(t *testing.T) {
	clusters := []wire.Cluster{{Name: "a", Size: 2}, {Name: "b", Size: 3}}
	hosts := []string{"n1", "n2", "n3", "n2", "n3"}
	want := []bool{false, true, false, true, false}
	j := wire.Join{Version: wire.Version, Job: "j", Cluster: "a", Rails: 1, Layout: clusters}
	g := NewGather(&j)
	for v, host := range hosts {
		if j.Host, j.Rank = host, uint32(v); v > 1 {
			j.Cluster, j.Rank = "b", uint32(v-2)
		}
		if _, refused := g.Add(&j); refused != nil {
			t.Fatal(refused)
		}
	}
	shared := g.Namesakes()
	if names := slices.Collect(maps.Keys(shared)); len(names) != 1 || names[0] != "n2" {
		t.Errorf("in both clusters: %q", names)
	}
	l, refused := g.Layout()
	if refused != nil {
		t.Fatal(refused)
	}
	for v, host := range hosts {
		l.Rank, l.Namesake = uint32(v), shared[host]
		got, err := wire.ParseLayout(l.Append(nil))
		if err != nil || got.Namesake != want[v] {
			t.Errorf("rank %d: %+v, %v", v, got, err)
		}
	}
}
