package engine

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
)

// pattern returns n bytes that identify the rank that made them.
func pattern(rank, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rank*37 + i*11 + i/251)
	}
	return b
}

// collCase is one collective of n ranks on m bytes each.
type collCase struct {
	args []Coll
	want [][]byte
}

func newCollCase(op collectives.Op, n, m, root int) collCase {
	c := collCase{make([]Coll, n), make([][]byte, n)}
	counts, displs := make([]int64, n), make([]int64, n)
	var all, sum []byte
	for r := range n {
		counts[r], displs[r] = int64(m), int64(r*m)
		all = append(all, pattern(r, m)...)
	}
	add := func(to, from []byte) []byte {
		if to == nil {
			return bytes.Clone(from)
		}
		to = bytes.Clone(to)
		for i := range from {
			to[i] += from[i]
		}
		return to
	}
	for r := range n {
		sum = add(sum, pattern(r, m))
	}
	var before []byte
	for r := range n {
		a := &c.args[r]
		a.Args = collectives.Args{Op: op, Root: root, Send: pattern(r, m), Recv: make([]byte, m), Uniform: true,
			Count: m, Extent: 1, Commutative: true}
		a.Type, a.Operator = 7, 8
		switch op {
		case collectives.OpBcast:
			if r == root {
				copy(a.Recv, pattern(root, m))
			}
			c.want[r] = pattern(root, m)
		case collectives.OpGatherv, collectives.OpAllgatherv:
			if r == root || op == collectives.OpAllgatherv {
				a.Recv, a.RecvCounts, a.RecvDispls, c.want[r] = make([]byte, n*m), counts, displs, all
			}
		case collectives.OpScatterv:
			if r == root {
				a.Send, a.SendCounts, a.SendDispls = all, counts, displs
			}
			c.want[r] = pattern(r, m)
		case collectives.OpAlltoallv:
			a.Send, a.SendCounts, a.SendDispls = pattern(r, n*m), counts, displs
			a.Recv, a.RecvCounts, a.RecvDispls = make([]byte, n*m), counts, displs
			for s := range n {
				c.want[r] = append(c.want[r], pattern(s, n*m)[r*m:][:m]...)
			}
		case collectives.OpReduce:
			if r == root {
				c.want[r] = sum
			}
		case collectives.OpAllreduce:
			c.want[r] = sum
		case collectives.OpReduceScatter:
			a.Send, a.RecvCounts = pattern(r, n*m), counts
			var s []byte
			for q := range n {
				s = add(s, pattern(q, n*m))
			}
			c.want[r] = s[r*m:][:m]
		case collectives.OpScan:
			before = add(before, pattern(r, m))
			c.want[r] = before
		case collectives.OpExscan:
			if r > 0 {
				c.want[r] = before
			}
			before = add(before, pattern(r, m))
		}
	}
	return c
}

// TestConcurrentCollectivesGiveResults runs every collective through engines and frames, several at
// a time in one communicator, and checks the results.
func TestConcurrentCollectivesGiveResults(t *testing.T) {
	for _, sizes := range [][]int{{1, 1}, {2, 2}, {3, 4}, {1, 2, 1}} {
		for _, m := range []int{0, 1, 1000, 70 << 10} {
			f := newFabric(t, sizes, Limits{})
			comms := f.world(5)
			n := len(f.engines)
			var cases []collCase
			var cells [][]Cell
			for op := collectives.OpBarrier; op <= collectives.OpExscan; op++ {
				cases, cells = append(cases, newCollCase(op, n, m, n-1)), append(cells, make([]Cell, n))
			}
			for r, e := range f.engines {
				for i := range cases {
					if err := e.Collective(comms[r], cases[i].args[r], &cells[i][r]); err != nil {
						t.Fatal(err)
					}
				}
				if !f.natives[r].busy {
					t.Errorf("threads may block in native MPI while rank %d has collectives", r)
				}
			}
			f.settle()
			for i, c := range cases {
				for r := range n {
					op := c.args[r].Op
					if !cells[i][r].Done() || cells[i][r].Err() != nil {
						t.Fatalf("%v of %d bytes over %v: rank %d done %v, %v", op, m, sizes, r, cells[i][r].Done(),
							cells[i][r].Err())
					}
					if c.want[r] != nil && !bytes.Equal(c.args[r].Recv, c.want[r]) {
						t.Fatalf("%v of %d bytes over %v: rank %d has a wrong result", op, m, sizes, r)
					}
				}
			}
			for r, e := range f.engines {
				if e.DropComm(comms[r]) != nil || f.natives[r].busy || nativesOf(e) != 0 {
					t.Errorf("rank %d is not idle afterwards", r)
				}
			}
		}
	}
}

