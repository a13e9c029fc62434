package engine

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/leidenzipper/zipper/collectives"
)

// lossRun is one job of TestCollectivesSurviveLosses.
type lossRun struct {
	*fabric
	r     *rand.Rand
	words [][2]int // words of losses that were not sent: rank, cluster

	watched []Cell   // the operations whose memory is used again when they end
	watches collCase // the arguments and results of these operations
	over    []bool   // whether each has ended
}

// watch checks the result of each operation that has ended, and uses its memory for something else.
func (x *lossRun) watch() {
	for r := range x.watched {
		cell, c := &x.watched[r], x.watches
		if x.over[r] || !cell.Done() {
			continue
		}
		x.over[r] = true
		switch code := Code(cell.Error); {
		case code == OK && c.want[r] != nil && !bytes.Equal(c.args[r].Recv, c.want[r]):
			x.t.Fatalf("%v: rank %d has a wrong result", c.args[r].Op, r)
		case code != OK && code != ErrProcFailed:
			x.t.Fatalf("%v: rank %d: %v", c.args[r].Op, r, code)
		}
		for _, b := range [][]byte{c.args[r].Send, c.args[r].Recv} { // the program's again
			for i := range b {
				b[i] = 0xEE
			}
		}
	}
}

// steps takes random steps of the job. Words of losses are sent at random times.
func (x *lossRun) steps(n int) {
	for range n {
		r := x.r.IntN(len(x.engines))
		if x.dead[r] {
			continue
		}
		x.engines[r].Progress(0)
		x.relay(r, x.r.IntN(3))
		if len(x.words) > 0 && x.r.IntN(4) == 0 {
			i := x.r.IntN(len(x.words))
			x.send(i)
		}
		if err := x.engines[r].check(); err != nil {
			x.t.Fatalf("rank %d: %v", r, err)
		}
		x.watch()
	}
}

// send sends the word of a loss.
func (x *lossRun) send(i int) {
	rank, cluster := x.words[i][0], x.words[i][1]
	if !x.dead[rank] {
		x.tell(rank, cluster)
	}
	x.words = slices.Delete(x.words, i, i+1)
}

// loses ends a random cluster; at least one stays.
func (x *lossRun) loses() {
	cluster, alive := x.r.IntN(len(x.engines[0].world.Clusters)), 0
	for c := range x.engines[0].world.Clusters {
		if first, _ := x.engines[0].world.Ranks(c); !x.dead[first] {
			alive++
		}
	}
	first, _ := x.engines[0].world.Ranks(cluster)
	if alive == 1 || x.dead[first] {
		return
	}
	x.kill(cluster)
	for r := range x.engines {
		if !x.dead[r] {
			x.words = append(x.words, [2]int{r, cluster})
		}
	}
}

// finish runs the job until nothing moves, after all words have arrived.
func (x *lossRun) finish() {
	for len(x.words) > 0 {
		x.send(0)
		x.steps(1)
	}
	x.settle()
	x.watch()
}

// collective starts a collective on all members of a communicator.
func (x *lossRun) collective(comms []*Comm, c collCase, cells []Cell, lose bool) {
	for _, r := range x.r.Perm(len(x.engines)) {
		if !x.dead[r] && comms[r] != nil {
			must(x.t, x.engines[r].Collective(comms[r], c.args[comms[r].Rank()], &cells[r]))
		}
		if lose {
			x.steps(x.r.IntN(5))
			if x.r.IntN(8) == 0 {
				x.loses()
			}
		}
	}
}

// shrink shrinks the communicator until the processes agree that all have the new one, and checks
// that they have the same members.
func (x *lossRun) shrink(comms []*Comm, lose bool) []*Comm {
	cells := make([]Cell, len(x.engines))
	for _, r := range x.r.Perm(len(x.engines)) {
		if !x.dead[r] {
			must(x.t, x.engines[r].Shrink(comms[r], -1, &cells[r]))
		}
		x.steps(x.r.IntN(20))
		if lose && x.r.IntN(8) == 0 {
			x.loses()
		}
	}
	x.finish()
	shrunk := make([]*Comm, len(x.engines))
	var all []int32
	for r, e := range x.engines {
		if x.dead[r] {
			continue
		}
		wantCode(x.t, "shrink", &cells[r], OK)
		context, ranks, err := e.Shrunk(comms[r], &cells[r])
		must(x.t, err)
		if all == nil {
			all = ranks
		}
		if !slices.Equal(all, ranks) {
			x.t.Fatalf("rank %d has the members %v, another one %v", r, ranks, all)
		}
		var world []int
		for _, i := range ranks {
			world = append(world, comms[r].Virtual(int(i)))
		}
		shrunk[r] = x.comm(r, context, world)
	}
	return shrunk
}

