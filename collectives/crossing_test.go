package collectives

import (
	"fmt"
	"math/rand"
	"testing"
)

// least returns the smallest number of payload bytes that must go from cluster f to cluster t, for
// m bytes per rank.
func least(op Op, l *Layout, root, f, t, m int) int {
	home, a, b := l.ClusterOf(root), l.SizeOf(f), l.SizeOf(t)
	when := func(c bool, n int) int {
		if c {
			return n
		}
		return 0
	}
	switch op {
	case OpBcast:
		return when(f == home, m)
	case OpGatherv:
		return when(t == home, a*m)
	case OpScatterv:
		return when(f == home, b*m)
	case OpAllgatherv:
		return a * m
	case OpAlltoallv:
		return a * b * m
	case OpReduce:
		return when(t == home, m)
	case OpAllreduce:
		return m
	case OpReduceScatter:
		return b * m
	case OpScan, OpExscan:
		return when(f < t, m)
	}
	return 0 // barrier
}

// TestCrossing checks that the payload between clusters is minimal, and that a collective takes the
// time of one crossing.
func TestCrossing(t *testing.T) {
	o := xor()
	for shape, clusterOf := range shapes() {
		l := NewLayout(clusterOf, 0)
		for _, bytes := range []int{8, 64 << 10, 4 << 20} {
			if bytes > 64<<10 && shape != "1+1" && shape != "2+2" && shape != "3+4" && shape != "1+1+1" {
				continue
			}
			t.Run(fmt.Sprintf("%s %d B", shape, bytes), func(t *testing.T) {
				for op := OpBarrier; op <= OpExscan; op++ {
					if !l.Contiguous && op >= OpScan {
						continue // every run of ranks has to send its total: see ordered.go
					}
					m := bytes
					if bytes > 64<<10 && (op == OpAlltoallv || op == OpReduceScatter) {
						m = 256 << 10 // per pair of ranks
					}
					units := m
					if op >= OpReduce {
						units = m / o.extent
					}
					root := l.Size / 2
					w := newWorld(clusterOf, 1)
					w.eager = true
					c := newCall(rand.New(rand.NewSource(1)), op, l.Size, units, root, true, false, o)
					if err := run(w, c, o, Tuning{}); err != nil {
						t.Fatalf("%v: %v", op, err)
					}
					for f := range l.Clusters() {
						for k := range l.Clusters() {
							if f == k {
								continue
							}
							if want := least(op, l, root, f, k, m); w.crossed[f][k] != want {
								t.Errorf("%v: %d bytes from cluster %d to %d, want %d", op, w.crossed[f][k], f, k, want)
							}
							if bytes == 8 && w.messages[f][k] > 1 {
								t.Errorf("%v: %d messages from cluster %d to %d for %d bytes", op, w.messages[f][k], f,
									k, bytes)
							}
						}
					}
					last := 0
					for _, p := range w.procs {
						last = max(last, p.clock)
					}
					if last != 1 {
						t.Errorf("%v took %d crossings", op, last)
					}
				}
			})
		}
	}
}

// TestUnevenCountsCrossOnce checks that with different counts only the blocks for the other cluster
// cross, in an alltoall with their lengths.
func TestUnevenCountsCrossOnce(t *testing.T) {
	clusterOf := []int{0, 0, 0, 1, 1, 1, 1}
	l := NewLayout(clusterOf, 0)
	for seed := range int64(20) {
		for _, op := range []Op{OpGatherv, OpScatterv, OpAllgatherv, OpAlltoallv} {
			root := int(seed) % l.Size
			c := newCall(rand.New(rand.NewSource(seed)), op, l.Size, 50, root, false, false, operators()[0])
			w := newWorld(clusterOf, seed)
			if err := run(w, c, operators()[0], Tuning{Combine: 100 * (1 + int(seed)%10)}); err != nil {
				t.Fatal(err)
			}
			want := [2]int{}
			for r, a := range c.args {
				mine := l.ClusterOf(r)
				for q, k := range clusterOf {
					switch {
					case k == mine:
					case op == OpGatherv && r == root:
						want[k] += int(a.RecvCounts[q])
					case op == OpAlltoallv:
						want[mine] += 4 + int(a.SendCounts[q])
					case op == OpScatterv && r == root:
						want[mine] += int(a.SendCounts[q])
					case op == OpAllgatherv && r == l.Member(mine, 0):
						want[k] += int(a.RecvCounts[q])
					}
				}
			}
			if w.crossed[0][1] != want[0] || w.crossed[1][0] != want[1] {
				t.Errorf("%v seed %d: crossed %v, want %v", op, seed, w.crossed, want)
			}
		}
	}
}

// TestManyCarryLargeMessages checks that the bytes of a large collective cross through all ranks
// that have some, or through Leaders ranks.
func TestManyCarryLargeMessages(t *testing.T) {
	clusterOf := []int{0, 0, 0, 0, 1, 1, 1, 1}
	for _, op := range []Op{OpBcast, OpAllreduce, OpAllgatherv} {
		w := newWorld(clusterOf, 1)
		c := newCall(rand.New(rand.NewSource(1)), op, len(clusterOf), 64<<10, 0, true, false, operators()[0])
		if err := run(w, c, operators()[0], Tuning{Segment: 4 << 10, Leaders: 2}); err != nil {
			t.Fatal(err)
		}
		want := map[Op]int{OpBcast: 3, OpAllreduce: 8, OpAllgatherv: 8}[op]
		senders := map[int]bool{}
		for k := range w.pipes {
			senders[k.from] = true
		}
		if len(senders) != want {
			t.Errorf("%v: %d ranks sent, want %d", op, len(senders), want)
		}
	}
}

// TestLeadersCarrySmallAllgathers checks up to which size the leaders exchange the blocks of an
// allgather.
func TestLeadersCarrySmallAllgathers(t *testing.T) {
	for _, tc := range []struct {
		clusterOf []int
		m, want   int // bytes of a block; number of messages from each cluster to the other
	}{
		{[]int{0, 0, 0, 0, 1, 1, 1, 1}, 8 << 10, 1},
		{[]int{0, 0, 0, 0, 1, 1, 1, 1}, 8<<10 + 8, 4},
		{[]int{0, 0, 0, 0, 0, 1, 1, 1, 1, 1}, 5 << 10, 1},
		{[]int{0, 0, 0, 0, 0, 1, 1, 1, 1, 1}, 6 << 10, 5},
	} {
		w := newWorld(tc.clusterOf, 1)
		c := newCall(rand.New(rand.NewSource(1)), OpAllgatherv, len(tc.clusterOf), tc.m, 0, true, false, xor())
		if err := run(w, c, xor(), Tuning{}); err != nil {
			t.Fatal(err)
		}
		if w.messages[0][1] != tc.want || w.messages[1][0] != tc.want {
			t.Errorf("%d B among %v: %v messages between clusters, want %d", tc.m, tc.clusterOf, w.messages, tc.want)
		}
	}
}
