package relay

import "go.uber.org/zap"

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
	c.route.Store(r)
	c.to(Running)
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
			c.shared.cfg.Log.Debug("connection", zap.Stringer("was", s), zap.Stringer("is", next),
				zap.Object("peer", c.ctl))
			return true
		}
	}
}
