package sparse

import (
	"maps"
	"math/rand/v2"
	"testing"
)

// TestTable checks that entries which were set are returned, also at the ends, that no others are,
// and that All is ordered.
func TestTable(t *testing.T) {
	for _, n := range []int{1, pageSize - 1, pageSize, pageSize + 1, 1000} {
		table, want := New[int](n), map[int]int{}
		rng := rand.New(rand.NewPCG(uint64(n), 1))
		for i := range 30 {
			at := rng.IntN(n)
			if i == 0 {
				at = n - 1
			}
			table.Set(at, i+1)
			want[at] = i + 1
		}
		got, last := map[int]int{}, -1
		for i, v := range table.All() {
			if i <= last {
				t.Fatalf("%d comes after %d", i, last)
			}
			if last = i; v != 0 {
				got[i] = v
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("%d: %v, want %v", n, got, want)
		}
		for i := range n {
			if v := table.Get(i); v != want[i] {
				t.Errorf("%d of %d: %d, want %d", i, n, v, want[i])
			}
		}
	}
}

// TestMemory checks that a large table with few entries is small.
func TestMemory(t *testing.T) {
	r := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			table := New[*int](100_000)
			table.Set(77_777, new(int))
		}
	})
	if n := r.AllocedBytesPerOp(); n > 20_000 {
		t.Errorf("%d bytes", n)
	}
}
