package engine

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/rma"
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
	w := &worker{e: e, c: spanAll(t, e), memory: make([]byte, 2*place*e.world.Size()+1), seed: seed}
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

// oneSided puts, adds up and gets, between locks and between fences.
func (w *worker) oneSided(round int, all *rand.Rand) error {
	n, me := w.e.world.Size(), w.e.world.Rank
	size := 1 + all.IntN(place)
	to := func(origin int) int { return (origin + round) % n }
	text := func(origin int) []byte { return pattern(origin+round*7, size) }
	call := func(f func(d *rma.Node, token any) error) error {
		var cell Cell
		if err := w.window.Call(&cell, f); err != nil {
			return err
		}
		await(w.e, &cell)
		return cell.Err()
	}
	clear(w.memory)
	if err := w.barrier(); err != nil {
		return err
	}
	target, got := to(me), make([]byte, size)
	err := call(func(d *rma.Node, token any) error { return d.Lock(target, rma.How(round%2)*rma.Exclusive, token) })
	if err != nil {
		return err
	}
	for _, op := range []rma.Operation{
		{Verb: rma.Put, Disp: int64(me * place), Data: flat(text(me))},
		{Verb: rma.Accumulate, Disp: int64(2 * n * place), Data: flat([]byte{byte(me + 1)})},
		{Verb: rma.Get, Disp: int64(me * place), Result: flat(got)},
	} {
		if err := w.transfer(op, target); err != nil {
			return err
		}
	}
	if err := call(func(d *rma.Node, token any) error { return d.Unlock(target, token) }); err != nil {
		return err
	}
	if !bytes.Equal(got, text(me)) {
		return errors.New("get: not what was put there")
	}
	if err := call(func(d *rma.Node, token any) error { return d.Fence(true, token) }); err != nil {
		return err
	}
	if err := w.barrier(); err != nil {
		return err
	}
	for to := range n {
		if err := w.transfer(rma.Operation{Verb: rma.Put, Disp: int64((n + me) * place), Data: flat(text(me + to))},
			to); err != nil {
			return err
		}
	}
	if err := call(func(d *rma.Node, token any) error { return d.Fence(false, token) }); err != nil {
		return err
	}
	if err := w.barrier(); err != nil {
		return err
	}
	sum := byte(0)
	for origin := range n {
		if to(origin) == me {
			sum += byte(origin + 1)
			if !bytes.Equal(w.memory[origin*place:][:size], text(origin)) {
				return fmt.Errorf("what rank %d has put between locks is wrong", origin)
			}
		}
		if !bytes.Equal(w.memory[(n+origin)*place:][:size], text(origin+me)) {
			return fmt.Errorf("what rank %d has put between fences is wrong", origin)
		}
	}
	if w.memory[2*n*place] != sum {
		return fmt.Errorf("the sum is %d, want %d", w.memory[2*n*place], sum)
	}
	return nil
}

func (w *worker) transfer(op rma.Operation, target int) error {
	op.Target = target
	op.There = op.Data.Layout
	if op.Verb == rma.Get {
		op.There = op.Result.Layout
	}
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
