package handshake

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/facts"
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
		got, err := wire.ParseLayout(l.Append(nil), l.Version)
		if err != nil || got.Namesake != want[v] {
			t.Errorf("rank %d: %+v, %v", v, got, err)
		}
	}
}

// TestFactsOfAllClustersAreInTheLayout checks that clusters with different formats of long double
// make a job, and that each rank learns of the formats. A cluster has one format.
func TestFactsOfAllClustersAreInTheLayout(t *testing.T) {
	joins := map[string]*wire.Join{}
	for _, c := range []struct {
		name  string
		rank  int
		facts facts.Word
	}{{"a", 0, x86}, {"b", 0, arm | 1<<28}, {"b", 1, x86}} {
		id := member(c.name, c.rank)
		id.Facts = c.facts
		_, e := joinUntilDecision(t, id, acceptor(byte(len(joins)+1), ""))
		joins[fmt.Sprint(c.name, c.rank)] = e.Join
	}
	g := NewGather(joins["a0"])
	for _, name := range []string{"a0", "b0"} {
		if _, refused := g.Add(joins[name]); refused != nil {
			t.Fatal(name, refused)
		}
	}
	_, refused := g.Add(joins["b1"])
	if refused == nil || !strings.Contains(refused.Reason, "the formats of long double differ inside the cluster") {
		t.Errorf("%v", refused)
	}
	joins["b1"].Facts = arm
	if _, refused := g.Add(joins["b1"]); refused != nil {
		t.Fatal(refused)
	}
	l, refused := g.Layout()
	if refused != nil {
		t.Fatal(refused)
	}
	got, err := wire.ParseLayout(l.Append(nil), l.Version)
	if want := []facts.Word{x86, arm | 1<<28}; err != nil || !slices.Equal(got.Facts, want) {
		t.Errorf("%v, %v", got.Facts, err)
	}
}

// TestOlderForwarderGetsTheProcessorsName checks that a rank names its processor to a forwarder
// that does not know facts, so that this forwarder still refuses others.
func TestOlderForwarderGetsTheProcessorsName(t *testing.T) {
	id := member("a", 0)
	id.Model = "amd64 little endian"
	key := [wire.SealKeyLen]byte{9} // the base point of X25519
	j, err := id.join(&wire.Challenge{Version: wire.FactsSince - 1, Oldest: wire.Oldest, LinkKey: key},
		[wire.NonceLen]byte{}, "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := wire.ParseJoin(j.Append(nil))
	if err != nil || got.Version != wire.FactsSince-1 || got.Model != id.Model || got.Facts != 0 {
		t.Errorf("version %d, model %q, facts %v, %v", got.Version, got.Model, got.Facts, err)
	}
	other := got
	other.Cluster, other.Model = "b", "arm64 little endian"
	g := NewGather(&got)
	g.Add(&got)
	if _, refused := g.Add(&other); refused == nil || refused.Code != wire.RefuseModel {
		t.Errorf("%v", refused)
	}
}
