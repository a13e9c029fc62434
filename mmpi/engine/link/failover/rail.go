package failover

import (
	"fmt"
	"slices"
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// Rail is the fail-over state of one rail, a path from this process to a forwarder or directly to
// another process. Tracker.Forwarder or Tracker.Direct initializes it. Only this package changes
// it.
type Rail struct {
	index int // index among the rails to forwarders, as in Config.Paths; direct rails have the next index
	// rank, in the whole job, at the other end of a direct rail; -1: the rail leads to a forwarder
	peer  int
	addr  string       // address of the forwarder as the job names it; empty: unknown
	paths [][]int      // indexes of the rails that lead to each rank, by rank (Config.Paths)
	trace func(string) // receives a line about each change of state (Config.Trace); may be nil

	dialing

	state    State // stage of the rail, such as Up or Dialing
	linked   bool  // The rail has an open link.
	owesBye  bool  // This process must send Bye, for the first time or again, as soon as the rail has a link.
	warned   bool  // The user has been warned that the forwarder is not in use.
	replaced bool  // The link was opened after the start, so arriving frames may be duplicates.

	// stopped says that the forwarder ended the last link with Bye. It is then dialed for the whole
	// patience even while its host refuses connections: an administrator may be restarting it.
	stopped bool

	losses   int           // number of losses of the link that this end has noticed first
	strikes  int           // number of losses in a row, as strike counts them
	upAt     time.Duration // time at which the last link came up
	progress uint64        // Loss.Progress of the process at the time upAt
	lostAt   time.Duration // time at which the last link to the forwarder was lost; 0: never
	cause    string        // reason for which the last link to the forwarder was lost, for the user

	// unreachable has, by rank in the whole job, the forwarder's report on each rank to which the
	// forwarder has no link.
	unreachable map[int]wire.RailState
}

// dialing is the state of this end's attempts to open a rail's link.
type dialing struct {
	dials    bool  // This end opens the link again after a loss.
	attempts bool  // An attempt to open the link is in progress.
	err      error // error of the last attempt to open the link; nil: none has failed since the link was up
	refused  bool  // The host refused the last failed attempt; false once the link is up.
	final    bool  // In the last failed attempt the forwarder refused this process for good; false once the link is up.
}

// State returns the rail's present state, such as Up or Dialing.
func (r *Rail) State() State { return r.state }

// Linked reports whether the rail has an open link.
func (r *Rail) Linked() bool { return r.state >= Up && r.linked }

// Reads reports whether the rail's link is read. A thread must not sleep on a link that is not
// read: once the other end has closed the link, its descriptor is always ready.
func (r *Rail) Reads() bool { return r.Linked() && r.state != Closed }

// Open reports whether frames for other ranks may be sent over the rail.
func (r *Rail) Open() bool { return r.state == Up || r.state == ByeSent }

// OwesBye reports whether this process must send Bye to the other end as soon as the rail has a
// link.
func (r *Rail) OwesBye() bool { return r.owesBye }

// Replaced reports whether the rail's link was opened after the start. Then it may have replaced an
// earlier one, so that frames that arrive may be duplicates.
func (r *Rail) Replaced() bool { return r.replaced }

// Losses returns how many losses of the rail's link this end has noticed. A link that the other end
// has replaced before that does not count.
func (r *Rail) Losses() int { return r.losses }

// Unreachable returns the number of ranks to which, by its own reports, the rail's forwarder has no
// link.
func (r *Rail) Unreachable() int { return len(r.unreachable) }

// Dials reports whether this end, rather than the other one, opens the rail's link again when it is
// lost.
func (d *dialing) Dials() bool { return d.dials }

// Dialing reports whether an attempt of this end to open the rail's link is in progress.
func (d *dialing) Dialing() bool { return d.attempts }

// DialError returns why the last attempt to open the link failed, or nil if none has failed since
// the link was up.
func (d *dialing) DialError() error { return d.err }

// StopRedial stops this end from opening the rail's link again after a loss.
func (d *dialing) StopRedial() { d.dials = false }

// StartRedial makes this end open the rail's link.
func (d *dialing) StartRedial() { d.dials = true }

// Attempt records that an attempt to open the rail's link begins (true), or has ended (false).
func (d *dialing) Attempt(begins bool) { d.attempts = begins }

// attemptFailed records why this end's last attempt to open the link has failed.
func (d *dialing) attemptFailed(f Failure) { d.err, d.refused, d.final = f.Err, f.Refused, f.Final }

// Name returns a name for traces that tells the rails of a process apart.
func (r *Rail) Name() string {
	if r.peer >= 0 {
		return fmt.Sprintf("to rank %d", r.peer)
	}
	return fmt.Sprint(r.index)
}

// End returns a name of the forwarder or process at the rail's other end, for messages to the user.
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

// to moves the rail to state s. It panics if that transition is not legal, because the caller has a
// bug then.
func (r *Rail) to(s State) {
	if legal[r.state]&(1<<s) == 0 {
		panic(fmt.Sprintf("link: rail goes from %v to %v", r.state, s))
	}
	if r.trace != nil && r.state != s {
		r.trace(fmt.Sprintf("rail %s: %v -> %v", r.Name(), r.state, s))
	}
	r.state = s
}

// up records that a link of the rail has been put into use at the time now. progress is the
// Loss.Progress of the process at that time.
func (r *Rail) up(now time.Duration, progress uint64) {
	r.to(Up)
	r.linked, r.replaced, r.stopped = true, true, false
	r.unreachable = nil
	r.attemptFailed(Failure{})
	r.upAt, r.progress = now, progress
}

// down takes the rail out of use because its link was lost at the time now. reason is shown to the
// user.
func (r *Rail) down(now time.Duration, reason string) {
	r.fail()
	r.linked, r.unreachable = false, nil
	if r.peer < 0 {
		r.cause, r.lostAt = reason, now
	}
}

// fail takes the rail out of use. A Bye that was not acknowledged must be sent again over another
// link if the forwarder can be dialed: the forwarder may not have read it, and would then report
// this process as lost.
func (r *Rail) fail() {
	r.owesBye = r.state == ByeSent && r.dials && r.peer < 0
	if r.state == Up || r.owesBye {
		r.to(Down)
	} else {
		r.to(Closed)
	}
}

// Discard takes the rail out of use at the end of the job. Nothing is sent again over another rail.
func (r *Rail) Discard() { r.fail() }

// Detached records that the link of a rail in state Closed has been closed.
func (r *Rail) Detached() { r.linked = false }

// close takes the rail out of use for good, in state Closed.
func (r *Rail) close() {
	r.to(Closed)
	r.linked, r.owesBye = false, false
}

// strike counts a loss of the link at the time now. A loss that follows progress, or comes more
// than strikeTime after the link was up, begins a new row. strike returns true if the loss is the
// maxStrikes-th of its row, so that the job ends, or a direct rail is given up.
func (r *Rail) strike(now time.Duration, progress uint64) bool {
	if r.losses++; progress != r.progress || now-r.upAt > strikeTime {
		r.strikes = 0
	}
	r.strikes++
	return r.strikes >= maxStrikes
}

// report records x, the forwarder's report whether it has a link to a rank.
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

// Stopped records that the forwarder has announced with Bye that it ends the link.
func (r *Rail) Stopped() { r.stopped = true }

// ByeSent records that this process has queued Bye on the rail for its other end.
func (r *Rail) ByeSent() {
	r.to(ByeSent)
	r.owesBye = false
}

// ByeAcked records that the other end has acknowledged this process's Bye.
func (r *Rail) ByeAcked() { r.to(Closed) }

// PeerLeft records that the process at the other end of a direct rail has sent Bye.
func (r *Rail) PeerLeft() {
	if r.state == Up {
		r.to(Leaving)
	}
}

// leave records that this process must send Bye to the other end as soon as the rail has a link.
func (r *Rail) leave() { r.owesBye = true }

// Redial moves the rail to Dialing, and returns how long the caller waits before the first attempt
// to open the link. ok is false if this end does not open it.
func (r *Rail) Redial() (pause time.Duration, ok bool) {
	if !r.dials {
		return 0, false
	}
	r.to(Dialing)
	if r.strikes > 1 {
		pause = min(firstRedial<<min(r.strikes-1, maxStrikes), maxRedial)
	}
	return pause, true
}

// giveUp stops this end from opening the rail's link for good.
func (r *Rail) giveUp() {
	r.dials = false
	r.to(Down)
}
