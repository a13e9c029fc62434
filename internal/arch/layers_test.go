package arch

import (
	"go/types"
	"maps"
	"math/bits"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// upwardPercent is how many of a hundred arrows between the files of a package may go upwards. An
// arrow goes from a file to another whose functions, methods, types or fields it uses.
const upwardPercent = 10

// fewArrows is the number of arrows below which a package is not checked: it is read as a whole.
const fewArrows = 20

// moreUpward are the packages in which more go upwards, with their number. They must not grow.
var moreUpward = map[string]int{
	"bench/transfer":           4,
	"contention/platform":      3,
	"contention/solve":         9,
	"forwarder":                14,
	"internal/jobenv":          7,
	"internal/transport/verbs": 13,
	"internal/wire":            7,
	"launch/doctor":            3,
	"launch/native":            3,
	"launch/spec":              4,
	"mmpi":                     3,
	"mmpi/engine/pt2pt":        15,
	"simulation":               6,
	"simulation/kernel":        9,
	"simulation/play":          10,
}

// TestLayers checks that the files of a package form layers: in the best order of them only a few
// use what is declared in a file above.
func TestLayers(t *testing.T) {
	r := newReader(t)
	used := map[string]bool{}
	for _, dir := range r.packages(t) {
		arrows := r.arrows(dir)
		if len(arrows) < fewArrows {
			continue
		}
		up, limit := upward(arrows), len(arrows)*upwardPercent/100
		if more, ok := moreUpward[dir]; ok && len(up) > limit {
			used[dir], limit = len(up) == more, more
		}
		if len(up) > limit {
			t.Errorf("%s: %d of %d arrows between files go upwards, more than %d: %s", dir, len(up), len(arrows), limit,
				strings.Join(up, ", "))
		}
	}
	for dir := range moreUpward {
		if !used[dir] {
			t.Errorf("%s has fewer upward arrows than internal/arch/layers_test.go allows: lower that", dir)
		}
	}
}

// arrows returns, for each pair of different files of a package, whether the first uses the second.
func (r *reader) arrows(dir string) map[[2]string]bool {
	all := map[[2]string]bool{}
	for id, o := range r.info[dir].Uses {
		if _, name := o.(*types.PkgName); name || o.Pkg() != r.done[module+"/"+dir] {
			continue
		}
		from, to := filepath.Base(r.set.Position(id.Pos()).Filename), filepath.Base(r.set.Position(o.Pos()).Filename)
		if from != to {
			all[[2]string{from, to}] = true
		}
	}
	return all
}

// upward returns the arrows that go upwards in the order of files in which they are fewest. Only
// files that use each other in a circle have any, so each circle is looked at by itself.
func upward(arrows map[[2]string]bool) (list []string) {
	ties := map[string][]string{}
	for _, a := range slices.SortedFunc(maps.Keys(arrows), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		ties[a[0]] = append(ties[a[0]], a[1])
	}
	for _, circle := range circles(ties) {
		order := layers(circle, arrows)
		for from, file := range order {
			for _, above := range order[:from] {
				if arrows[[2]string{file, above}] {
					list = append(list, file+" → "+above)
				}
			}
		}
	}
	return list
}

// layers returns the files in the order, from top to bottom, in which the fewest arrows go upwards.
// It tries all sets of files that may be the lowest ones.
func layers(files []string, arrows map[[2]string]bool) (order []string) {
	uses := make([]uint32, len(files)) // sets of files, as bits
	for i, from := range files {
		for k, to := range files {
			if arrows[[2]string{from, to}] {
				uses[i] |= 1 << k
			}
		}
	}
	fewest := make([]uint16, 1<<len(files)) // by set of the lowest files: upward arrows from these
	top := make([]uint8, 1<<len(files))     // and the highest of them
	for set := uint32(1); set < 1<<len(files); set++ {
		fewest[set] = 1<<16 - 1
		for i := range files {
			if set&(1<<i) == 0 {
				continue
			}
			n := fewest[set&^(1<<i)] + uint16(bits.OnesCount32(uses[i]&^set))
			if n < fewest[set] {
				fewest[set], top[set] = n, uint8(i)
			}
		}
	}
	for set := uint32(1<<len(files) - 1); set != 0; set &^= 1 << top[set] {
		order = append(order, files[top[set]])
	}
	return order
}

// TestFewestUpward checks which arrows of a small package go upwards.
func TestFewestUpward(t *testing.T) {
	got := upward(map[[2]string]bool{{"a", "b"}: true, {"b", "c"}: true, {"a", "c"}: true, {"c", "b"}: true,
		{"b", "d"}: true, {"c", "d"}: true, {"d", "a"}: true, {"d", "e"}: true})
	if len(got) != 2 || !slices.Contains(got, "d → a") {
		t.Errorf("upward: %v", got)
	}
}

// packages returns the folders, with slashes, whose packages can be imported, in order. It leaves
// out folders that have only tests.
func (r *reader) packages(t *testing.T) []string {
	t.Helper()
	var list []string
	for dir := range folders(t) {
		dir = filepath.ToSlash(dir)
		if _, err := r.Import(module + "/" + dir); err == nil {
			list = append(list, dir)
		}
	}
	slices.Sort(list)
	return list
}