// TestStagingOnlyWithoutWorkForLinks checks that an engine's activity is Staging exactly while no
// frame from a link could end a wait.
func TestStagingOnlyWithoutWorkForLinks(t *testing.T) {
	f := newFabric(t, []int{2, 1}, Limits{})
	comms := f.world(5)
	step := func(what string, want ...Activity) {
		t.Helper()
		for r, e := range f.engines[:2] {
			e.Progress(0)
			if got := f.natives[r].does; got != want[r] {
				t.Errorf("%s: rank %d says %d, want %d", what, r, got, want[r])
			}
		}
	}
	var cells [3]Cell
	barrier := func(r int) {
		t.Helper()
		if err := f.engines[r].Collective(comms[r], newCollCase(collectives.OpBarrier, 3, 0, 0).args[r],
			&cells[r]); err != nil {
			t.Fatal(err)
		}
	}
	step("nothing", Idle, Idle)
	barrier(1)
	step("a native gather that waits for rank 0", Idle, Staging)
	var got Cell
	if err := f.engines[1].Irecv(comms[1], KindP2P, make([]byte, 8), 2, 3, &got); err != nil {
		t.Fatal(err)
	}
	step("and a receive from the other cluster", Idle, Busy)
	barrier(0)
	f.engines[0].Progress(0)
	step("rank 0 waits for the other cluster", Busy, Busy)
	barrier(2)
	var sent Cell
	if err := f.engines[2].Isend(comms[2], KindP2P, make([]byte, 8), 1, 3, false, &sent); err != nil {
		t.Fatal(err)
	}
	f.settle()
	step("the end", Idle, Idle)
	for r := range cells {
		if !cells[r].Done() || !got.Done() {
			t.Errorf("rank %d is not through", r)
		}
	}
}

// TestSkippedCollectivesCount checks that collectives that some processes have done without the
// engine count when messages are matched with those of others.
func TestSkippedCollectivesCount(t *testing.T) {
	f := newFabric(t, []int{1, 1}, Limits{})
	comms := f.world(5)
	c := newCollCase(collectives.OpAllreduce, 2, 8, 0)
	var cells [2]Cell
	c.args[0].Skipped = 3
	for range 3 { // process 1 does not need process 0 to have done these
		var cell Cell
		if err := f.engines[1].Collective(comms[1],
			Coll{Args: collectives.Args{Op: collectives.OpBcast, Recv: make([]byte, 4), Root: 1}}, &cell); err != nil ||
			!cell.Done() {
			t.Fatal(err, cell)
		}
	}
	for r, e := range f.engines {
		if err := e.Collective(comms[r], c.args[r], &cells[r]); err != nil {
			t.Fatal(err)
		}
	}
	f.settle()
	for r := range cells {
		if !cells[r].Done() || !bytes.Equal(c.args[r].Recv, c.want[r]) {
			t.Errorf("rank %d: done %v, %x", r, cells[r].Done(), c.args[r].Recv)
		}
	}
}

// TestCollectivesSendLeastPayload checks that the payload between clusters is the least that each
// collective needs.
func TestCollectivesSendLeastPayload(t *testing.T) {
	for _, sizes := range [][]int{{1, 1}, {2, 2}, {3, 4}} {
		for _, m := range []int{8, 64 << 10, 200 << 10} {
			for op := collectives.OpBarrier; op <= collectives.OpExscan; op++ {
				f := newFabric(t, sizes, Limits{})
				comms := f.world(5)
				a, b := sizes[0], sizes[1]
				c := newCollCase(op, a+b, m, 0)
				var got [2]int
				f.edit = func(h *wire.Header, frame []byte) [][]byte {
					if h.Type == wire.TypeEager || h.Type == wire.TypeData {
						from := 0
						if int(h.Src) >= a {
							from = 1
						}
						got[from] += h.Payload()
					}
					return [][]byte{frame}
				}
				cells := make([]Cell, a+b)
				for r, e := range f.engines {
					if err := e.Collective(comms[r], c.args[r], &cells[r]); err != nil {
						t.Fatal(err)
					}
				}
				f.settle()
				want := map[collectives.Op][2]int{
					collectives.OpBcast: {m, 0}, collectives.OpGatherv: {0, b * m}, collectives.OpScatterv: {b * m, 0},
					collectives.OpAllgatherv: {a * m, b * m}, collectives.OpAlltoallv: {a * b * m, a * b * m}, collectives.OpReduce: {0, m},
					collectives.OpAllreduce: {m, m}, collectives.OpReduceScatter: {b * m, a * m}, collectives.OpScan: {m, 0}, collectives.OpExscan: {m, 0},
				}[op]
				if got != want {
					t.Errorf("%v of %d bytes over %v: %v bytes crossed, want %v", op, m, sizes, got, want)
				}
			}
		}
	}
}

