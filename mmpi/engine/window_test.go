package engine

import (
	"bytes"
	"errors"
	"testing"

	"github.com/leidenzipper/zipper/internal/rma"
)

// flat is a buffer as a view.
func flat(b []byte) rma.View {
	return rma.View{Space: rma.Bytes(b), Layout: rma.Layout{Spans: []rma.Span{{Len: int64(len(b))}}, Count: 1}}
}

// windowed makes a window of n bytes at every rank of a job.
func windowed(t *testing.T, f *fabric, n int) (windows []*Window, memory [][]byte) {
	var ranks []int32
	for r := range f.engines {
		ranks = append(ranks, int32(r))
	}
	for r, e := range f.engines {
		memory = append(memory, make([]byte, n))
		w, err := e.AddWindow(9, r, ranks, rma.Config{Unit: 1, Memory: memory[r]})
		if err != nil {
			t.Fatal(err)
		}
		if e.Window(w.ID()) != w || e.Window(w.ID()+1) != nil {
			t.Fatal("the window is not found by its number")
		}
		windows = append(windows, w)
	}
	return windows, memory
}

// settled runs the job and checks that a call is over without an error.
func settled(t *testing.T, f *fabric, what string, cell *Cell) {
	t.Helper()
	f.settle()
	if !cell.Done() || cell.Err() != nil {
		t.Fatalf("%s: done %v, %v", what, cell.Done(), cell.Err())
	}
}

// TestWindowHoldsBytesAfterUnlock checks that bytes put into another process's window are there
// after the unlock and can be read back; that a transfer too long to be in flight at once goes on
// with More; and that ranks of the own cluster are reached like others.
func TestWindowHoldsBytesAfterUnlock(t *testing.T) {
	f := newFabric(t, []int{2, 1}, Limits{})
	const n = 9 << 20
	w, memory := windowed(t, f, n)
	for _, target := range []int{1, 2, 0} {
		var locked, put, got, unlocked Cell
		if err := w[0].Call(&locked, func(d *rma.Node, token any) error { return d.Lock(target, 0, token) }); err != nil {
			t.Fatal(err)
		}
		data, back := pattern(target, n), make([]byte, n)
		transfer := func(op rma.Operation, cell *Cell) {
			left, err := w[0].Operate(op, cell)
			for ; err == nil && left != 0; left, err = w[0].More(left) {
				f.settle()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		transfer(rma.Operation{Verb: rma.Put, Target: target, Data: flat(data), There: flat(data).Layout}, &put)
		transfer(rma.Operation{Verb: rma.Get, Target: target, Result: flat(back), There: flat(back).Layout}, &got)
		settled(t, f, "put", &put)
		settled(t, f, "get", &got)
		if err := w[0].Call(&unlocked, func(d *rma.Node, token any) error { return d.Unlock(target, token) }); err != nil {
			t.Fatal(err)
		}
		settled(t, f, "unlock", &unlocked)
		if !bytes.Equal(memory[target], data) || !bytes.Equal(back, data) {
			t.Errorf("rank %d: the bytes are not there, or did not come back", target)
		}
	}
	for r, e := range f.engines {
		if f.natives[r].busy || e.p2p.Busy() {
			t.Errorf("rank %d is busy", r)
		}
	}
}

// TestWindowReportsErrors checks that a call that MPI forbids gives an error of its kind, and that
// a call under way when the job fails ends with an error.
func TestWindowReportsErrors(t *testing.T) {
	f := newFabric(t, []int{1, 1}, Limits{})
	w, _ := windowed(t, f, 16)
	op := rma.Operation{Verb: rma.Put, Target: 1, Data: flat(make([]byte, 8)), There: flat(make([]byte, 8)).Layout}
	if _, err := w[0].Operate(op, nil); CodeOf(err) != ErrRMASync {
		t.Errorf("outside an epoch: %v", err)
	}
	if err := w[0].Call(new(Cell), func(*rma.Node, any) error { return errors.New("x") }); CodeOf(err) != ErrArg {
		t.Errorf("an error without a kind: %v", err)
	}
	var waiting Cell
	if err := w[0].Call(&waiting, func(d *rma.Node, token any) error { return d.Lock(1, rma.Exclusive, token) }); err != nil {
		t.Fatal(err)
	}
	if !f.natives[0].busy || f.engines[0].check() != nil {
		t.Errorf("busy: %v, %v", f.natives[0].busy, f.engines[0].check())
	}
	f.eof[0] = true
	f.engines[0].Progress(0)
	if !waiting.Done() || Code(waiting.Error) != ErrLink || f.engines[0].check() != nil {
		t.Errorf("%+v, %v", waiting, f.engines[0].check())
	}
}

// TestDroppedWindowFreesItsNumber checks that a dropped window is removed once all messages have
// arrived, and that its number is used again.
func TestDroppedWindowFreesItsNumber(t *testing.T) {
	f := newFabric(t, []int{1, 1}, Limits{})
	w, _ := windowed(t, f, 16)
	f.settle()
	id := w[0].ID()
	for _, x := range w {
		if err := x.Drop(); err != nil {
			t.Fatal(err)
		}
	}
	f.settle()
	if f.engines[0].Window(id) != nil {
		t.Error("the window is still there")
	}
	again, _ := windowed(t, f, 16)
	if again[0].ID() != id {
		t.Errorf("number %d, then %d", id, again[0].ID())
	}
}
