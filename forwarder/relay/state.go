package relay

import (
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/internal/wire"
)

// State is where a connection is in its life:
//
//	Joining ─Run→ Running ─last frame→ Lingering ─peer closes, or too slow→ Ended
//	Joining ─refused→ Lingering
//	any ─link closed or failed→ Ended
type State uint32

const (
	// Joining: frames that come are for the control, and only those that belong to the join
	// exchange; Send sends the forwarder's own. No frame of a rank comes or goes.
	Joining State = iota

	// Running: the connection has its route. Frames that come are relayed by it or, if they are for
	// the forwarder, given to the control. Any loop sends frames to it.
	Running

	// Lingering: a last frame is on its way. What comes is thrown away until the peer closes;
	// nothing more is to be sent.
	Lingering

	// Ended: the link is closed. Nothing comes, and what is sent is thrown away.
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

// State is where the connection is. Any thread; Lingering and Ended begin on its own loop.
func (c *Conn) State() State { return State(c.state.Load()) }

// live reports whether frames that come are handled.
func (c *Conn) live() bool { return c.State() < Lingering }

// Run gives the connection its route. If it has begun to end meanwhile it goes on with that. Any
// thread.
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

// to moves the connection to the next state. It reports false if that does not follow on the state:
// two causes of an end meet, or the start of a job and an end.
func (c *Conn) to(next State) bool {
	for {
		s := c.State()
		if legal[s]&(1<<next) == 0 {
			return false
		}
		if c.state.CompareAndSwap(uint32(s), uint32(next)) {
			switch {
			case next == Running:
				c.worker.Loop.Hurry(1)
			case s == Running:
				c.worker.Loop.Hurry(-1)
			}
			if e := c.shared.cfg.Log.Check(zap.DebugLevel, "connection"); e != nil {
				e.Write(zap.Stringer("was", s), zap.Stringer("is", next), zap.Object("peer", c.ctl))
			}
			return true
		}
	}
}

// full reports whether the connection must not be read now, because too much is kept of what came
// over it (buffer.go). It sees to it that the connection is read again. On its loop, as what
// follows.
func (c *Conn) full() bool {
	if c.closing || !c.memory.Over() || !c.live() {
		return false
	}
	c.memory.paused.Store(true)
	if err := c.watch.Pause(); err != nil {
		c.End(err)
		return true
	}
	if c.memory.Under() { // what was given back before it was paused has woken nobody
		c.resume()
	}
	return true
}

// wake reads the connection again, if there is room still.
func (c *Conn) wake() {
	c.memory.waking.Store(false)
	if c.memory.Under() {
		c.resume()
	}
}

// resume reads the connection again.
func (c *Conn) resume() {
	if c.State() == Ended || !c.memory.paused.Swap(false) {
		return
	}
	if err := c.watch.Resume(); err != nil {
		c.End(err)
	}
}

// tickPaused looks at a connection that is not read, now and then: it is not silent, and we are
// not, though its pings are not answered. Others may have made room for it.
func (c *Conn) tickPaused(now time.Time) {
	c.heard, c.pinged = now, false
	_ = c.Send(frame(wire.TypePong)) // too much waits for it: it hears that
	c.wake()
}

// otherEndClosed has what is left read: then there is no more.
func (c *Conn) otherEndClosed() {
	c.closing = true
	c.shared.cfg.Log.Debug("a connection that was not read is closed", zap.Object("peer", c.ctl))
	c.resume()
}
