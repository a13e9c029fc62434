package collectives

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

// watched records the native calls and messages of one process. The result of its broadcast is
// kept.
type watched struct {
	l     *Layout
	calls []string
	got   []byte
}

func (w *watched) note(f string, a ...any) (Request, error) {
	w.calls = append(w.calls, fmt.Sprintf(f, a...))
	return nil, nil
}

func (w *watched) Layout() *Layout                              { return w.l }
func (w *watched) Local() Local                                 { return watchedLocal{w: w} }
func (w *watched) Scratch(n int) []byte                         { return make([]byte, n) }
func (w *watched) Reduce(_, _ []byte, _ int) error              { return nil }
func (w *watched) Recode(_ []byte, _ int, _ bool) error         { return nil }
func (w *watched) Send(int, int, []byte) (Request, error)       { return w.note("send") }
func (w *watched) Recv(int, int, []byte) (Request, error)       { return w.note("receive") }
func (w *watched) RecvAtMost(int, int, []byte) (Request, error) { return w.note("receive") }

type watchedLocal struct {
	Local // nil, so that any other call fails
	w     *watched
}

func (l watchedLocal) Rank() int { return l.w.l.local() }
func (l watchedLocal) Size() int { return len(l.w.l.mine()) }

func (l watchedLocal) Gatherv(b, _ []byte, _, _ []int64, root int) (Request, error) {
	return l.w.note("gather %x to %d", b, root)
}

func (l watchedLocal) Bcast(b []byte, root int) (Request, error) {
	for i := range b {
		b[i] = byte(i*7 + 1)
	}
	l.w.got = slices.Clone(b)
	return l.w.note("bcast %d from %d", len(b), root)
}

func (l watchedLocal) Scatterv(_ []byte, _, _ []int64, b []byte, root int) (Request, error) {
	for i := range b {
		b[i] = byte(i*5 + 3)
	}
	l.w.got = slices.Clone(b)
	return l.w.note("scatter %d from %d", len(b), root)
}

// TestLeaf checks that the schedule of a leaf only gives and gets, as Leaf says.
func TestLeaf(t *testing.T) {
	taken := map[Op]int{}
	for _, clusters := range [][]int{{0, 0, 1, 1}, {0, 0, 0, 1, 1, 1, 1}, {0, 0, 0, 0, 1, 1, 1, 1}, {0, 1, 0, 1},
		{0, 0, 1}, {0, 1, 1, 2, 2, 2}, {0, 1, 1, 1, 1, 1, 1, 1, 1, 1}} {
		for rank := range clusters {
			l := NewLayout(clusters, rank)
			for _, n := range []int{0, 1, 8, 1000, 1024, 1032, 2048, 5000, 8192} {
				for _, c := range smallCalls(l, n) {
					a, tuning := c.Args, c.tuning
					p, ok := Leaf(l, a, tuning)
					if !ok {
						continue
					}
					taken[a.Op]++
					w := &watched{l: l}
					s, err := New(w, a, tuning)
					if err != nil {
						t.Fatalf("%v of %d bytes on %v: Leaf accepts arguments that New refuses: %v", a.Op, n, clusters, err)
					}
					if over, err := NewRunner(s).Step(); !over || err != nil {
						t.Fatal(over, err)
					}
					give := a.Send
					if a.Op == OpBarrier {
						give = make([]byte, 1)
					}
					var want []string
					if p.Give != Nothing {
						want = append(want, fmt.Sprintf("gather %x to 0", give[:p.Give]))
					}
					if p.Get != Nothing {
						how := map[bool]string{true: "scatter", false: "bcast"}[a.Op == OpScatterv || a.Op == OpReduceScatter ||
							a.Op == OpAlltoallv]
						want = append(want, fmt.Sprintf("%s %d from 0", how, p.Get))
					}
					if !slices.Equal(w.calls, want) || p.Give != Nothing && p.Give != len(give) {
						t.Fatalf("%v of %d bytes, rank %d of %v: %+v, but the schedule does %q", a.Op, n, rank,
							clusters, p, w.calls)
					}
					if a.Op != OpBarrier && p.Get != Nothing && !bytes.Equal(a.Recv[:p.Get], w.got) {
						t.Fatalf("%v of %d bytes, rank %d of %v: the result differs from the received data", a.Op, n, rank,
							clusters)
					}
				}
			}
		}
	}
	for _, op := range []Op{OpBarrier, OpBcast, OpGatherv, OpScatterv, OpReduce, OpAllreduce, OpReduceScatter, OpAllgatherv,
		OpAlltoallv} {
		if taken[op] == 0 {
			t.Errorf("no %v was taken", op)
		}
	}
}

type tunedCall struct {
	Args
	tuning Tuning
}

// smallCalls returns collectives of n bytes per rank with and without leaves: also with blocks that
// are apart, or of several sizes.
func smallCalls(l *Layout, n int) (calls []tunedCall) {
	send := bytes.Repeat([]byte{byte(l.Rank + 1)}, n)
	all := []Args{{Op: OpBarrier}}
	for root := range l.Size {
		all = append(all, Args{Op: OpBcast, Root: root, Recv: make([]byte, n)})
	}
	for _, commutative := range []bool{true, false} {
		all = append(all, Args{Op: OpAllreduce, Send: send, Recv: make([]byte, n), Count: n, Extent: 1,
			Commutative: commutative})
	}
	for _, root := range []int{0, l.Size / 2, l.Size - 1} {
		if root == l.Rank {
			continue // it has the blocks of all
		}
		for _, uniform := range []bool{true, false} {
			all = append(all, Args{Op: OpGatherv, Root: root, Send: send, Uniform: uniform},
				Args{Op: OpScatterv, Root: root, Recv: make([]byte, n), Uniform: uniform},
				Args{Op: OpReduce, Root: root, Send: send, Count: n, Extent: 1, Commutative: uniform})
		}
	}
	for _, apart := range []int{n, n + 3} {
		for _, more := range []int{0, 2} {
			counts, displs, at := make([]int64, l.Size), make([]int64, l.Size), 0
			for r := range counts {
				counts[r], displs[r] = int64(n+more*r), int64(at)
				at += apart + more*r
			}
			total := bytes.Repeat([]byte{7}, at-l.Size*(apart-n))
			all = append(all, Args{Op: OpReduceScatter, Send: total, Recv: make([]byte, counts[l.Rank]), RecvCounts: counts,
				Extent: 1, Commutative: more == 0})
			own := bytes.Repeat([]byte{9}, int(counts[l.Rank]))
			all = append(all, Args{Op: OpAllgatherv, Send: own, Recv: make([]byte, at), RecvCounts: counts,
				RecvDispls: displs, Uniform: more == 0}, Args{Op: OpAlltoallv, Send: bytes.Repeat(send[:min(n, 1)], at),
				SendCounts: counts, SendDispls: displs, Recv: make([]byte, at), RecvCounts: counts, RecvDispls: displs,
				Uniform: more == 0})
		}
	}
	for _, a := range all {
		calls = append(calls, tunedCall{a, Tuning{}},
			tunedCall{a, Tuning{Slice: 16, CombineBlock: 8 << 10, Combine: 1 << 10}})
	}
	return calls
}
