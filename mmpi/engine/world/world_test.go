package world

import (
	"testing"

	"github.com/leidenzipper/zipper/internal/wire"
)

// TestPlace checks the cluster and the first rank of each virtual rank, and the bounds of the own
// cluster.
func TestPlace(t *testing.T) {
	w := World{Rank: 3, Clusters: []wire.Cluster{{Name: "a", Size: 2}, {Name: "b", Size: 3}}}
	for rank, want := range map[int][2]int{-1: {-1, -1}, 0: {0, 0}, 1: {0, 0}, 2: {1, 2}, 4: {1, 2}, 5: {-1, -1}} {
		if c, first := w.Place(rank); c != want[0] || first != want[1] {
			t.Errorf("rank %d: %d, %d, want %d", rank, c, first, want)
		}
	}
	if first, end := w.Mine(); first != 2 || end != 5 || w.Size() != 5 {
		t.Errorf("mine: %d to %d of %d", first, end, w.Size())
	}
}
