package engine

import (
	"errors"
	"fmt"

	"github.com/leidenzipper/zipper/rma"
)

// Window is this process's end of a window that spans clusters (package rma does the work). Its messages have a communicator of
// their own in which every other process counts as remote: those of the same cluster come through the forwarder too, so each process
// serves all in one place, at any time: the background thread does when the program computes or is inside native MPI.
type Window struct {
	e     *Engine
	c     *Comm
	node  *rma.Node
	cells map[*Cell]struct{} // calls that somebody waits for
	begun map[uint64]*rma.Transfer
	count uint64 // of transfers that did not fit at once

	ring [windowRing]windowSlot // receives, in posting order, which is the order of matching
	head int
}

// windowRing is how many messages may be landing at a time.
const windowRing = 8

type windowSlot struct {
	cell Cell
	buf  []byte
}

// AddWindow makes this process's end of a window; cfg.Rank, Size and Compute are filled in here. world is as in AddComm.
func (e *Engine) AddWindow(context uint64, rank int, world []int32, cfg rma.Config) (*Window, error) {
	remote := make([]int32, len(world))
	for i := range remote {
		remote[i] = Remote
	}
	c, err := e.AddComm(0, context, rank, world, remote)
	if err != nil {
		return nil, err
	}
	e.lock()
	defer e.unlock()
	cfg.Rank, cfg.Size, cfg.Compute = rank, len(world), e.native.Compute
	w := &Window{e: e, c: c, node: rma.NewNode(cfg), cells: map[*Cell]struct{}{}, begun: map[uint64]*rma.Transfer{}}
	c.window = w
	for i := range w.ring {
		w.ring[i].buf = make([]byte, rma.MaxMessage)
		if err := w.post(&w.ring[i]); err != nil {
			return nil, err
		}
	}
	e.windows = append(e.windows, w)
	e.writeOut()
	return w, nil
}

// ID is the number that Engine.Window takes.
func (w *Window) ID() int32 { return w.c.id }

// Window gives the window with that number; nil if there is none.
func (e *Engine) Window(id int32) *Window {
	if c := e.Comm(id); c != nil {
		return c.window
	}
	return nil
}

// Drop forgets a window. All processes have called it, or met after their last operation: it waits until what was sent has arrived.
func (w *Window) Drop() error {
	e := w.e
	if err := e.await(0, "", func() bool { return w.c.outstanding == windowRing }); err != nil {
		return err
	}
	e.lock()
	for i := range w.ring {
		if r := e.find(w.ring[i].cell.request); r != nil && r.state == posted {
			e.unpost(r)
			e.over(r)
		}
	}
	for i, x := range e.windows {
		if x == w {
			e.windows = append(e.windows[:i], e.windows[i+1:]...)
			break
		}
	}
	e.unlock()
	return e.DropComm(w.c)
}

func (w *Window) post(s *windowSlot) error {
	s.cell = Cell{}
	return w.e.irecv(w.c, KindInternal, s.buf, AnySource, 0, &s.cell)
}

// serveWindows handles the messages that have come.
func (e *Engine) serveWindows() {
	for i := 0; i < len(e.windows) && e.err == nil; i++ {
		if w := e.windows[i]; w.ring[w.head].cell.Done() {
			w.serve()
			e.writeOut()
		}
	}
}

func (w *Window) serve() {
	for w.e.err == nil {
		s := &w.ring[w.head]
		if !s.cell.Done() {
			return
		}
		err := s.cell.Err()
		if err == nil {
			err = w.node.Receive(int(s.cell.Source), s.buf[:s.cell.Bytes])
		}
		if err == nil {
			err = w.post(s)
		}
		w.head = (w.head + 1) % windowRing
		w.moveOn(err)
	}
}

// windowMessage is a message on its way out.
type windowMessage struct{ cell Cell }

// moveOn sends what the node has to say, to itself too, and completes what is over.
func (w *Window) moveOn(err error) {
	e := w.e
	for err == nil && e.err == nil {
		o, ok := w.node.Next()
		if !ok {
			break
		}
		if o.To == w.c.rank {
			err = w.node.Receive(o.To, o.Message)
			w.node.Reuse(o.Message)
			continue
		}
		m := new(windowMessage)
		if err = e.isend(w.c, KindInternal, o.Message, o.To, 0, false, &m.cell); err == nil && m.cell.Done() {
			w.node.Reuse(o.Message)
		}
	}
	if err != nil && e.err == nil {
		e.fatal(ErrRMARange, 1, fmt.Sprintf("one-sided communication: %v", err))
	}
	for _, t := range w.node.Done() {
		w.end(t.(*Cell), OK)
	}
}

// begin makes the engine busy with a call that somebody waits for.
func (w *Window) begin(cell *Cell) any {
	if cell == nil {
		return nil
	}
	*cell = Cell{Owner: cell.Owner, Stage: cell.Stage}
	w.cells[cell] = struct{}{}
	w.e.active++
	return cell
}

func (w *Window) end(cell *Cell, code Code) {
	if _, ok := w.cells[cell]; !ok {
		return
	}
	delete(w.cells, cell)
	w.e.active--
	cell.Error = int32(code)
	cell.finish()
	w.e.completions++
}

func (e *Engine) failWindows(code Code) {
	for _, w := range e.windows {
		for c := range w.cells {
			w.end(c, code)
		}
	}
	e.windows = nil
}

// windowError gives errors of package rma their codes.
func windowError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rma.ErrSync):
		return failure(ErrRMASync, "%v", err)
	case errors.Is(err, rma.ErrRange):
		return failure(ErrRMARange, "%v", err)
	}
	return failure(ErrArg, "%v", err)
}

// Call runs a call on the window's node that tells cell (unless nil) when it is over.
func (w *Window) Call(cell *Cell, f func(n *rma.Node, token any) error) error {
	e := w.e
	e.lock()
	defer e.unlock()
	if e.err != nil {
		return e.err
	}
	if err := f(w.node, w.begin(cell)); err != nil {
		if cell != nil {
			w.end(cell, ErrArg)
		}
		return windowError(err)
	}
	w.moveOn(nil)
	e.writeOut()
	return nil
}

// Operate starts an operation; the cell (unless nil) is done when it is locally complete. left is 0, or what More has to be called with
// until it is: too much is on its way to the target.
func (w *Window) Operate(op rma.Operation, cell *Cell) (left uint64, err error) {
	err = w.Call(cell, func(n *rma.Node, token any) error {
		t, err := n.Begin(op, token)
		if err == nil && !w.issue(t) {
			w.count++
			left = w.count
			w.begun[left] = t
		}
		return err
	})
	return left, err
}

// More goes on with an operation.
func (w *Window) More(left uint64) (uint64, error) {
	err := w.Call(nil, func(*rma.Node, any) error {
		if t := w.begun[left]; t == nil || w.issue(t) {
			delete(w.begun, left)
			left = 0
		}
		return nil
	})
	return left, err
}

// issue sends as much as it may of an operation; true: all of it.
func (w *Window) issue(t *rma.Transfer) bool {
	for !w.node.Full(t.Target()) {
		over := w.node.Issue(t)
		w.moveOn(nil)
		if over || w.e.err != nil {
			return true
		}
	}
	return false
}