// TestWrongCountFailsOnlyItsRank checks that a rank that expects another number of bytes than it
// receives gets an error, and no other rank does.
func TestWrongCountFailsOnlyItsRank(t *testing.T) {
	for _, short := range []int{90, 110} {
		f := newFabric(t, []int{1, 1}, Limits{})
		comms := f.world(5)
		c := newCollCase(collectives.OpBcast, 2, 100, 0)
		c.args[1].Recv = make([]byte, short)
		cells := make([]Cell, 2)
		for r, e := range f.engines {
			if err := e.Collective(comms[r], c.args[r], &cells[r]); err != nil {
				t.Fatal(err)
			}
		}
		f.settle()
		if cells[0].Err() != nil || !cells[1].Done() || Code(cells[1].Error) != ErrTruncate {
			t.Errorf("buffer of %d bytes: sender %v, receiver %v", short, cells[0].Err(), cells[1].Err())
		}
	}
}

// TestNativeStageKeepsErrorCode checks that the code of a native collective's error is that of the
// collective over clusters, so that the program gets the error class of the native library.
func TestNativeStageKeepsErrorCode(t *testing.T) {
	f := newFabric(t, []int{2, 1}, Limits{})
	comms := f.world(5)
	c := newCollCase(collectives.OpAllreduce, 3, 10, 0)
	f.natives[1].refuses = fault.New(ErrOp, "no such operator")
	cells := make([]Cell, 3)
	for r, e := range f.engines {
		if err := e.Collective(comms[r], c.args[r], &cells[r]); err != nil && CodeOf(err) != ErrOp {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	f.settle()
	if code := Code(cells[1].Error); code != ErrOp {
		t.Errorf("code %v, done %v", code, cells[1].Done())
	}
}

func TestCollectiveRejectsBadArguments(t *testing.T) {
	f := newFabric(t, []int{1, 1}, Limits{})
	c := f.world(5)[0]
	a := newCollCase(collectives.OpBcast, 2, 1, 0).args[0]
	a.Root = 2
	if err := f.engines[0].Collective(c, a, new(Cell)); CodeOf(err) != ErrArg {
		t.Errorf("root 2 of 2: %v", err)
	}
	a.Root = 0
	f.engines[0].lock()
	f.engines[0].fatal(ErrLink, 1, "gone")
	f.engines[0].unlock()
	if err := f.engines[0].Collective(c, a, new(Cell)); CodeOf(err) != ErrLink {
		t.Errorf("after the link is lost: %v", err)
	}
}

// TestCollectivesFailWithTheLink checks that all collectives under way or queued end with the
// error.
func TestCollectivesFailWithTheLink(t *testing.T) {
	f := newFabric(t, []int{2, 2}, Limits{})
	comms := f.world(5)
	var cells [3]Cell
	for i := range cells {
		if err := f.engines[0].Collective(comms[0], newCollCase(collectives.OpAllreduce, 4, 10, 0).args[0],
			&cells[i]); err != nil {
			t.Fatal(err)
		}
	}
	f.engines[0].lock()
	f.engines[0].fatal(ErrLink, 1, "gone")
	f.engines[0].unlock()
	for i := range cells {
		if Code(cells[i].Error) != ErrLink || !cells[i].Done() {
			t.Errorf("collective %d: %v", i, fmt.Sprint(cells[i]))
		}
	}
}

// nativesOf returns the number of native collectives under way.
func nativesOf(e *Engine) int {
	_, n := e.colls.Count()
	return n
}
