package relay

import (
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder/loop"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/trickle"
	"github.com/leidenzipper/zipper/internal/wire"
)

var errLinger = errors.New("did not close in time")

// Conn is one connection. Its loop alone reads from it, writes what is queued for it and ends it;
// other loops write to it directly while nothing is queued. Methods are for its own loop, except
// where noted.
type Conn struct {
	shared *Relay
	worker *Worker
	watch  *loop.Watch
	link   transport.Link
	lender transport.Lender // the link, if it has large pieces
	piper  transport.Piper  // the link, if pipes take what comes and give what goes
	ctl    Control
	out    output
	memory memory        // what is kept of what came over it
	state  atomic.Uint32 // a State; set by to
	route  atomic.Pointer[Route]
	sealing
	trunk atomic.Pointer[trunk] // carries bulk in place of this connection; nil: nothing does

	// The rest belongs to the loop.
	input    input
	parting  bool      // the end of the stream is no loss
	deadline time.Time // of lingering
	heard    time.Time // last bytes
	counted  time.Time // last Count that was sent
	came     wire.Counted
	slow     trickle.Detector
	pinged   bool // since then
	closing  bool // the other end has closed it
}

// Conn makes a connection of a link, in state Joining. Open has it read.
func (r *Relay) Conn(w *Worker, link transport.Link, control Control) *Conn {
	c := &Conn{shared: r, worker: w, link: link, ctl: control}
	c.lender, _ = link.(transport.Lender)
	c.piper, _ = link.(transport.Piper)
	c.out = output{link: link, lender: c.lender, piper: c.piper, pool: &r.pool, arm: c.armWrite, broken: c.broken,
		limits: limits{r.cfg.FlowLimit, r.cfg.ControlLimit}, watched: watched{length: r.cfg.Length,
			waited: r.cfg.Waited}}
	c.out.placer, _ = link.(transport.Placer)
	c.memory.Open(r.cfg.Memory, r.cfg.Joining)
	c.memory.wake = func() { c.Post(c.wake) }
	return c
}

// Post has the connection's loop run fn soon. Any thread.
func (c *Conn) Post(fn func()) { c.worker.Loop.Post(fn) }

// Now is when the loop's turn began.
func (c *Conn) Now() time.Time { return c.worker.Loop.Now() }

// Link is what the connection is made of. Any thread may ask it who is there.
func (c *Conn) Link() transport.Link { return c.link }

// Control is what decides about the connection. Any thread.
func (c *Conn) Control() Control { return c.ctl }

// Bad ends the connection because of what came over it, with Control.Bad.
func (c *Conn) Bad(reason string) {
	if c.live() {
		c.ctl.Bad(reason)
	}
}

// Send writes a whole frame of the forwarder's own, or queues it. The error says that too many
// wait. Any thread.
func (c *Conn) Send(frame []byte) error {
	return c.sealed(frame, func(frame []byte) error {
		_, err := c.out.write(make([][]byte, 1), nil, wire.Nobody, frame, nil)
		return err
	})
}

// FinishWith puts a last frame behind all that is queued. The caller sees to it that nothing is
// sent afterwards. Any thread.
func (c *Conn) FinishWith(frame []byte) {
	_ = c.sealed(frame, func(frame []byte) error { c.out.finishWith(frame); return nil })
}

// AbortWith sends a last frame in place of what is queued, and lingers. Harmless if it does
// already.
func (c *Conn) AbortWith(frame []byte) {
	if c.live() {
		_ = c.sealed(frame, func(frame []byte) error { c.out.abortWith(frame); return nil })
		c.Linger()
	}
}

// Part says that the end of the stream is no loss from now on: the peer has said Bye.
func (c *Conn) Part() { c.parting = true }

// FinishNow ends the connection when what is queued is out: at once, or when the peer closes.
func (c *Conn) FinishNow() {
	switch {
	case !c.live():
	case c.out.waits():
		c.Linger()
	default:
		c.End(nil)
	}
}

// Linger waits for the peer to close, since the last frame is on its way.
func (c *Conn) Linger() {
	if c.to(Lingering) {
		c.input.drop(c)
		c.resume() // what comes is thrown away
		c.deadline = c.Now().Add(c.shared.cfg.Linger)
	}
}

// End closes the link and says so to the control; cause is nil for a clean end.
func (c *Conn) End(cause error) {
	if !c.to(Ended) {
		return
	}
	c.out.close()
	c.input.drop(c)
	if c.watch != nil {
		_ = c.watch.Remove() // the descriptor is closed next
	}
	c.link.Close()
	c.ctl.Ended(cause)
}

// Widen raises the limits of what may wait for a connection that leads to n ranks. Any thread.
func (c *Conn) Widen(n int) { c.out.widen(n) }

// Queued is how many bytes wait to be written. Any thread.
func (c *Conn) Queued() int { return c.out.queued() }

// frame returns a frame without body between the two ends of a link.
func frame(t wire.Type) []byte {
	return wire.AppendFrame(nil, wire.Control(t), nil)
}

// allowed checks a header before anything is done, or memory taken, for the frame.
func (c *Conn) allowed(h *wire.Header, r *Route) error {
	if r == nil {
		r = c.ctl.Route()
	}
	if n := int64(len(r.Table)); h.Src == r.Rank && int64(h.Src) < n && int64(h.Dst) < n && h.Type.BetweenRanks() {
		return nil
	}
	return r.Allowed(*h)
}

// broken is called with out.mu held.
func (c *Conn) broken() {
	c.Post(func() { c.End(c.out.cause()) })
}

// armWrite is called with out.mu held, so that the link cannot be closed meanwhile by End.
func (c *Conn) armWrite(on bool) {
	if err := c.watch.ArmWrite(on); err != nil {
		c.shared.cfg.Log.Error("cannot wait for a link to become writable", zap.Error(err))
		c.out.fail(err)
	}
}
