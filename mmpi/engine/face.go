package engine

import (
	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/internal/rma"
	"github.com/leidenzipper/zipper/mmpi/engine/coll"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
	"github.com/leidenzipper/zipper/mmpi/engine/pt2pt"
	"github.com/leidenzipper/zipper/mmpi/engine/rmawin"
)

// The calls that the program makes to the layers, each under the lock. Packages pt2pt, coll and
// rmawin document them.

type (
	// Comm is a spanning communicator.
	Comm = pt2pt.Comm
	// Request is one outstanding operation.
	Request = pt2pt.Request
	// Cell tells an operation's owner that it has ended.
	Cell = pt2pt.Cell
	// Coll is one collective.
	Coll = coll.Operation
	// BadMemory is memory of the program that the kernel could not access for a link.
	BadMemory = fault.BadMemory
	// Window is a window for one-sided communication; its methods lock by themselves.
	Window = rmawin.Window
)

// Wildcards and rank constants, kinds of traffic, and the context of MPI_COMM_WORLD, as in package
// pt2pt.
const (
	AnySource      = pt2pt.AnySource
	AnyTag         = pt2pt.AnyTag
	ProcNull       = pt2pt.ProcNull
	Remote         = pt2pt.Remote
	KindP2P        = pt2pt.KindP2P
	KindCollective = pt2pt.KindCollective
	KindInternal   = pt2pt.KindInternal
	WorldContext   = pt2pt.WorldContext
)

// Isend starts to send buf to rank dest of the communicator, which is in another cluster. Small
// messages that a program sends one after the other go out together (coalesce.go).
func (e *Engine) Isend(c *Comm, kind int, buf []byte, dest, tag int, sync bool, cell *Cell) error {
	e.lock()
	defer e.unlock()
	if err := e.p2p.Isend(c, kind, buf, dest, tag, sync, cell); err != nil {
		return err
	}
	if e.wait.Started() && e.coalesce.keep(len(buf)) {
		e.wait.FlushSoon()
		return nil
	}
	e.links.Flush()
	return nil
}

// Supply continues a send for which Cell.Missing has become lower. request is the number that the
// cell got from Isend; the send may have ended. Any thread.
func Supply(e *Engine, request uint64) {
	e.lock()
	defer e.unlock()
	pt2pt.Supply(e.p2p, request)
}

// Irecv starts to receive into buf. Small messages stay held unless the receive matches a message
// at once, because a program may send and receive by turns. Application threads only.
func (e *Engine) Irecv(c *Comm, kind int, buf []byte, source, tag int, cell *Cell) error {
	e.lock()
	defer e.unlock()
	met, err := e.p2p.Irecv(c, kind, buf, source, tag, cell)
	if met {
		e.links.Flush()
	}
	return err
}

// Shadowed reports whether a receive from a local rank has to be given to Irecv; otherwise it may
// be posted natively at once. Application threads only.
func (e *Engine) Shadowed(c *Comm, source, tag int) bool {
	e.lock()
	defer e.unlock()
	return e.p2p.Shadowed(c, source, tag)
}

// Cancel tries to cancel an operation; how it went is in the cell when it is done. Application
// threads only.
func (e *Engine) Cancel(cell *Cell) error {
	e.lock()
	defer e.unlock()
	return e.p2p.Cancel(cell)
}

// Iprobe looks for a message without receiving it; out is done if it found one. Application threads
// only.
func (e *Engine) Iprobe(c *Comm, source, tag int, out *Cell) error {
	e.lock()
	defer e.unlock()
	return e.p2p.Iprobe(c, source, tag, out)
}

// Improbe looks for a message as Iprobe does and takes it, so that only Mrecv of its handle
// receives it, unless native says that the handle is Native's. Application threads only.
func (e *Engine) Improbe(c *Comm, source, tag int, out *Cell) (handle uint64, native bool, err error) {
	e.lock()
	defer e.unlock()
	return e.p2p.Improbe(c, source, tag, out)
}