// TestCollectivesSurviveLosses loses clusters at random times during every kind of collective: each
// survivor's collective ends, with the right result or an error, and nothing touches its memory
// afterwards. Then the survivors shrink the communicator, and collectives on the new one succeed.
func TestCollectivesSurviveLosses(t *testing.T) {
	for seed := range uint64(400) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3))
			sizes := make([]int, 2+r.IntN(3))
			for i := range sizes {
				sizes[i] = 1 + r.IntN(3)
			}
			x := &lossRun{fabric: newFabric(t, sizes, Limits{Eager: 1 << r.IntN(12), Segment: 1000, DataWindow: 8000},
				onLoss), r: r}
			for _, l := range x.links {
				l.room = 3000 + r.IntN(5000) // at least a frame
			}
			comms, n := x.world(5), len(x.engines)
			op := collectives.Op(r.IntN(int(collectives.OpExscan) + 1))
			m := []int{0, 1, 100, 3000}[r.IntN(4)]
			c := newCollCase(op, n, m, r.IntN(n))
			x.watches, x.over, x.watched = c, make([]bool, n), make([]Cell, n)
			x.collective(comms, c, x.watched, true)
			x.steps(r.IntN(200))
			x.loses()
			x.finish()
			for r := range x.engines {
				if !x.dead[r] && !x.over[r] {
					t.Fatalf("%v of %d bytes over %v: rank %d hangs", op, m, sizes, r)
				}
			}
			after := x.shrink(comms, true)
			x.shrink(comms, false)
			if !x.mayUse(after) {
				after = x.shrink(comms, false)
			}
			size := 0
			for _, c := range after {
				if c != nil {
					size = c.Size()
				}
			}
			c2 := newCollCase(op, size, m, r.IntN(size))
			cells := make([]Cell, n)
			x.collective(after, c2, cells, false)
			x.finish()
			x.acknowledge()
			for r := range x.engines {
				if x.dead[r] {
					continue
				}
				wantCode(t, "collective of the survivors", &cells[r], OK)
				if me := after[r].Rank(); c2.want[me] != nil && !bytes.Equal(c2.args[me].Recv, c2.want[me]) {
					t.Errorf("rank %d has a wrong result after the loss", r)
				}
				e := x.engines[r]
				e.lock()
				if n := e.links.Unacked(); n > 0 {
					t.Errorf("rank %d keeps %d frames", r, n)
				}
				e.unlock()
				for _, b := range [][]byte{c.args[r].Send, c.args[r].Recv} {
					if slices.ContainsFunc(b, func(x byte) bool { return x != 0xEE }) {
						t.Fatalf("%v of %d bytes over %v: rank %d's memory was used after the end", op, m, sizes, r)
					}
				}
			}
		})
	}
}

// acknowledge lets all frames be acknowledged.
func (x *lossRun) acknowledge() {
	for r, e := range x.engines {
		if !x.dead[r] {
			e.lock()
			e.links.FlushAcks()
			e.unlock()
		}
	}
	x.settle()
}

// mayUse reports whether a communicator has no lost member.
func (x *lossRun) mayUse(comms []*Comm) bool {
	for r, c := range comms {
		if c != nil && !x.dead[r] && len(x.engines[r].Failed(c)) > 0 {
			return false
		}
	}
	return true
}

// TestAgreeTellsOfLosses checks the value of an agreement, and that it ends with an error in all
// processes until all have acknowledged the losses.
func TestAgreeTellsOfLosses(t *testing.T) {
	f := newFabric(t, []int{2, 1, 1}, Limits{}, onLoss)
	comms := f.world(5)
	agree := func(want Code, flags ...int32) {
		t.Helper()
		cells := make([]Cell, len(f.engines))
		value := int32(-1)
		for r, e := range f.engines {
			if !f.dead[r] {
				must(t, e.Agree(comms[r], flags[r], &cells[r]))
				value &= flags[r]
			}
		}
		f.settle()
		for r := range f.engines {
			if f.dead[r] {
				continue
			}
			wantCode(t, "agree", &cells[r], want)
			if cells[r].Tag != value {
				t.Errorf("rank %d: %x, want %x", r, cells[r].Tag, value)
			}
		}
	}
	agree(OK, 7, 3, -1, 0x17)
	f.lose(2)
	agree(ErrProcFailed, 6, -1, 14, 0)
	for r, e := range f.engines[:2] {
		e.AckFailed(comms[r], 1)
	}
	agree(ErrProcFailed, 1, 1, 1, 0)
	f.engines[2].AckFailed(comms[2], 1)
	agree(OK, -1, -1, -1, 0)
	f.lose(1)
	agree(ErrProcFailed, -1, 2, 0, 0)
	e := f.engines[0]
	if _, _, err := e.Shrunk(comms[0], new(Cell)); CodeOf(err) != ErrArg {
		t.Errorf("the result of no shrink: %v", err)
	}
}

// TestFailureCallsNeedTheSetting checks that a job that ends when a cluster is lost has none of
// these calls.
func TestFailureCallsNeedTheSetting(t *testing.T) {
	f := newFabric(t, []int{1, 1}, Limits{})
	c := f.world(5)[0]
	e := f.engines[0]
	for what, err := range map[string]error{"revoke": e.Revoke(c), "agree": e.Agree(c, 1, new(Cell)),
		"shrink": e.Shrink(c, -1, new(Cell))} {
		if CodeOf(err) != ErrUnsupported {
			t.Errorf("%s: %v", what, err)
		}
	}
	f.tell(0, 1)
	f.engines[0].Progress(0)
	if f.natives[0].failed == "" {
		t.Error("a loss is believed in a job that ends then")
	}
}
