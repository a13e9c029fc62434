package collectives

import (
	"math/rand"
	"testing"
)

// TestHostsCombineFirst checks that in a large allreduce only the combined operands of a host are
// sent to other hosts of the cluster, and each part of the result once.
func TestHostsCombineFirst(t *testing.T) {
	clusterOf := []int{0, 0, 0, 0, 1, 1, 1, 1, 1, 1}
	const m = 96 << 10
	for _, tc := range []struct {
		places int64 // argument of hostsOf
		what   string
		want   int // bytes in and out: each of h hosts sends m·(1-1/h) bytes each way
	}{{1, "two on each host", 2 * (m + 2*m)}, {2, "in turn on two hosts", 2 * (m + m)}} {
		for _, op := range []operator{xor(), operators()[2]} {
			w := newWorld(clusterOf, tc.places)
			c := newCall(rand.New(rand.NewSource(1)), OpAllreduce, len(clusterOf), m/op.extent, 0, true, false, op)
			if err := run(w, c, op, Tuning{Segment: 5000}); err != nil {
				t.Fatal(err)
			}
			if w.between != tc.want {
				t.Errorf("%s: %d bytes between hosts, want %d", tc.what, w.between, tc.want)
			}
		}
	}
}

// TestLinksOfHosts checks that the bytes of large reductions between a cluster's hosts agree with
// their costs.
func TestLinksOfHosts(t *testing.T) {
	const m = 96 << 10
	o := xor()
	for _, tc := range []struct {
		op    Op
		ranks []int
		want  int
	}{
		// There are two ranks on each host; its sum goes to the next host, in each cluster.
		{OpReduce, []int{0, 0, 0, 0, 1, 1, 1, 1}, 2 * m},
		{OpReduce, []int{0, 0, 0, 1, 1, 1, 1, 1}, m + 2*m},
		// In a cluster every rank combines as many blocks as there are clusters, and gets each of
		// them from the other hosts once.
		{OpReduceScatter, []int{0, 0, 0, 0, 1, 1, 1, 1}, 2 * (8 * m)},
		// The prefix goes from rank to rank, at the border of two hosts.
		{OpScan, []int{0, 0, 0, 0, 1, 1, 1, 1}, 2 * m},
	} {
		w := newWorld(tc.ranks, 1) // two neighbours on a host
		c := newCall(rand.New(rand.NewSource(1)), tc.op, len(tc.ranks), m/o.extent, 0, true, false, o)
		if err := run(w, c, o, Tuning{Segment: 5000, Chunk: 3000}); err != nil {
			t.Fatal(err)
		}
		if w.between != tc.want {
			t.Errorf("%v over %v: %d bytes between hosts, want %d", tc.op, tc.ranks, w.between, tc.want)
		}
	}
}

// TestNativeBlocks checks that the blocks that large reductions and allgathers give to native MPI
// have less than 64 KiB with a header, the limit above which Open MPI asks the receiver over TCP.
func TestNativeBlocks(t *testing.T) {
	const header = 256 // bytes; Open MPI's has less than 64
	o := xor()
	for _, tc := range []struct {
		op    Op
		ranks []int
		m     int
	}{
		{OpReduce, []int{0, 0, 1, 1}, (512 << 10) / o.extent},
		// The ranks of the second cluster join slices of twice a block.
		{OpAllgatherv, []int{0, 0, 0, 0, 1, 1}, 32 << 10},
	} {
		w := newWorld(tc.ranks, 1)
		c := newCall(rand.New(rand.NewSource(1)), tc.op, len(tc.ranks), tc.m, 0, true, false, o)
		if err := run(w, c, o, Tuning{}); err != nil {
			t.Fatal(err)
		}
		if w.largest+header > 64<<10 {
			t.Errorf("%v over %v: a native block has %d bytes", tc.op, tc.ranks, w.largest)
		}
	}
}

func TestGrids(t *testing.T) {
	for _, tc := range []struct {
		hosts           []int
		grid, ordered   bool
		myHost, myPlace int // place of the last rank
	}{
		{hosts: []int{7, 7, 3, 3}, grid: true, ordered: true, myHost: 1, myPlace: 1},
		{hosts: []int{1, 0, 1, 0, 1, 0}, grid: true, myHost: 1, myPlace: 2},
		{hosts: []int{1, 1, 1, 1}}, // nothing between hosts
		{hosts: []int{1, 2, 3, 4}}, // nothing to combine
		{hosts: []int{1, 1, 2}},    // uneven
		{hosts: []int{0}},
	} {
		l := NewLayout(make([]int, len(tc.hosts)), len(tc.hosts)-1)
		l.SetHosts(tc.hosts)
		if (l.grid != nil) != tc.grid {
			t.Errorf("%v: grid %v", tc.hosts, l.grid)
		} else if g := l.grid; g != nil && (g.ordered != tc.ordered || g.host != tc.myHost || g.place != tc.myPlace) {
			t.Errorf("%v: %+v", tc.hosts, g)
		}
	}
}
