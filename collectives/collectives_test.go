package collectives

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"testing"
)

// shapes returns the cluster of every rank for several communicators.
func shapes() map[string][]int {
	return map[string][]int{
		"1+1":            {0, 1},
		"2+2":            {0, 0, 1, 1},
		"3+4":            {0, 0, 0, 1, 1, 1, 1},
		"4+6":            {0, 0, 0, 0, 1, 1, 1, 1, 1, 1},
		"1+1+1":          {0, 1, 2},
		"2+1+3":          {0, 0, 1, 2, 2, 2},
		"1+6":            {7, 3, 3, 3, 3, 3, 3},
		"2+9":            {0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1},
		"interleaved 2":  {0, 1, 0, 1, 1, 0},
		"interleaved 3":  {2, 0, 0, 1, 2, 2, 1, 0},
		"inner 2":        {0, 1, 1, 0},
		"1+1 of 4, ends": {0, 1, 1, 1, 2},
	}
}

// run performs a call in a world.
func run(w *world, c call, o operator, t Tuning) error {
	w.op, w.extent = o.apply, o.extent
	for r, p := range w.procs {
		s, err := New(p, c.args[r], t)
		if err != nil {
			return err
		}
		p.runner = NewRunner(s)
	}
	if err := w.run(); err != nil {
		return err
	}
	return c.check(o)
}

// TestAgainstReference compares every collective with a plain computation.
func TestAgainstReference(t *testing.T) {
	tunings := map[string]Tuning{
		"default":      {},
		"small pieces": {Segment: 48, Chunk: 20, Window: 96, LocalDepth: 1, Leaders: 2, Slice: 1, Combine: 1, CombineBlock: 1, Few: 60, Pair: 50},
		"few bytes":    {Segment: 5, Chunk: 3, Window: 20, Slice: 1, Combine: 1, CombineBlock: 1, Few: 1, Pair: 1},
		"combined":     {Segment: 40, Window: 160, LocalDepth: 3, Leaders: 9, Slice: 200, Combine: 1 << 20, CombineBlock: 1 << 20, Few: 1 << 20},
	}
	for shape, clusterOf := range shapes() {
		for tuned, tuning := range tunings {
			t.Run(shape+" "+tuned, func(t *testing.T) {
				t.Parallel()
				for op := OpBarrier; op <= OpExscan; op++ {
					for _, m := range []int{0, 1, 5, 33, 300} {
						trial(t, op, clusterOf, m, tuning)
					}
				}
			})
		}
	}
}

func trial(t *testing.T, op Op, clusterOf []int, m int, tuning Tuning) {
	t.Helper()
	for root := range clusterOf {
		for _, o := range operators() {
			if op < OpReduce && o.name != "sum" {
				continue
			}
			for half := range 2 {
				uniform, inPlace := half == 0, (half+root+m)%2 == 0
				seed := int64(root*100 + m*7 + half)
				rng := rand.New(rand.NewSource(seed))
				c := newCall(rng, op, len(clusterOf), m, root, uniform, inPlace, o)
				if err := run(newWorld(clusterOf, seed), c, o, tuning); err != nil {
					t.Fatalf("%v of %s, %d per rank, root %d, uniform %v, in place %v, seed %d: %v", op, o.name, m,
						root, uniform, inPlace, seed, err)
				}
			}
		}
		if op == OpBarrier || op == OpAllgatherv || op == OpAlltoallv || op > OpReduce {
			break // no root
		}
	}
}

// TestRecodedReductions checks that all elements that cross between clusters are converted, with a
// format between clusters that no operator would get right.
func TestRecodedReductions(t *testing.T) {
	for shape, clusterOf := range shapes() {
		for op := OpReduce; op <= OpExscan; op++ {
			for _, m := range []int{0, 1, 5, 300} {
				for _, o := range operators() {
					root, seed := (m+int(op))%len(clusterOf), int64(m)
					c := newCall(rand.New(rand.NewSource(seed)), op, len(clusterOf), m, root, true, m%2 == 0, o)
					for r := range c.args {
						c.args[r].Recoded = true
					}
					if err := run(newWorld(clusterOf, seed), c, o, Tuning{Segment: 64, Slice: 32}); err != nil {
						t.Fatalf("%s, %v of %s, %d per rank: %v", shape, op, o.name, m, err)
					}
				}
			}
		}
	}
}

// TestBarrierSeparates checks that no rank leaves the barrier before the last one has entered.
func TestBarrierSeparates(t *testing.T) {
	for shape, clusterOf := range shapes() {
		for late := range clusterOf {
			w := newWorld(clusterOf, int64(late))
			for _, p := range w.procs {
				s, err := New(p, Args{Op: OpBarrier}, Tuning{})
				if err != nil {
					t.Fatal(err)
				}
				p.runner = NewRunner(s)
			}
			coming := false
			rounds := w.procs[late].runner.rounds
			w.procs[late].runner = NewRunner(append(Schedule{func() ([]Request, error) {
				coming = true
				return nil, nil
			}}, rounds...))
			for range 200 {
				for r, p := range w.procs {
					if r == late {
						continue
					}
					if over, _ := p.runner.Step(); over {
						t.Fatalf("%s: rank %d left the barrier before rank %d came", shape, r, late)
					}
				}
				w.any()
			}
			if err := w.run(); err != nil || !coming {
				t.Fatalf("%s: %v", shape, err)
			}
		}
	}
}

