package collectives

import (
	"math/rand"
	"slices"
	"testing"
)

// TestAlltoallMemory checks that the memory of leaders is bounded in a small alltoall, and that the
// result is the same, also in clusters of very different sizes.
func TestAlltoallMemory(t *testing.T) {
	var clusterOf []int
	for k, n := range []int{24, 1, 13} {
		for range n {
			clusterOf = append(clusterOf, k)
		}
	}
	const m = 40
	largest := func(window int) (n int) {
		w := newWorld(clusterOf, 3)
		c := newCall(rand.New(rand.NewSource(4)), OpAlltoallv, len(clusterOf), m, 0, true, false, operators()[0])
		if err := run(w, c, operators()[0], Tuning{Window: window}); err != nil {
			t.Fatalf("window of %d bytes: %v", window, err)
		}
		for _, p := range w.procs {
			n = max(n, p.largest)
		}
		return n
	}
	whole := largest(1 << 20)
	for _, window := range []int{whole / 2, whole / 5, 2 * 24 * m} {
		if n := largest(window); n > window {
			t.Errorf("%d bytes at once, %d allowed; %d as a whole", n, window, whole)
		}
	}
	// This is the smallest possible size, that of one receiver.
	if n := largest(1); n > 2*24*m {
		t.Errorf("%d bytes at once for one receiver in each cluster", n)
	}
}

// TestPieces checks two clusters of 5000 ranks each, and 256 clusters.
func TestPieces(t *testing.T) {
	const most = 16 << 20
	for _, c := range []struct{ clusters, ranks, m, width, pieces int }{
		{2, 5000, 8, 419, 12}, {2, 5000, 1 << 10, 3, 1667}, {2, 4, 8, 524288, 1}, {256, 40, 8, 205, 1}, {2, 1 << 16, 1 << 10, 1, 1 << 16},
	} {
		l := &Layout{Size: c.clusters * c.ranks, Sizes: slices.Repeat([]int{c.ranks}, c.clusters)}
		width, pieces := l.pieces(c.m, most)
		if width != c.width || pieces != c.pieces {
			t.Errorf("%d × %d ranks, %d bytes: %d receivers in each of %d pieces, want %d, %d", c.clusters, c.ranks,
				c.m,
				width, pieces, c.width, c.pieces)
		}
	}
}
