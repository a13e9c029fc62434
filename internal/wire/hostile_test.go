package wire

import (
	"strconv"
	"strings"
	"testing"
)

// TestMalformedBodiesAreRefused checks bodies that are well formed but must not be accepted.
func TestMalformedBodiesAreRefused(t *testing.T) {
	two := []Cluster{{"a", 1}, {"b", 2}}
	many := make([]Cluster, MaxClusters+1)
	for i := range many {
		many[i] = Cluster{strconv.Itoa(i), 1}
	}
	join := func(change func(*Join)) []byte {
		j := Join{Version: Version, Rails: 1, Job: "j", Cluster: "b", Rank: 1, Layout: two}
		change(&j)
		return j.Append(nil)
	}
	layout := func(change func(*Layout)) []byte {
		l := Layout{Clusters: two, Libraries: []string{"", ""}}
		change(&l)
		return l.Append(nil)
	}
	odd := layout(func(*Layout) {})
	odd[len(odd)-12] = 2 // the length before no doors and no keys
	pj, pl := parser(ParseJoin), layoutParser(Oldest)
	for _, c := range []struct {
		name  string
		b     []byte
		parse func([]byte) (any, error)
		want  string // part of the error; empty if there is none
	}{
		{"good join", join(func(*Join) {}), pj, ""},
		{"rank outside", join(func(j *Join) { j.Rank = 2 }), pj, "rank 2"},
		{"foreign cluster", join(func(j *Join) { j.Cluster = "c" }), pj, "not in its own layout"},
		{"no clusters", join(func(j *Join) { j.Layout = nil }), pj, "0 clusters"},
		{"many clusters", join(func(j *Join) { j.Layout = many }), pj, "257 clusters"},
		{"same name", join(func(j *Join) { j.Layout = []Cluster{{"b", 2}, {"b", 2}} }), pj, "bad layout"},
		{"no name", join(func(j *Join) { j.Layout = []Cluster{{"", 2}, {"b", 2}} }), pj, "bad layout"},
		{"no ranks", join(func(j *Join) { j.Layout = []Cluster{{"a", 0}, {"b", 2}} }), pj, "bad layout"},
		{"too many ranks", join(func(j *Join) { j.Layout = []Cluster{{"a", MaxRanks}, {"b", 2}} }), pj, "bad layout"},
		{"sum overflows", join(func(j *Join) { j.Layout = []Cluster{{"a", 1<<32 - 1}, {"b", 2}} }), pj, "bad layout"},
		{"not UTF-8", join(func(j *Join) { j.Host = "\xff" }), pj, "UTF-8"},
		{"other version", join(func(j *Join) { j.Version = Version + 1; j.Layout = nil }), pj, ""},
		{"zipper outside", join(func(j *Join) { j.Zippers = []Zipper{{Ports: []Port{{2, "x"}}}} }), pj, "network 2 of 2"},
		{"zipper without ports", join(func(j *Join) { j.Zippers = []Zipper{{}} }), pj, "0 of 2 networks"},
		{"network without a name", join(func(j *Join) { j.Networks = []string{""} }), pj, "not its own"},
		{"network twice", join(func(j *Join) { j.Networks = []string{"w", "w"} }), pj, "not its own"},
		{"network like a cluster", join(func(j *Join) { j.Networks = []string{"a"} }), pj, "not its own"},
		{"many networks", join(func(j *Join) { j.Networks = make([]string, MaxNetworks+1) }), pj, "at most 64"},
		{"forwarder outside", join(func(j *Join) { j.Here = 1 }), pj, "forwarder 1 of 0"},
		{"door to its own cluster", join(func(j *Join) { j.Doors = []Port{{1, "x"}} }), pj, "own cluster"},
		{"door without an address", join(func(j *Join) { j.Doors = []Port{{0, ""}} }), pj, "without an address"},
		{"door outside", join(func(j *Join) { j.Doors = []Port{{2, "x"}} }), pj, "network 2 of 2"},
		{"many doors", join(func(j *Join) { j.Doors = []Port{{0, "x"}, {0, "y"}} }), pj, "2 doors for 1"},
		{"no rails", join(func(j *Join) { j.Rails = 0 }), pj, "no forwarder"},
		{"sealed without a key", join(func(j *Join) { j.Level = LevelSealed }), pj, "level sealed"},
		{"a key for nothing", join(func(j *Join) { j.SealKey[0] = 1 }), pj, "level plain"},
		{"good layout", layout(func(*Layout) {}), pl, ""},
		{"rank outside", layout(func(l *Layout) { l.Rank = 3 }), pl, "rank 3 of 3"},
		{"namesake flag of 2", odd, pl, "namesake is 2"},
		{"libraries", layout(func(l *Layout) { l.Libraries = l.Libraries[:1] }), pl, "1 libraries"},
		{"door of no rank", layout(func(l *Layout) { l.Doors = []Door{{3, 0, Port{0, "x"}}} }), pl, "rank 3 of 3"},
		{"door for no cluster", layout(func(l *Layout) { l.Doors = []Door{{0, 0, Port{2, "x"}}} }), pl, "cluster 2 of 2"},
		{"door nowhere", layout(func(l *Layout) { l.Doors = []Door{{0, 0, Port{1, ""}}} }), pl, "door"},
		{"keys of some", layout(func(l *Layout) { l.Keys = make([]SealKey, 2) }), pl, "2 keys for 3 ranks"},
		{"string too long", append([]byte{1, 0, 0, 0, 1, 0x10}, make([]byte, 4097)...), parser(ParseRefuse), "at most 4096"},
		{"name too long", join(func(j *Join) { j.Host = strings.Repeat("h", MaxName+1) }), pj, "at most 255"},
		{"neither up nor down", []byte{1, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0}, parser(ParseRailState), "neither"},
		{"no cluster is lost", []byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, parser(ParseLost), "0 clusters are lost"},
		{"too many are lost", []byte{1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0}, parser(ParseLost), "257 clusters are lost"},
		{"lost cluster outside", []byte{1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0}, parser(ParseLost), "cluster 256"},
		{"neither yes nor no", []byte{0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}, parser(ParseCancelReply), "neither"},
	} {
		_, err := c.parse(c.b)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