// TestSameBitsEveryRun checks that timing does not change the order of a reduction.
func TestSameBitsEveryRun(t *testing.T) {
	o := operators()[2]
	for shape, clusterOf := range shapes() {
		for try := range 3 * int64(OpExscan-OpReduce+1) {
			op, places := OpReduce+Op(try/3), try%3 // number of the placement on hosts
			var first [][]byte
			for seed := places; seed < 15; seed += 3 {
				c := newCall(rand.New(rand.NewSource(1)), op, len(clusterOf), 100, 0, true, false, o)
				if err := run(newWorld(clusterOf, seed), c, o, Tuning{Segment: 64, Slice: 32}); err != nil {
					t.Fatal(err)
				}
				for r := range c.args {
					if seed == places {
						first = append(first, c.args[r].Recv)
					} else if !bytes.Equal(first[r], c.args[r].Recv) {
						t.Fatalf("%v over %s: rank %d has other bits with seed %d", op, shape, r, seed)
					}
				}
			}
		}
	}
}

func TestArgumentsAreChecked(t *testing.T) {
	w := newWorld([]int{0, 1}, 1)
	two, outside := []int64{1, 1}, []int64{0, 9}
	for _, a := range []Args{
		{Op: 99},
		{Op: OpBcast, Root: 2},
		{Op: OpBcast, Root: -1},
		{Op: OpGatherv, Recv: make([]byte, 2), RecvCounts: two, RecvDispls: outside},
		{Op: OpGatherv, Recv: make([]byte, 2), RecvCounts: two[:1], RecvDispls: outside},
		{Op: OpScatterv, Send: make([]byte, 2), SendCounts: []int64{-1, 1}, SendDispls: two},
		{Op: OpAllgatherv, Recv: make([]byte, 2), RecvCounts: two, RecvDispls: []int64{0, 1}},
		{Op: OpAlltoallv, Send: make([]byte, 2), SendCounts: two, SendDispls: outside},
		{Op: OpAllreduce, Count: 1, Extent: 4, Send: make([]byte, 4)},
		{Op: OpReduce, Count: -1, Extent: 4},
		{Op: OpReduceScatter, Extent: 4, RecvCounts: []int64{1}},
		{Op: OpReduceScatter, Extent: 4, RecvCounts: two, Recv: make([]byte, 4), Send: make([]byte, 7)},
	} {
		if _, err := New(w.procs[0], a, Tuning{}); err == nil {
			t.Errorf("%+v was accepted", a)
		}
	}
}

// TestErrorsLetOthersFinish checks that the process with a failing operation reports the error, and
// that all schedules still finish.
func TestErrorsLetOthersFinish(t *testing.T) {
	o := operators()[0]
	for _, test := range []struct {
		name    string
		op      Op
		faulty  int // rank that sees the error
		spoil   func(w *world, c call)
		through int // ranks below this one finish; others may wait for the message that was not sent
	}{
		{"leader expects less", OpBcast, 2, func(_ *world, c call) { c.args[2].Recv = c.args[2].Recv[:90] }, 4},
		{"send does not start", OpBcast, 0, func(w *world, _ call) { w.procs[0].fail = errors.New("broken") }, 2},
		{"operator does not work", OpScan, 2, func(w *world, _ call) { w.extent = 9 }, 4},
	} {
		w := newWorld([]int{0, 0, 1, 1}, 1)
		c := newCall(rand.New(rand.NewSource(1)), test.op, 4, 100, 0, true, false, o)
		w.op, w.extent = o.apply, o.extent
		test.spoil(w, c)
		for r, p := range w.procs {
			s, err := New(p, c.args[r], Tuning{Segment: 20})
			if err != nil {
				t.Fatal(err)
			}
			p.runner = NewRunner(s)
		}
		for range 1000 {
			for _, p := range w.procs {
				if !p.over {
					p.over, p.err = p.runner.Step()
				}
			}
			w.any()
		}
		for r, p := range w.procs {
			if !p.over && r < test.through {
				t.Errorf("%s: rank %d hangs", test.name, r)
			}
		}
		if p := w.procs[test.faulty]; !p.over || p.err == nil {
			t.Errorf("%s: rank %d did not see the error", test.name, test.faulty)
		}
	}
}

func TestParseTuning(t *testing.T) {
	got, err := ParseTuning(" segment=96K, leaders=2,window=8M,slice=5,combine=100,chunk=7 ")
	if want := (Tuning{Segment: 96 << 10, Leaders: 2, Window: 8 << 20, Slice: 5, Combine: 100, Chunk: 7}); err != nil ||
		got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := ParseTuning(""); err != nil || got != (Tuning{}) {
		t.Errorf("empty: %+v, %v", got, err)
	}
	for _, bad := range []string{"segments=1", "segment", "segment=", "segment=0", "segment=-1", "leaders=x",
		"window=2000M", "combine=1KK1"} {
		if _, err := ParseTuning(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// TestTuningTable checks that the output of Table is parsed to the same tuning, and that a line may
// have a comment.
func TestTuningTable(t *testing.T) {
	want := Tuning{Segment: 96 << 10, Leaders: 2, Combine: 100}
	text := want.Table("of two clusters,\nsegment=1\n")
	got, err := ParseTuning(text)
	if err != nil || got.String() != want.String() || !strings.HasPrefix(text, "# of two clusters,\n# segment=1\n") {
		t.Errorf("%v, %v from\n%s", got, err, text)
	}
	got, err = ParseTuning("# none\nsegment=1K # one, chunk=7\n\nleaders=3, slice=4\r\n")
	if want := (Tuning{Segment: 1 << 10, Leaders: 3, Slice: 4}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := ParseTuning("segment=1K\nno=1\n"); err == nil || !strings.Contains(err.Error(), "no such setting") {
		t.Error(err)
	}
}

func ExampleNewLayout() {
	l := NewLayout([]int{4, 4, 2, 4}, 3)
	fmt.Println(l.Cluster, l.Members(0), l.Members(1), l.LocalOf(3), l.Contiguous)
	// Output: 0 [0 1 3] [2] 2 false
}
