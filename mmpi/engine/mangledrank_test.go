package engine

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/internal/rma"
	"github.com/leidenzipper/zipper/internal/rma/rmatest"
)

// worker is one rank of a mangled job: rounds of messages, collectives and one-sided operations,
// whose results all ranks know beforehand.
type worker struct {
	e      *Engine
	c      *Comm
	window *Window
	memory []byte // one place for each rank, twice, then a sum
	seed   uint64
}

// place is how many bytes a rank has in each other's window.
const place = 9000

func newWorker(t *testing.T, e *Engine, seed uint64) (*worker, error) {
	w := &worker{e: e, c: spanAll(t, e), memory: make([]byte, rmatest.MemoryLen(e.world.Size(), place)), seed: seed}
	var ranks []int32
	for r := range e.world.Size() {
		ranks = append(ranks, int32(r))
	}
	var err error
	if w.window, err = e.AddWindow(9, e.world.Rank, ranks, rma.Config{Unit: 1, Memory: w.memory}); err != nil {
		return nil, err
	}
	return w, w.collect([]collCase{newCollCase(collectives.OpBarrier, len(ranks), 0, 0)})
}

// round does some of everything; last: so rank 0 wants it to be.
func (w *worker) round(number uint64, stop bool) (last bool, err error) {
	n, me := w.e.world.Size(), w.e.world.Rank
	own := rand.New(rand.NewPCG(w.seed^number<<32, uint64(me)))
	if err := exchangeOn(w.e, w.c, 3, own); err != nil {
		return false, err
	}
	all := rand.New(rand.NewPCG(w.seed^number<<32, 1<<40)) // the same in each rank
	cases := []collCase{newCollCase(collectives.OpBarrier, n, 0, 0)}
	for range 4 {
		op := collectives.OpBarrier + collectives.Op(all.IntN(int(collectives.OpExscan-collectives.OpBarrier)+1))
		cases = append(cases, newCollCase(op, n, []int{0, 1, 100, 3000, 70 << 10}[all.IntN(5)], all.IntN(n)))
	}
	if err := w.collect(cases); err != nil {
		return false, err
	}
	if err := w.oneSided(int(number), all); err != nil {
		return false, err
	}
	word := newCollCase(collectives.OpBcast, n, 1, 0)
	word.args[me].Recv = []byte{0}
	if stop {
		word.args[me].Recv[0] = 1
	}
	word.want[me] = nil
	err = w.collect([]collCase{word})
	return word.args[me].Recv[0] == 1, err
}

// collect runs collectives, all at once, and compares.
func (w *worker) collect(cases []collCase) error {
	me := w.e.world.Rank
	cells := make([]Cell, len(cases))
	for i := range cases {
		if err := w.e.Collective(w.c, cases[i].args[me], &cells[i]); err != nil {
			return err
		}
	}
	for i, c := range cases {
		await(w.e, &cells[i])
		if err := cells[i].Err(); err != nil {
			return err
		}
		if c.want[me] != nil && !bytes.Equal(c.args[me].Recv, c.want[me]) {
			return fmt.Errorf("%v of %d bytes: a wrong result", c.args[me].Op, c.args[me].Count)
		}
	}
	return nil
}

func (w *worker) barrier() error {
	return w.collect([]collCase{newCollCase(collectives.OpBarrier, w.e.world.Size(), 0, 0)})
}

// oneSided is a round of one-sided communication.
func (w *worker) oneSided(round int, all *rand.Rand) error {
	n := w.e.world.Size()
	r := rmatest.Round{Me: w.e.world.Rank, Processes: n, Number: round, Size: 1 + all.IntN(place), Space: place,
		Memory: w.memory, To: func(origin int) int { return (origin + round) % n },
		Pattern: pattern, Operate: w.operate, Barrier: w.barrier,
		Call: func(f func(d *rma.Node, token any) error) error {
			var cell Cell
			if err := w.window.Call(&cell, f); err != nil {
				return err
			}
			await(w.e, &cell)
			return cell.Err()
		}}
	return r.Run()
}

func (w *worker) operate(op rma.Operation) error {
	var cell Cell
	left, err := w.window.Operate(op, &cell)
	for ; err == nil && left != 0; left, err = w.window.More(left) {
		w.e.Progress(time.Millisecond)
	}
	if err != nil {
		return err
	}
	await(w.e, &cell)
	return cell.Err()
}
