package handshake

import (
	"slices"
	"testing"

	"github.com/leidenzipper/zipper/internal/wire"
)

// TestSetting checks that a word of the settings is found by its whole name.
func TestSetting(t *testing.T) {
	for _, c := range []struct{ settings, want string }{
		{"", ""}, {"A=1", ""}, {"X=1", "1"}, {"A=2 X=1,b=2 B=3", "1,b=2"}, {"AX=1", ""}, {"X", ""}, {"A=X=1", ""}, {"X=", ""},
	} {
		if got := Setting(c.settings, "X"); got != c.want {
			t.Errorf("%q: %q, want %q", c.settings, got, c.want)
		}
	}
	for _, c := range []struct {
		settings       string
		outlives, both bool
	}{
		{"", false, false}, {"ZIPPER_ON_LOSS=end", false, false}, {"ZIPPER_ON_LOSS=continue", true, false},
		{"ZIPPER_ON_LOSS=continue ZIPPER_QUORUM=both", true, true},
	} {
		g := NewGather(&wire.Join{Settings: c.settings})
		if g.OutlivesClusters() != c.outlives || g.BothSidesGoOn() != c.both {
			t.Errorf("%q: %v, %v", c.settings, g.OutlivesClusters(), g.BothSidesGoOn())
		}
	}
}

// TestLostClustersInSettings checks that the lost clusters of a process are in the settings of its
// Join, and that settings which differ in them only are equal.
func TestLostClustersInSettings(t *testing.T) {
	for _, lost := range [][]int{nil, {0}, {1, 3}, {5, 255}} {
		for _, s := range []string{"", "A=1"} {
			with := withLost(s, lost)
			if got := Lost(with); !slices.Equal(got, lost) || common(with) != s || len(with) > len(s)+80 {
				t.Errorf("%q: clusters %v, common %q", with, got, common(with))
			}
		}
	}
	for _, s := range []string{"A=1 LOST=", "A=1 LOST=x", "A=1 LOST=-1"} {
		if got := Lost(s); got != nil || common(s) != "A=1" {
			t.Errorf("%q: clusters %v, common %q", s, got, common(s))
		}
	}
}

// TestGatherWithoutLostCluster checks that a job is complete without the ranks of a lost cluster,
// of which some may have joined, and that the layout is that of the others.
func TestGatherWithoutLostCluster(t *testing.T) {
	join := func(cluster string, rank, tag uint32) *wire.Join {
		return &wire.Join{Cluster: cluster, Rank: rank, TagUB: tag, Host: "host", Layout: []wire.Cluster{{Name: "a", Size: 2}, {Name: "b", Size: 2}}}
	}
	g := NewGather(join("a", 0, 7))
	add := func(j *wire.Join) (v int) {
		v, refused := g.Add(j)
		if refused != nil {
			t.Fatal(refused)
		}
		return v
	}
	add(join("a", 0, 7))
	lost := add(join("b", 1, 3))
	g.DoWithout(1)
	g.DoWithout(1)
	if g.Complete() || g.Missing() != "rank 1 of cluster a" {
		t.Errorf("complete %v, missing %s", g.Complete(), g.Missing())
	}
	g.Remove(lost)
	if g.Complete() {
		t.Error("complete without rank 1 of cluster a")
	}
	add(join("a", 1, 9))
	l, refused := g.Layout()
	if !g.Complete() || g.Missing() != "" || refused != nil || l.TagUB != 7 || len(g.Namesakes()) > 0 {
		t.Errorf("complete %v, missing %q, %v, tags to %d, names %v", g.Complete(), g.Missing(), refused, l.TagUB, g.Namesakes())
	}
}
