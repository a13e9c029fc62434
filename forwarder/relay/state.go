package relay

import (
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/internal/wire"
)

// State is the stage of a connection:
//
//	Joining ─Run→ Running ─last frame→ Lingering ─peer closes, or too slow→ Ended
//	Joining ─refused→ Lingering
//	any ─link closed or failed→ Ended
type State uint32

const (
	// Joining means that received frames go to the control, and are refused unless they belong to
	// the join exchange. Send sends the forwarder's own. No frame of a rank is received or sent.
	Joining State = iota

	// Running means that the connection has its route. Received frames are relayed by it or, if
	// they are for the forwarder, passed to the control. Any loop sends frames to the connection.
	Running

	// Lingering means that the last frame has been queued. Input is discarded until the peer
	// closes; nothing more may be sent.
	Lingering

	// Ended means that the link is closed. Frames that are sent are discarded.
	Ended
)

var stateNames = [...]string{"joining", "running", "lingering", "ended"}

func (s State) String() string { return stateNames[s] }

// legal[from] is the set of states that may follow.
var legal = [...]uint{
	Joining:   1<<Running | 1<<Lingering | 1<<Ended,
	Running:   1<<Lingering | 1<<Ended,
	Lingering: 1 << Ended,
	Ended:     0,
}

// State returns the present stage of the connection. It may be called on any thread; the states
// Lingering and Ended begin on the connection's own loop.
func (c *Conn) State() State { return State(c.state.Load()) }

// live reports whether the connection has not begun to end.
func (c *Conn) live() bool { return c.State() < Lingering }

// heeded reports whether frames that arrive are handled: the connection has not begun to end, and
// they do not follow input that violates the protocol, after which their limits are unknown.
func (c *Conn) heeded() bool { return c.live() && !c.bad }

// Run gives the connection its route in a job, and so lets it carry frames of that job. A
// connection that has begun to end continues to end. Run may be called on any thread.
func (c *Conn) Run(r *Route) {
	if r.Memory != nil {
		c.memory.Move(r.Memory)
	}
	c.out.watch(r.Blocked)
	c.out.runs()
	c.route.Store(r)
	if c.to(Running) && c.out.uncounted() {
		sendCount(c)
	}
}

// to moves the connection to the next state. It returns false if that may not follow the present
// state, which happens when two causes of an end coincide, or the start of a job and an end.
func (c *Conn) to(next State) bool {
	for {
		s := c.State()
		if legal[s]&(1<<next) == 0 {
			return false
		}
		if c.state.CompareAndSwap(uint32(s), uint32(next)) {
			switch {
			case next == Running:
				c.worker.Loop.AddSpinning(1)
			case s == Running:
				c.worker.Loop.AddSpinning(-1)
			}
			if e := c.shared.cfg.Log.Check(zap.DebugLevel, "connection"); e != nil {
				e.Write(zap.Stringer("was", s), zap.Stringer("is", next), zap.Object("peer", c.ctl))
			}
			return true
		}
	}
}

// full reports whether reading must pause now because the connection holds too many bytes
// (buffer.go). It arranges for reading to resume. It must be called on the connection's loop, as
// the functions below.
func (c *Conn) full() bool {
	if c.closing || !c.memory.Over() || !c.live() {
		return false
	}
	c.memory.paused.Store(true)
	if err := c.watch.Pause(); err != nil {
		c.End(err)
		return true
	}
	if c.memory.Under() { // bytes that were released before the pause woke nothing
		c.resume()
	}
	return true
}

// wake has the connection read again if it is still under its memory limits.
func (c *Conn) wake() {
	c.memory.waking.Store(false)
	if c.memory.Under() {
		c.resume()
	}
}

// resume has the connection read again, if it was not read for lack of memory.
func (c *Conn) resume() {
	if c.State() == Ended || !c.memory.paused.Swap(false) {
		return
	}
	if err := c.watch.Resume(); err != nil {
		c.End(err)
	}
}

// tickPaused handles the tick at time now of a connection that is not read for lack of memory. The
// peer is not treated as silent. Once it has joined it is sent a Pong, because its pings are not
// read. Reading resumes if other connections have made room.
func (c *Conn) tickPaused(now time.Time) {
	c.lastRead, c.pinged = now, false
	if c.State() == Running { // a peer that joins expects no Pong
		// if the queue is full, the queued bytes are a sign of life
		_ = c.Send(frame(wire.TypePong))
	}
	c.wake()
}

// otherEndClosed has a connection read again that was not read for lack of memory: the peer has
// closed the link, so no more than the rest of the input will arrive.
func (c *Conn) otherEndClosed() {
	c.closing = true
	c.shared.cfg.Log.Debug("a connection that was not read is closed", zap.Object("peer", c.ctl))
	c.resume()
}