// Mrecv receives a message that Improbe took.
func (e *Engine) Mrecv(handle uint64, buf []byte, cell *Cell) error {
	e.lock()
	defer e.unlock()
	if err := e.p2p.Mrecv(handle, buf, cell); err != nil {
		return err
	}
	e.links.Flush()
	return nil
}

// NewContext returns a context id that no process has returned before.
func (e *Engine) NewContext() uint64 {
	e.lock()
	defer e.unlock()
	return e.p2p.NewContext()
}

// AddComm adds a communicator. world[i] is the virtual rank of rank i, and native[i] its rank in
// the local part, or Remote. The slices are copied. Messages that arrived before the call can be
// received at once.
func (e *Engine) AddComm(user uintptr, context uint64, rank int, world, native []int32) (*Comm, error) {
	e.lock()
	defer e.unlock()
	c, err := e.p2p.AddComm(user, context, rank, world, native)
	if err == nil {
		e.consent.added(c)
	}
	return c, err
}

// DropComm removes a communicator. No operation may be outstanding. Messages that were not received
// are discarded.
func (e *Engine) DropComm(c *Comm) error {
	e.lock()
	defer e.unlock()
	if n := e.colls.Outstanding(c); n > 0 {
		return failure(ErrArg, "communicator %x is freed with %d collectives outstanding", c.Context(), n)
	}
	if n := e.consent.outstanding(c); n > 0 {
		return failure(ErrArg, "communicator %x is freed with %d agreements outstanding", c.Context(), n)
	}
	if err := e.p2p.DropComm(c); err != nil {
		return err
	}
	e.consent.drop(c)
	e.colls.Drop(c)
	return nil
}

// Comm returns the communicator with a number, or nil if there is none. It does not lock.
func (e *Engine) Comm(id int32) *Comm { return e.p2p.Comm(id) }

// Collective starts a collective; the cell is done when it is over in this process. Application
// threads only.
func (e *Engine) Collective(c *Comm, what Coll, cell *Cell) error {
	e.lock()
	defer e.unlock()
	if err := e.colls.Start(c, what, cell); err != nil {
		return err
	}
	e.links.FlushPending()
	return nil
}

// Leaf reports whether this process could do a collective by itself, without the engine, and
// returns its part in it; see collectives.Leaf.
func (e *Engine) Leaf(c *Comm, what Coll) (collectives.Part, bool) {
	e.lock()
	defer e.unlock()
	return e.colls.Leaf(c, what)
}

// AddWindow returns this process's end of a new window.
func (e *Engine) AddWindow(context uint64, rank int, world []int32, cfg rma.Config) (*Window, error) {
	e.lock()
	defer e.unlock()
	return e.windows.Add(context, rank, world, cfg)
}

// Window returns the window with a number, or nil if there is none. It does not lock.
func (e *Engine) Window(id int32) *Window { return e.windows.Window(id) }

// Recording reports whether traffic is being recorded.
func (e *Engine) Recording() bool { return e.recorder != nil }

// RecordLocal records a message sent to a rank of this cluster, which the engine does not see. It
// is safe for concurrent use, also from Native's methods.
func (e *Engine) RecordLocal(rank int, bytes int64) {
	if records(e, rank) {
		e.recorder.Sent(e.links.Now(), rank, int(bytes))
	}
}

// RecordTaken records that a message from a rank of this cluster has been received. It is safe for
// concurrent use, as RecordLocal is.
func (e *Engine) RecordTaken(rank int) {
	if records(e, rank) {
		e.recorder.Received(e.links.Now(), rank)
	}
}

func records(e *Engine, rank int) bool {
	return e.recorder != nil && rank != e.world.Rank && e.sameCluster(rank)
}

// RecordWait records that the program begins to wait for messages, or no longer waits. It is safe
// for concurrent use, as RecordLocal is.
func (e *Engine) RecordWait(begins bool) {
	if e.recorder != nil {
		e.recorder.Waits(e.links.Now(), begins)
	}
}
