package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// TestFinishTreeLeadsToTheRoot checks that every rank but the root has one parent, which is of
// another cluster and has it as a child; that a way leads from every rank to the root; and that no
// rank has more children than necessary.
func TestFinishTreeLeadsToTheRoot(t *testing.T) {
	for _, sizes := range [][]uint32{{1, 1}, {2, 3}, {1, 200}, {200, 1}, {5, 1, 1, 300}, {5000, 5000}, {40, 70, 1}, {3}} {
		w := World{}
		for i, n := range sizes {
			w.Clusters = append(w.Clusters, wire.Cluster{Name: string(rune('a' + i)), Size: n})
		}
		size, first := w.Size(), int(sizes[0])
		most := max(finishFan, (size-first+first-1)/first, first/max(1, size-first)+1)
		parents := make([]int, size)
		children := make([][]int, size)
		for r := range size {
			w.Rank = r
			parents[r], children[r] = finishTree(&w)
		}
		for r := range size {
			if len(children[r]) > most {
				t.Errorf("%v: rank %d has %d children", sizes, r, len(children[r]))
			}
			for _, c := range children[r] {
				in, _ := w.Place(r)
				if of, _ := w.Place(c); parents[c] != r || in == of {
					t.Fatalf("%v: rank %d is a child of %d, and its parent is %d", sizes, c, r, parents[c])
				}
			}
			if p := parents[r]; p >= 0 && !slices.Contains(children[p], r) {
				t.Fatalf("%v: rank %d does not know of its child %d", sizes, p, r)
			}
			steps := 0
			for at := r; at > 0 && len(sizes) > 1; at = parents[at] {
				if steps++; steps > 10 {
					t.Fatalf("%v: no way from rank %d to the root", sizes, r)
				}
			}
		}
	}
}

// TestFinishReturnsForAbort checks that a program that ends the job gets its thread back while the
// other processes have not called Finish, and that its Abort still reaches them.
func TestFinishReturnsForAbort(t *testing.T) {
	engines, _, _ := railed(t, 1, 1, 1)
	e, other := engines[0], engines[1]
	e.leave = func() bool { return true }
	if err := e.Finish(); err == nil || CodeOf(err) != ErrAborted {
		t.Errorf("Finish: %v", err)
	}
	e.Abort(42, "MPI_Abort")
	if err := other.await(10*time.Second, "end of the job", func() bool { return false }); CodeOf(err) != ErrAborted {
		t.Error(err)
	}
	if n := other.native.(*fakeNative); n.code != 42 {
		t.Errorf("exit status %d, want 42", n.code)
	}
}
