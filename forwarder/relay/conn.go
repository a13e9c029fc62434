package relay

import (
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder/loop"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/splice"
	"github.com/leidenzipper/zipper/internal/trickle"
	"github.com/leidenzipper/zipper/internal/wire"
)

var errLinger = errors.New("did not close in time")

// Conn is one connection to a rank or to another forwarder. Its loop alone reads from it, writes
// its queue and ends it; other loops write to it directly while the queue is empty. Methods must be
// called on its own loop, except where noted.
type Conn struct {
	shared *Relay
	worker *Worker
	watch  *loop.Watch
	link   transport.Link
	lender transport.Lender // the link, if it supports blocks; otherwise nil
	piper  splice.Link      // the link, if it supports pipes; otherwise nil
	ctl    Control
	out    output
	memory memory        // accounts for received bytes that are still held
	state  atomic.Uint32 // the State of the connection
	route  atomic.Pointer[Route]
	sealing
	// trunk carries bulk frames in place of this connection; nil if this connection carries them.
	trunk atomic.Pointer[trunk]

	// the received bytes of an incomplete frame; like all fields below, used on the connection's
	// loop only
	input    input
	parting  bool      // whether the peer has sent Bye, so that the end of the stream is expected
	deadline time.Time // the time at which lingering ends
	lastRead time.Time // the time at which bytes last arrived
	counted  time.Time // the time at which Tick last sent a Count
	// compares the Counts that the peer sends (numbers of bytes) with the bytes that have arrived
	received wire.Counted
	slow     trickle.Detector // detects a received frame that stays incomplete for too long
	pinged   bool             // whether a Ping has been sent since lastRead
	bad      bool             // whether the input has violated the protocol
	closing  bool             // whether the peer closed the link while reading was paused
}

// Conn returns a connection over a link, in state Joining. Its loop reads it once Open has been
// called.
func (r *Relay) Conn(w *Worker, link transport.Link, control Control) *Conn {
	c := &Conn{shared: r, worker: w, link: link, ctl: control}
	c.lender, _ = link.(transport.Lender)
	c.piper, _ = link.(splice.Link)
	c.out = output{link: link, lender: c.lender, piper: c.piper, pool: &r.pool, arm: c.armWrite, broken: c.broken,
		limits: limits{r.cfg.FlowLimit, r.cfg.ControlLimit}, watched: watched{length: r.cfg.Length,
			waited: r.cfg.Waited}}
	c.out.placer, _ = link.(transport.Placer)
	c.memory.Open(r.cfg.Memory, r.cfg.Joining)
	c.memory.wake = func() { c.Post(c.wake) }
	return c
}

// Post runs fn on the connection's loop soon. It may be called on any thread.
func (c *Conn) Post(fn func()) { c.worker.Loop.Post(fn) }

// Now returns the time at which the present turn of the connection's loop began.
func (c *Conn) Now() time.Time { return c.worker.Loop.Now() }

// Link returns the transport's link that the connection uses. It may be called on any thread.
func (c *Conn) Link() transport.Link { return c.link }

// Control returns the Control that the connection was made with. It may be called on any thread.
func (c *Conn) Control() Control { return c.ctl }

// Bad calls Control.Bad, which ends the connection because its input violates the protocol. It does
// nothing if the connection has begun to end. Input that follows is discarded.
func (c *Conn) Bad(reason string) {
	if c.heeded() {
		c.bad = true
		c.ctl.Bad(reason)
	}
}

// Send writes or queues a whole frame that the forwarder itself sends to the peer. It returns an
// error if too many bytes are queued. It may be called on any thread.
func (c *Conn) Send(frame []byte) error { return c.send(nil, frame) }

// send is Send for a frame that answers one of the connection whose memory is from, to which its
// bytes are charged until they are written. They are charged to nobody if from is nil.
func (c *Conn) send(from *memory, frame []byte) error {
	return c.sealed(frame, func(frame []byte) error {
		_, err := c.out.write(make([][]byte, 1), from, wire.Nobody, frame, nil)
		return err
	})
}

// FinishWith queues frame as the last one for the peer, behind all others. The caller must not send
// anything afterwards. It may be called on any thread.
func (c *Conn) FinishWith(frame []byte) {
	_ = c.sealed(frame, func(frame []byte) error { c.out.finishWith(frame); return nil })
}

// AbortWith discards the queue, sends frame as the last one, and then waits for the peer to close
// the link. It does nothing if the connection does so already.
func (c *Conn) AbortWith(frame []byte) {
	if c.live() {
		_ = c.sealed(frame, func(frame []byte) error { c.out.abortWith(frame); return nil })
		c.Linger()
	}
}

// Part notes that the peer has sent Bye: from now on the end of the stream is not a loss.
func (c *Conn) Part() { c.parting = true }

// FinishNow ends the connection at once if the queue is empty, and otherwise lingers until the
// queue is written and the peer closes.
func (c *Conn) FinishNow() {
	switch {
	case !c.live():
	case c.out.waits():
		c.Linger()
	default:
		c.End(nil)
	}
}

// Linger begins to wait for the peer to close the link, because the last frame for it has been
// queued. The wait ends after Config.Linger.
func (c *Conn) Linger() {
	if c.to(Lingering) {
		c.input.drop(c)
		c.resume() // input is discarded from now on
		c.deadline = c.Now().Add(c.shared.cfg.Linger)
	}
}

// End closes the link at once and calls Control.Ended. cause is the reason, or nil for a clean end.
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

// Widen multiplies the limits on the bytes that each sending rank may have queued for this
// connection by n, the number of ranks behind it. A second call multiplies them again. It may be
// called on any thread.
func (c *Conn) Widen(n int) { c.out.widen(n) }

// Queued returns the number of bytes of the frames that wait to be written to the link. A frame
// that is partly written counts in full until all of it is written. It may be called on any thread.
func (c *Conn) Queued() int { return c.out.queued() }

// frame returns the bytes of a frame of type t without a body, for the other end of a link rather
// than for a rank.
func frame(t wire.Type) []byte {
	return wire.AppendFrame(nil, wire.Control(t), nil)
}

// allowed returns an error unless the peer may send a frame with header h. It is called before the
// frame is handled or memory is allocated for it.
func (c *Conn) allowed(h *wire.Header, r *Route) error {
	if r == nil {
		r = c.ctl.Route()
	}
	if n := int64(len(r.Table)); h.Src == r.Rank && int64(h.Src) < n && int64(h.Dst) < n && h.Type.BetweenRanks() {
		return nil
	}
	return r.Allowed(*h)
}

// broken asks the loop to end the connection, because a write to its link has failed. The caller
// holds out.mu.
func (c *Conn) broken() {
	c.Post(func() { c.End(c.out.cause()) })
}

// armWrite asks the loop to report when the link is writable, or not to. The caller holds out.mu,
// so that End cannot close the link meanwhile.
func (c *Conn) armWrite(on bool) {
	if err := c.watch.ArmWrite(on); err != nil {
		c.shared.cfg.Log.Error("cannot wait for a link to become writable", zap.Error(err))
		c.out.fail(err)
	}
}
