// Package rmawin has windows for one-sided communication that span clusters, over messages (package
// pt2pt). Package rma is the state machine; its messages are sent and received here.
//
// A window's messages have a communicator of their own in which every other process counts as
// remote: messages from the same cluster also take the forwarder. So each process serves all
// messages in one place, at any time: the progress thread does so while the program computes or is
// inside native MPI.
//
// Methods of Window take the engine's lock; those of Set must be called with it.
package rmawin

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/leidenzipper/zipper/internal/rma"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
	"github.com/leidenzipper/zipper/mmpi/engine/pt2pt"
)

// Window is this process's end of a window.
type Window struct {
	set   *Set
	c     *pt2pt.Comm
	node  *rma.Node
	cells map[*pt2pt.Cell]struct{} // calls that a caller waits for
	begun map[uint64]*rma.Transfer
	count uint64 // number of transfers that were not issued at once

	ring [ringSize]slot // receives in the order of posting, which is the order of matching
	head int
}

type slot struct {
	cell pt2pt.Cell
	buf  []byte
}

// ID returns the number for Set.Window.
func (w *Window) ID() int32 { return w.c.ID() }

// Drop removes a window. All processes must have called it, or have passed a barrier after their
// last operation, unless the window has a member in a lost cluster. It waits until all sent
// messages have arrived. Messages from others may still arrive in a window with a lost member, and
// are answered. So the window is removed in a moment in which nothing but the posted receives is
// outstanding, and no message has matched one of these.
func (w *Window) Drop() (err error) {
	awaited := w.set.host.Await(func() bool {
		matched := func(s slot) bool { return !pt2pt.Posted(w.set.ep, &s.cell) }
		if w.c.Outstanding() != ringSize || slices.ContainsFunc(w.ring[:], matched) {
			return false
		}
		for i := range w.ring {
			w.set.ep.Retract(&w.ring[i].cell)
		}
		w.set.remove(w)
		err = w.set.ep.DropComm(w.c)
		return true
	})
	return cmp.Or(awaited, err)
}

func (w *Window) post(s *slot) error {
	s.cell = pt2pt.Cell{}
	_, err := w.set.ep.Irecv(w.c, pt2pt.KindInternal, s.buf, pt2pt.AnySource, 0, &s.cell)
	return err
}

// serve handles the messages that have arrived.
func (w *Window) serve() {
	for w.set.ep.Err() == nil {
		s := &w.ring[w.head]
		if !s.cell.Done() {
			return
		}
		err := s.cell.Err()
		switch {
		case fault.CodeOf(err) == fault.ProcFailed: // the rest of the message does not arrive
			err = nil
		case err == nil:
			err = w.node.Receive(int(s.cell.Source), s.buf[:s.cell.Bytes])
		}
		if err == nil {
			err = w.post(s)
		}
		w.head = (w.head + 1) % ringSize
		w.advance(err)
	}
}

// outgoing is a message that is being sent.
type outgoing struct{ cell pt2pt.Cell }

// advance sends the node's messages, also those to itself, and completes the calls that have
// finished.
func (w *Window) advance(err error) {
	ep := w.set.ep
	for err == nil && ep.Err() == nil {
		o, ok := w.node.Next()
		if !ok {
			break
		}
		if o.To == w.c.Rank() {
			err = w.node.Receive(o.To, o.Message)
			w.node.Reuse(o.Message)
			continue
		}
		m := new(outgoing)
		if err = ep.Isend(w.c, pt2pt.KindInternal, o.Message, o.To, 0, false, &m.cell); err == nil && m.cell.Done() {
			w.node.Reuse(o.Message)
		}
	}
	if err != nil && ep.Err() == nil {
		code := fault.RMARange
		if f := new(fault.Error); errors.As(err, &f) {
			code = f.Code
		}
		ep.Fatal(code, 1, fmt.Sprintf("one-sided communication: %v", err))
	}
	for _, t := range w.node.Done() {
		w.end(t.(*pt2pt.Cell), fault.OK)
	}
}

// begin makes the engine busy with a call that a caller waits for.
func (w *Window) begin(cell *pt2pt.Cell) any {
	if cell == nil {
		return nil
	}
	*cell = pt2pt.Cell{Owner: cell.Owner, Stage: cell.Stage}
	w.cells[cell] = struct{}{}
	w.set.hold(1)
	return cell
}

func (w *Window) end(cell *pt2pt.Cell, code fault.Code) {
	if _, ok := w.cells[cell]; !ok {
		return
	}
	delete(w.cells, cell)
	w.set.hold(-1)
	w.set.ep.Complete(cell, code)
}

// errorOf returns errors of package rma with their codes.
func errorOf(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rma.ErrSync):
		return fault.New(fault.RMASync, "%v", err)
	case errors.Is(err, rma.ErrRange):
		return fault.New(fault.RMARange, "%v", err)
	}
	return fault.New(fault.Arg, "%v", err)
}

// Failed returns the error of a window that has a member in a lost cluster, and nil otherwise.
func (w *Window) Failed() error {
	h := w.set.host
	h.Lock()
	defer h.Unlock()
	if code := w.c.Failure(); code != fault.OK {
		return fault.New(code, "window: %v", code)
	}
	return nil
}

// Call makes a call on the window's node. cell (unless nil) is done when the call has finished. In
// a window with a member in a lost cluster nothing is done, and the cell says so.
func (w *Window) Call(cell *pt2pt.Cell, f func(n *rma.Node, token any) error) error {
	h := w.set.host
	h.Lock()
	defer h.Unlock()
	if err := w.set.ep.Err(); err != nil {
		return err
	}
	if code := w.c.Failure(); code != fault.OK {
		if token := w.begin(cell); token != nil {
			w.end(cell, code)
		}
		return nil
	}
	if err := f(w.node, w.begin(cell)); err != nil {
		if cell != nil {
			w.end(cell, fault.Arg)
		}
		return errorOf(err)
	}
	w.advance(nil)
	w.set.ep.Links().Flush()
	return nil
}

// Operate starts an operation. The cell (unless nil) is done when the operation is locally
// complete. If too much is in flight to the target, left is not 0, and More has to be called with
// it until it returns 0.
func (w *Window) Operate(op rma.Operation, cell *pt2pt.Cell) (left uint64, err error) {
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

// More continues operation left, which a previous call has begun. It returns 0 when all parts of
// the operation are issued, and left otherwise.
func (w *Window) More(left uint64) (uint64, error) {
	rest := uint64(0) // also of a window that has failed
	err := w.Call(nil, func(*rma.Node, any) error {
		if t := w.begun[left]; t == nil || w.issue(t) {
			delete(w.begun, left)
		} else {
			rest = left
		}
		return nil
	})
	return rest, err
}

// issue sends as much of an operation as it may. It returns true if that was all.
func (w *Window) issue(t *rma.Transfer) bool {
	for !w.node.Full(t.Target()) {
		over := w.node.Issue(t)
		w.advance(nil)
		if over || w.set.ep.Err() != nil {
			return true
		}
	}
	return false
}
