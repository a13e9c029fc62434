package simulation

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/internal/rma"
	"github.com/leidenzipper/zipper/internal/rma/rmatest"
	"github.com/leidenzipper/zipper/mmpi/engine"
)

// worker is the program of one rank: rounds of messages, collectives and one-sided operations. All
// ranks know the correct results beforehand.
type worker struct {
	*rank
	e      *engine.Engine // engine of the rank
	c      *engine.Comm   // communicator of all ranks of the job
	n      int            // number of ranks of the job
	window *engine.Window // nil if the job uses no window
	memory []byte         // memory of the window: two areas for each rank, then a sum of 1 byte
}

// space is the size in bytes of each of the two areas that a rank has in every rank's window.
const space = 1200

func (r *rank) work() error {
	w := &worker{rank: r, e: r.Engine, n: r.job.plan.size()}
	var err error
	if w.c, err = r.Comm(); err != nil {
		return err
	}
	world := make([]int32, w.n)
	for o := range world {
		world[o] = int32(o)
	}
	common := func(round int) *rand.Rand { return rand.New(rand.NewPCG(r.job.plan.Seed^uint64(round)<<32, 1<<40)) }
	if common(-1).IntN(2) == 0 {
		w.memory = make([]byte, rmatest.MemoryLen(w.n, space))
		if w.window, err = w.e.AddWindow(9, r.Rank, world, rma.Config{Unit: 1, Memory: w.memory}); err != nil {
			return err
		}
		if err := w.barrier(); err != nil {
			return err
		}
	}
	for round := range r.job.plan.Rounds {
		if err := w.round(round, common(round)); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	return nil
}

// await waits until an operation is done, as the wait loop of libmmpi does, and returns its error.
// A rank with a planned abort aborts here.
func (w *worker) await(c *engine.Cell) error {
	block := time.Millisecond
	if w.job.plan.Sizes[w.in] == 1 { // the cluster has one rank, so native MPI needs no progress
		block = 100 * time.Millisecond
	}
	for spins := 0; !c.Done(); spins++ {
		if w.abort {
			w.abort = false
			w.job.markHarmed(w.rank)
			w.e.Abort(3, "a planned abort of the simulated program")
			return errors.New("aborted as planned")
		}
		if spins < 4 {
			w.e.Progress(0)
		} else {
			w.e.Progress(block)
		}
	}
	w.job.moves++
	return c.Err()
}

// compute stands for computation of the program between calls of MPI: in one of three calls it lets
// a random virtual time pass, in the others none.
func (w *worker) compute() {
	if w.rand.IntN(3) == 0 {
		w.job.k.Sleep(time.Duration(w.rand.IntN(1 << (10 + w.rand.IntN(16)))))
	}
}

func (w *worker) round(round int, all *rand.Rand) error {
	w.compute()
	if all.IntN(4) > 0 {
		if err := w.exchange(1+all.IntN(1+all.IntN(4)), w.most(all, 100, 1000, 6000)); err != nil {
			return fmt.Errorf("messages: %w", err)
		}
	}
	w.compute()
	for range all.IntN(5) {
		op := collectives.OpBarrier + collectives.Op(all.IntN(int(collectives.OpExscan-collectives.OpBarrier)+1))
		if err := w.collect(op, w.most(all, 1, 100, 1000), all.IntN(w.n)); err != nil {
			return fmt.Errorf("%v: %w", op, err)
		}
	}
	if w.window != nil && all.IntN(2) == 0 {
		if err := w.oneSided(round, 1+all.IntN(space)); err != nil {
			return fmt.Errorf("one-sided: %w", err)
		}
	}
	return nil
}

// most draws the largest size of a message or a collective's block, in bytes: one of sizes, or
// seldom 100 KiB. The latter is left out where buffers are small, because it would take long and
// find nothing more. All ranks draw from equal states of all, so they get the same size.
func (w *worker) most(all *rand.Rand, sizes ...int) int {
	if all.IntN(16) == 0 && w.job.plan.Path.Buffer > 8<<10 && !w.job.plan.Small {
		return 100 << 10
	}
	return sizes[all.IntN(len(sizes))]
}

// exchange sends messages of random sizes, from 8 to most bytes, to the other ranks in random
// order. The parameter each is the number of messages to every single rank, and as many are
// received from it. A barrier ends the exchange. It returns an error if a message is wrong.
func (w *worker) exchange(each, most int) error {
	var to []int
	for d := range w.n {
		for range each {
			if d != w.Rank {
				to = append(to, d)
			}
		}
	}
	r := w.rand
	r.Shuffle(len(to), func(i, j int) { to[i], to[j] = to[j], to[i] })
	sent, got := make([]uint32, w.n), make([]uint32, w.n)
	var sends []*engine.Cell
	var recvs []*receive
	check := func() error {
		v := recvs[0]
		recvs = recvs[1:]
		return w.check(v, got)
	}
	_, first := w.e.Place(w.Rank)
	for _, d := range to {
		v := &receive{buf: make([]byte, most)}
		if err := w.e.Irecv(w.c, engine.KindP2P, v.buf, engine.AnySource, engine.AnyTag, &v.cell); err != nil {
			return err
		}
		recvs = append(recvs, v)
		size := 8 + r.IntN(60)
		if r.IntN(2) == 0 {
			size = 8 + r.IntN(most-7)
		}
		b := text(w.Rank, sent[d], size)
		tag := int(sent[d] % 7)
		sent[d]++
		if other, _ := w.e.Place(d); other == w.in {
			w.Native.Send(1, d-first, tag, b)
		} else {
			cell := new(engine.Cell)
			if err := w.e.Isend(w.c, engine.KindP2P, b, d, tag, r.IntN(5) == 0, cell); err != nil {
				return err
			}
			sends = append(sends, cell)
		}
		w.compute()
		for len(recvs) > 16 {
			if err := check(); err != nil {
				return err
			}
		}
	}
	for len(recvs) > 0 {
		if err := check(); err != nil {
			return err
		}
	}
	for _, c := range sends {
		if err := w.await(c); err != nil {
			return err
		}
	}
	return w.barrier() // a receive of the next round must not match a message of this one
}

type receive struct {
	cell engine.Cell // state of the receive until it completes
	buf  []byte      // buffer of the receive
}

// text returns the payload of size bytes of the message number num of rank from: rank, number and a
// pattern.
func text(from int, num uint32, size int) []byte {
	b := pattern(from+int(num)*5, size)
	binary.LittleEndian.PutUint32(b, uint32(from))
	binary.LittleEndian.PutUint32(b[4:], num)
	return b
}

// wrong is the error of an operation that completed with an incorrect result; its value says which.
type wrong string

// Error returns a description of the incorrect result, which begins with "WRONG".
func (w wrong) Error() string { return "WRONG: " + string(w) }

func wrongf(format string, args ...any) error { return wrong(fmt.Sprintf(format, args...)) }

// check waits for the message of receive v, which must be the next one of its source. got counts
// the messages received so far, by source rank; check adds this one. It returns an error if the
// content is wrong.
func (w *worker) check(v *receive, got []uint32) error {
	if err := w.await(&v.cell); err != nil {
		return err
	}
	b := v.buf[:v.cell.Bytes]
	src, num := int(v.cell.Source), got[v.cell.Source]
	if int(v.cell.Tag) != int(num%7) || len(b) < 8 || !bytes.Equal(b, text(src, num, len(b))) {
		return wrongf("want message %[2]d of rank %[1]d, got %[3]d bytes with tag %[4]d that begin with %[5]x", src, num, len(b),
			v.cell.Tag, b[:min(8, len(b))])
	}
	got[src]++
	return nil
}

// collect takes part in the collective operation op of all ranks, with m bytes for each rank and
// the given root. It returns an error if this rank's result is wrong.
func (w *worker) collect(op collectives.Op, m, root int) error {
	args, want := collective(op, w.n, m, root, w.Rank)
	var cell engine.Cell
	if err := w.e.Collective(w.c, args, &cell); err != nil {
		return err
	}
	if err := w.await(&cell); err != nil {
		return err
	}
	if want != nil && !bytes.Equal(args.Recv, want) {
		return wrongf("%v of %d bytes: wrong result", op, m)
	}
	return nil
}

func (w *worker) barrier() error { return w.collect(collectives.OpBarrier, 0, 0) }

// oneSided runs round number round of one-sided communication with operations of size bytes, and
// checks the content of the window.
func (w *worker) oneSided(round, size int) error {
	r := rmatest.Round{Me: w.Rank, Processes: w.n, Number: round, Size: size, Space: space, Memory: w.memory,
		// Two origins share a target.
		To:      func(origin int) int { return (origin/2 + round) % w.n },
		Pattern: pattern, Operate: w.operate, Barrier: w.barrier,
		Call: func(f func(d *rma.Node, token any) error) error {
			var cell engine.Cell
			if err := w.window.Call(&cell, f); err != nil {
				return err
			}
			return w.await(&cell)
		}}
	err := r.Run()
	if bad := rmatest.Wrong(""); errors.As(err, &bad) {
		return wrong(bad)
	}
	return err
}

func (w *worker) operate(op rma.Operation) error {
	var cell engine.Cell
	left, err := w.window.Operate(op, &cell)
	for ; err == nil && left != 0; left, err = w.window.More(left) {
		w.e.Progress(time.Millisecond)
	}
	if err != nil {
		return err
	}
	return w.await(&cell)
}
