package engine

import (
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/jobenv"
	"github.com/leidenzipper/zipper/wire"
)

func TestUnopened(t *testing.T) {
	door := func(rank uint32, cluster uint16) wire.Door {
		return wire.Door{Rank: rank, Port: wire.Port{Cluster: cluster, Address: "10.2.0.1:99"}}
	}
	for _, c := range []struct {
		dual  string
		doors []wire.Door
		want  string
	}{
		{"", nil, ""},
		{"b@10.2.0.1", []wire.Door{door(1, 1)}, ""},
		{"b@10.2.0.1", nil, "from cluster b: no node where they run has the address 10.2.0.1 ("},
		{"b@10.2.0.1", []wire.Door{door(2, 0)}, "from cluster b:"}, // another cluster's
		{"b@10.2.0.1+b@10.2.0.2", []wire.Door{door(0, 1)}, ""},     // no ranks on the second node
		{"10.2.0.1+c@10.3.0.1", []wire.Door{door(0, 1)}, "from cluster c: no node where they run has the address 10.2.0.1 or 10.3.0.1 ("},
		{"10.2.0.1", nil, "from cluster b, c: no node where they run has the address 10.2.0.1 ("},
	} {
		d, err := jobenv.ParseDual(c.dual)
		if err != nil {
			t.Fatal(err)
		}
		job := &jobenv.Job{Cluster: "a", Layout: []jobenv.Cluster{{Name: "a", Size: 2}, {Name: "b", Size: 1}, {Name: "c", Size: 1}}, Dual: d}
		layout := &wire.Layout{Clusters: []wire.Cluster{{Name: "a", Size: 2}, {Name: "b", Size: 1}, {Name: "c", Size: 1}}, Doors: c.doors}
		if got := unopened(job, layout); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.dual, got, c.want)
		}
	}
}
