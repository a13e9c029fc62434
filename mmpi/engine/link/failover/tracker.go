// Package failover decides what follows when a rail loses its link: whether it is opened again,
// which ranks can still be reached, what the user is told, and when the job ends. It is a state
// machine: its caller says what has happened and when, and carries out what the methods return. It
// opens no link and sends nothing.
//
//  1. Lost counts a loss as a strike. A rail that is lost again and again without progress ends the
//     job, and so does the only rail if it cannot be opened again.
//  2. Otherwise Down takes the rail out of use. The caller sends what the rail carried over the
//     others, and opens it again (Redial, DialFailed, Up).
//  3. A forwarder that has lost another rank's link reports that (Reachable). For that rank the
//     rail is then lost.
//  4. Deadline ends the job when a rank has been unreachable for too long. Where only one rail
//     leads to a rank, the forwarder at its end decides that, and Deadline waits for the forwarder.
//  5. Once all processes have finished (Finished) no loss is an error: what would have ended the
//     job ends the wait for the others instead (FinishFailed).
//
// Times are since the start of the process's links. A Tracker is not safe for concurrent use.
package failover

import (
	"fmt"
	"slices"
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// Config is what a Tracker starts with.
type Config struct {
	Rank       int     // virtual rank of this process
	Size       int     // number of virtual ranks
	First, End int     // First ≤ rank < End are the ranks of this process's cluster
	Paths      [][]int // by rank, the rails to forwarders that lead there; nil: all lead to all
	Several    bool    // more than one forwarder leads to each rank
	Replays    bool    // the job goes on when a link to a forwarder is lost
	// Patience points to the time that a job goes on without any rail, or while some rank cannot be
	// reached. Its value may change.
	Patience *time.Duration
	Warn     func(string) // tells the user; nil: nobody is told
	Trace    func(string) // is told of every change of a rail's state; nil: nobody is told
}

// Tracker is the state of all rails of a process.
type Tracker struct {
	Config
	reach    reach
	resumes  bool   // One forwarder leads to each rank, and lost links to it are opened again.
	lastLoss string // why a link to a forwarder was lost last

	finished     bool // All processes have reached the end of the job.
	finishFailed bool // Since then the job would have ended with an error.
	ignoring     bool // Losses no longer matter: this process has finished.
	closed       bool
	checkedLate  bool // The user has been warned of forwarders that have never been reached.
	warnedCut    bool // The user knows that forwarders have lost each other.
}

// New returns a Tracker without rails.
func New(cfg Config) *Tracker {
	return &Tracker{Config: cfg, resumes: !cfg.Several && cfg.Replays,
		reach: reach{rank: cfg.Rank, size: cfg.Size, paths: cfg.Paths, since: map[int]time.Duration{}}}
}

// Forwarder adds a rail to a forwarder. linked says that it has a link already, dials that this end
// can open one.
func (t *Tracker) Forwarder(r *Rail, addr string, linked, dials bool) {
	*r = Rail{index: len(t.reach.forwarders), peer: -1, addr: addr, paths: t.Paths, trace: t.Trace, linked: linked,
		dialing: dialing{dials: dials && t.Replays}}
	if linked {
		r.to(Up)
	}
	t.reach.add(r)
}

// Direct prepares a rail to another process. dials says that this end opens it.
func (t *Tracker) Direct(r *Rail, rank int, dials bool) {
	*r = Rail{index: len(t.reach.forwarders), peer: rank, trace: t.Trace, dialing: dialing{dials: dials}}
}

// End says that the job ends.
type End struct {
	Rank       int    // virtual rank that cannot go on
	Reason     string // for the user
	Everywhere bool   // other processes must be told
	Silent     bool   // nothing more can be sent over the rail that was lost
}

// Kind is the kind of an error for which a link was lost.
type Kind uint8

// Kinds of errors.
const (
	Broken    Kind = iota // The link failed, was closed, or was silent.
	Malformed             // What arrived is malformed or corrupted; the link itself still works.
	NoKeys                // There are no keys to seal or open frames with.
	Misused               // The program has closed the link's descriptor.
)

// Loss is an error for which a link is given up.
type Loss struct {
	Kind     Kind
	Reason   string // for the user
	Progress uint64 // a count of what this process has received or had acknowledged
}

// Lost counts the loss of a link. It returns how the job ends because of it, or nil; then the
// caller calls Down.
func (t *Tracker) Lost(now time.Duration, r *Rail, l Loss) *End {
	e := &End{Rank: t.Rank, Reason: l.Reason, Everywhere: true}
	switch {
	case l.Kind == NoKeys:
		return e
	case l.Kind == Misused, r.peer < 0 && !t.Replays && l.Kind != Malformed:
		r.fail()
		e.Silent = true
		return e
	case r.peer < 0 && !t.Replays:
		return e
	case r.strike(now, l.Progress) && !t.ignoring:
		e.Reason = fmt.Sprintf("%s (%d times in a row, with nothing new between)", l.Reason, r.strikes)
		return e
	}
	return nil
}

// Down takes a rail out of use whose link was lost for a reason, and reports whether the caller
// opens it again.
func (t *Tracker) Down(now time.Duration, r *Rail, reason string) (redial bool) {
	r.down(now, reason)
	if r.peer < 0 {
		t.lastLoss = reason
	}
	if t.ignoring && !r.owesBye || r.state == Closed {
		return false
	}
	if r.peer < 0 {
		t.reach.updateAll(now)
		t.warnLost(r, reason)
	}
	return true
}

// Failure is why an attempt to open a rail failed.
type Failure struct {
	Err       error
	Refused   bool // the host refused the connection
	Final     bool // the forwarder does not admit this process any more
	Permanent bool // direct: further attempts are useless
	Cancelled bool // the caller has ended the attempt
}

// DialFailed notes why an attempt to open a rail failed. over reports that the caller makes no
// other attempt; end is how the job ends because of it, or nil.
func (t *Tracker) DialFailed(now time.Duration, r *Rail, f Failure) (over bool, end *End) {
	r.Attempt(false)
	switch {
	case r.peer >= 0:
		r.attemptFailed(f)
		if f.Permanent && r.state == Dialing {
			r.giveUp()
			return true, nil
		}
	case !t.resumes && !r.owesBye:
		r.attemptFailed(f)
		// In a job of several hops the other forwarders of its row go on without this one.
		if t.Paths != nil && r.lostAt > 0 && (f.Final || now-r.lostAt > *t.Patience) {
			r.giveUp()
			t.warnGivenUp(r)
			return true, nil
		}
	case r.owesBye && f.Cancelled: // The attempt was made to rejoin, and the next one says Bye.
		r.attemptFailed(f)
	case r.owesBye && f.Refused && now-r.lostAt < refusedFor: // Others may need the Bye there.
		r.attemptFailed(f)
	case r.owesBye && (f.Final || f.Refused): // The forwarder, or its job, is no longer there.
		r.close()
		return true, nil
	case f.Final:
		return true, &End{Rank: t.Rank, Reason: fmt.Sprintf("%s; it was opened again: %v", r.cause, f.Err)}
	default:
		r.attemptFailed(f)
	}
	return false, nil
}

// Wants reports whether the rail takes a new link.
func (t *Tracker) Wants(r *Rail) bool {
	return !t.closed && (!t.ignoring || r.owesBye) && r.state != Closed && r.state != Leaving
}

// Up puts a link to remote into use. It returns false if the link is no longer wanted.
func (t *Tracker) Up(now time.Duration, r *Rail, progress uint64, remote string) bool {
	if !t.Wants(r) {
		if r.peer < 0 && r.state == Dialing {
			r.to(Down) // until Leave has it opened to send Bye
		}
		return false
	}
	r.up(now, progress)
	if r.peer < 0 {
		t.warnBack(r, remote)
		t.reach.updateAll(now) // The forwarder will report the ranks that it does not reach.
	}
	return true
}

// Change is what a forwarder's report changes.
type Change uint8

// Changes.
const (
	Nothing  Change = iota
	Restored        // The rail may reach the rank again.
	Departed        // The rank has finished: it needs nothing more and sends nothing more.
	Cut             // The rail no longer reaches the rank.
)

// Reachable takes the report of a rail's forwarder about its link to another rank, and returns what
// has changed for that rank. A report that a forwarder cannot have sent is an error.
func (t *Tracker) Reachable(now time.Duration, r *Rail, x wire.RailState) (Change, error) {
	rank := int(x.Rank)
	if !t.Replays || r.peer >= 0 || rank >= t.Size || rank == t.Rank {
		return Nothing, fmt.Errorf("unexpected RailState of rank %d", x.Rank)
	}
	if t.Paths != nil && !slices.Contains(t.Paths[rank], r.index) {
		return Nothing, nil // Other rails lead there.
	}
	r.report(rank, x)
	switch {
	case x.Departed:
		t.reach.restored(rank)
		return Departed, nil
	case x.Up:
		t.reach.restored(rank)
		return Restored, nil
	}
	t.reach.update(now, rank)
	return Cut, nil
}

// Alone reports whether no forwarder but that of r has a link that carries r's frames too.
func (t *Tracker) Alone(r *Rail) bool {
	return !t.Several && r.peer < 0 ||
		!slices.ContainsFunc(t.reach.forwarders, func(o *Rail) bool { return o != r && o.Linked() })
}
