package failover

import (
	"fmt"
	"slices"
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// Rail is what fail-over knows of one rail. Tracker.Forwarder or Tracker.Direct prepares it. Only
// this package changes it.
type Rail struct {
	index int          // place among the rails to forwarders, as in Config.Paths; direct: after these
	peer  int          // virtual rank of the process at the other end; -1: a forwarder
	addr  string       // address of the forwarder as the job names it; empty: unknown
	paths [][]int      // Config.Paths
	trace func(string) // Config.Trace

	dialing

	state    State
	linked   bool // There is a link.
	owesBye  bool // Bye must be sent, or sent again, once there is a link.
	warned   bool // The user knows that the forwarder is not in use.
	replaced bool // The rail has had another link, so what arrives may be a duplicate.

	// stopped says that the forwarder ended the last link with Bye. It is then dialed for the whole
	// patience even while its host refuses connections: an administrator may be restarting it.
	stopped bool

	losses   int           // links that the rail has lost
	strikes  int           // losses in a row, each soon after the link was up and without progress
	upAt     time.Duration // when the link came up
	progress uint64        // the process's progress at that time (Loss.Progress)
	lostAt   time.Duration // when the last link was lost; 0: never
	cause    string        // why it was lost

	// unreachable has the forwarder's report of each virtual rank to which it has no link.
	unreachable map[int]wire.RailState
}

// dialing is how this end opens the rail's link.
type dialing struct {
	dials    bool  // This end opens the link again.
	attempts bool  // An attempt to open it is in progress.
	err      error // why the last attempt failed; nil: none has since the link was up
	refused  bool  // err is a refused connection
}

// State returns the rail's state.
func (r *Rail) State() State { return r.state }

// Linked reports whether the rail has a link.
func (r *Rail) Linked() bool { return r.state >= Up && r.linked }

// Reads reports whether the rail's link is read. No thread sleeps on a link that is not: once the
// other end has closed it, its descriptor would always be ready.
func (r *Rail) Reads() bool { return r.Linked() && r.state != Closed }

// Open reports whether the rail takes frames for other ranks.
func (r *Rail) Open() bool { return r.state == Up || r.state == ByeSent }

// OwesBye reports whether Bye must be sent as soon as the rail has a link.
func (r *Rail) OwesBye() bool { return r.owesBye }

// Replaced reports whether the rail has had another link before: what arrives may be a duplicate.
func (r *Rail) Replaced() bool { return r.replaced }

// Losses returns how many links the rail has lost.
func (r *Rail) Losses() int { return r.losses }

// Unreachable returns to how many ranks the forwarder has no link.
func (r *Rail) Unreachable() int { return len(r.unreachable) }

// Dials reports whether this end opens the link again when it is lost.
func (d *dialing) Dials() bool { return d.dials }

// Dialing reports whether an attempt to open the link is in progress.
func (d *dialing) Dialing() bool { return d.attempts }

// DialError returns why the last attempt to open the link failed, or nil if none has failed since
// the link was up.
func (d *dialing) DialError() error { return d.err }

// StopRedial has the rail not opened again by this end.
func (d *dialing) StopRedial() { d.dials = false }

// Attempt notes that an attempt to open the rail begins, or is over.
func (d *dialing) Attempt(begins bool) { d.attempts = begins }

// attemptFailed notes why an attempt to open the rail has failed.
func (d *dialing) attemptFailed(f Failure) { d.err, d.refused = f.Err, f.Refused }

// Name tells the rails of a process apart.
func (r *Rail) Name() string {
	if r.peer >= 0 {
		return fmt.Sprintf("to rank %d", r.peer)
	}
	return fmt.Sprint(r.index)
}

// End names the other end of the rail.
func (r *Rail) End() string {
	if r.peer >= 0 {
		return fmt.Sprintf("rank %d", r.peer)
	}
	return "forwarder"
}

// Reaches reports whether frames for a rank may take the rail: this end has a link, and the
// forwarder has not reported that the rank has none.
func (r *Rail) Reaches(rank int) bool {
	switch {
	case !r.Open():
		return false
	case r.peer >= 0:
		return r.peer == rank
	case r.paths != nil && !slices.Contains(r.paths[rank], r.index):
		return false
	case len(r.unreachable) == 0:
		return true
	}
	_, out := r.unreachable[rank]
	return !out
}

// to moves the rail to a state; a transition that is not legal is a bug, and panics.
func (r *Rail) to(s State) {
	if legal[r.state]&(1<<s) == 0 {
		panic(fmt.Sprintf("link: rail goes from %v to %v", r.state, s))
	}
	if r.trace != nil && r.state != s {
		r.trace(fmt.Sprintf("rail %s: %v -> %v", r.Name(), r.state, s))
	}
	r.state = s
}

// up notes that a link has been put into use.
func (r *Rail) up(now time.Duration, progress uint64) {
	r.to(Up)
	r.linked, r.replaced, r.stopped = true, true, false
	r.unreachable = nil
	r.attemptFailed(Failure{})
	r.upAt, r.progress = now, progress
}

// down takes the rail out of use, whose link was lost for a reason.
func (r *Rail) down(now time.Duration, reason string) {
	r.fail()
	r.linked, r.unreachable = false, nil
	if r.peer < 0 {
		r.cause, r.lostAt = reason, now
	}
}

// fail takes the rail out of use. A Bye that was not acknowledged must be sent again over another
// link if the forwarder can be dialed: the forwarder may not have read it, and would then tell
// others that this process is lost.
func (r *Rail) fail() {
	r.owesBye = r.state == ByeSent && r.dials && r.peer < 0
	if r.state == Up || r.owesBye {
		r.to(Down)
	} else {
		r.to(Closed)
	}
}

// Discard takes the rail out of use at the end of the job; nothing is sent again.
func (r *Rail) Discard() { r.fail() }

// Detached notes that the link of a rail in state Closed has been closed.
func (r *Rail) Detached() { r.linked = false }

// close ends the use of the rail.
func (r *Rail) close() {
	r.to(Closed)
	r.linked, r.owesBye = false, false
}

// strike counts a loss, and reports whether it is one too many.
func (r *Rail) strike(now time.Duration, progress uint64) bool {
	if r.losses++; progress != r.progress || now-r.upAt > strikeTime {
		r.strikes = 0
	}
	r.strikes++
	return r.strikes >= maxStrikes
}

// report notes what the forwarder reports of its link to a rank.
func (r *Rail) report(rank int, x wire.RailState) {
	if x.Up || x.Departed {
		delete(r.unreachable, rank)
		return
	}
	if r.unreachable == nil {
		r.unreachable = map[int]wire.RailState{}
	}
	x.Reason = wire.Printable(x.Reason)
	r.unreachable[rank] = x
}

// Stopped notes that the forwarder has announced with Bye that it ends the link.
func (r *Rail) Stopped() { r.stopped = true }

// ByeSent notes that Bye is queued on the rail.
func (r *Rail) ByeSent() {
	r.to(ByeSent)
	r.owesBye = false
}

// ByeAcked notes that the other end has acknowledged the Bye.
func (r *Rail) ByeAcked() { r.to(Closed) }

// PeerLeft notes that the process at the other end of a direct rail has sent Bye.
func (r *Rail) PeerLeft() {
	if r.state == Up {
		r.to(Leaving)
	}
}

// leave notes that Bye must be sent as soon as the rail has a link.
func (r *Rail) leave() { r.owesBye = true }

// Redial has the rail opened. It returns how long the caller waits before the first attempt; ok is
// false if this end does not open it.
func (r *Rail) Redial() (pause time.Duration, ok bool) {
	if !r.dials {
		return 0, false
	}
	r.to(Dialing)
	if r.strikes > 1 {
		pause = min(firstRedial<<(r.strikes-1), maxRedial)
	}
	return pause, true
}

// giveUp has the rail not opened any more.
func (r *Rail) giveUp() {
	r.dials = false
	r.to(Down)
}
