// Package failover decides what follows when a rail loses its link: whether the link is opened
// again, which ranks can still be reached, which warnings the user gets, and when the job ends. It
// is a state machine: its caller reports events with their times, and carries out the decisions
// that the methods return. The package opens no link and sends nothing.
//
//  1. Lost counts a loss as a strike. A rail to a forwarder that is lost again and again without
//     progress ends the job, and so does the only rail if it cannot be opened again. A direct rail
//     that is lost so often is given up: its messages take the forwarders. One on demand takes
//     another link as soon as the pair asks for one again.
//  2. Otherwise Down takes the rail out of use. The caller sends the rail's frames and segments
//     again over the other rails, and reconnects the rail (Redial, DialFailed, Up).
//  3. A forwarder that has lost another rank's link reports that (Reachable). For that rank the
//     rail is then lost.
//  4. Deadline ends the job when a rank has been unreachable for too long. Where only one rail
//     leads to a rank, the forwarder at its end decides that, and Deadline waits for the forwarder.
//  5. Once all processes have finished (Finished), no loss is an error: a loss that would have
//     ended the job ends the wait for the others instead (FinishFailed).
//
// Times are since the start of the process's links. A Tracker is not safe for concurrent use.
package failover

import (
	"fmt"
	"slices"
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// Config describes the process whose rails a Tracker follows, and its job.
type Config struct {
	Rank  int // rank of this process in the whole job, over all clusters
	Size  int // number of ranks in the whole job, over all clusters
	First int // lowest rank, in the whole job, of this process's cluster
	End   int // first rank, in the whole job, after those of this process's cluster
	// indexes of the rails to forwarders that lead to each rank, by rank; nil: all lead to all
	// ranks
	Paths   [][]int
	Several bool // More than one forwarder leads to each rank.
	Replays bool // The job goes on when a link to a forwarder is lost.
	OnLoss  bool // The job goes on when a cluster is lost: forwarders say when a rank is given up.
	// Patience points to the time for which a job goes on without any rail, or while some rank is
	// unreachable. Its value may change.
	Patience *time.Duration
	Warn     func(string) // shows a warning to the user; nil: there are no warnings
	Trace    func(string) // receives a line about each change of a rail's state; nil: changes are not traced
}

// Tracker decides what happens when a process loses links or opens new ones. It has the fail-over
// state of all rails (paths to forwarders or processes) of that process.
type Tracker struct {
	Config
	reach    reach  // times since which ranks are unreachable
	resumes  bool   // Only one forwarder leads to each rank, and lost links to it are opened again.
	lastLoss string // reason of the last loss of a link to a forwarder, for the user

	finished     bool // All processes have reached the end of the job.
	finishFailed bool // An error has occurred, after finished was set, that would have ended the job.
	ignoring     bool // Losses are ignored, because this process has finished.
	closed       bool // The links have been closed, and no rail takes a new one.
	checkedLate  bool // The user has been warned of forwarders that have never been reached, if any.
	warnedCut    bool // The user has been warned that forwarders have lost each other.
}

// New returns a Tracker with configuration cfg, which has no rails.
func New(cfg Config) *Tracker {
	return &Tracker{Config: cfg, resumes: !cfg.Several && cfg.Replays,
		reach: reach{rank: cfg.Rank, size: cfg.Size, paths: cfg.Paths, since: map[int]time.Duration{}}}
}

// Forwarder initializes r as a rail to the forwarder at addr, and adds it. linked says that the
// rail has a link already, dials that this end can open one.
func (t *Tracker) Forwarder(r *Rail, addr string, linked, dials bool) {
	*r = Rail{index: len(t.reach.forwarders), peer: -1, addr: addr, paths: t.Paths, trace: t.Trace, linked: linked,
		dialing: dialing{dials: dials && t.Replays}}
	if linked {
		r.to(Up)
	}
	t.reach.add(r)
}

// Direct initializes r as a direct rail to another process. dials says that this end opens the
// link.
func (t *Tracker) Direct(r *Rail, rank int, dials bool) {
	*r = Rail{index: len(t.reach.forwarders), peer: rank, trace: t.Trace, dialing: dialing{dials: dials}}
}

// End describes why and how the job ends because of a lost link.
type End struct {
	Rank       int    // rank, in the whole job, that is the cause of the end
	Reason     string // reason for the end, shown to the user
	Everywhere bool   // The other processes must be told that the job ends.
	Silent     bool   // No more frames can be sent over the rail that was lost.
}

// Kind is the class of the error for which a link was lost.
type Kind uint8

// Kinds of errors.
const (
	Broken    Kind = iota // The link failed, was closed, or was silent.
	Malformed             // The bytes that arrived are malformed or corrupted; the link still works.
	NoKeys                // There are no keys to seal or open frames with.
	Misused               // The program has closed the link's descriptor.
)

// Loss describes why a rail has lost its link, and what the process had received by then.
type Loss struct {
	Kind     Kind   // class of the error for which the link was lost
	Reason   string // reason for the loss, shown to the user
	Progress uint64 // counter that rises when the process receives something new or an acknowledgement
}

// Lost counts the loss of rail r's link. It returns how the job ends because of it, or nil; then
// the caller calls Down.
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
	case r.strike(now, l.Progress) && r.peer < 0 && !t.ignoring:
		e.Reason = fmt.Sprintf("%s (%d times in a row, without progress between)", l.Reason, r.strikes)
		return e
	}
	return nil
}

// Down takes rail r out of use because its link was lost for a reason, and reports whether the link
// is to be opened again. Redial tells whether this end does that, and not the other one.
func (t *Tracker) Down(now time.Duration, r *Rail, reason string) (redial bool) {
	r.down(now, reason)
	if r.peer < 0 {
		t.lastLoss = reason
	}
	if t.ignoring && !r.owesBye || r.state == Closed {
		return false
	}
	if r.peer >= 0 && r.strikes >= maxStrikes {
		r.StopRedial()
		return false
	}
	if r.peer < 0 {
		t.reach.updateAll(now)
		t.warnLost(r, reason)
	}
	return true
}

// Failure describes why an attempt to open a rail's link failed.
type Failure struct {
	Err       error // error that the attempt has returned
	Refused   bool  // The host refused the connection.
	Final     bool  // The forwarder has refused this process for good, so that further attempts are useless.
	Permanent bool  // Further attempts to open the direct link are useless.
	Cancelled bool  // The caller has cancelled the attempt.
}

// DialFailed records why an attempt to open rail r's link failed. over reports that the caller
// makes no further attempt; end is how the job ends because of it, or nil.
func (t *Tracker) DialFailed(now time.Duration, r *Rail, f Failure) (over bool, end *End) {
	r.Attempt(false)
	switch {
	case r.peer >= 0 && r.state == Closed: // The other process is lost.
		return true, nil
	case r.peer >= 0:
		r.attemptFailed(f)
		if f.Permanent && r.state == Dialing {
			r.giveUp()
		}
		return f.Permanent, nil // The other process may have opened the link meanwhile.
	case !t.resumes && !r.owesBye:
		r.attemptFailed(f)
		if t.OnLoss && t.reach.dismissed() {
			return true, &End{Rank: t.Rank, Reason: f.Err.Error()}
		}
		// In a job of several hops the other forwarders of its row go on without this one.
		if t.Paths != nil && r.lostAt > 0 && (f.Final || now-r.lostAt > *t.Patience) {
			r.giveUp()
			t.warnGivenUp(r)
			return true, nil
		}
	case r.owesBye && f.Cancelled: // The attempt was made to rejoin; the next one is made to send Bye.
		r.attemptFailed(f)
	case r.owesBye && f.Refused && now-r.lostAt < refusedFor: // Others may need the Bye there.
		r.attemptFailed(f)
	case r.owesBye && (f.Final || f.Refused): // The forwarder, or its job, is no longer there.
		r.close()
		return true, nil
	case f.Final && t.OnLoss && !t.reach.needs(r): // The job goes on without that forwarder and the clusters behind it.
		r.attemptFailed(f)
		r.giveUp()
		return true, nil
	case f.Final:
		return true, &End{Rank: t.Rank, Reason: fmt.Sprintf("%s; it was opened again: %v", r.cause, f.Err)}
	default:
		r.attemptFailed(f)
	}
	return false, nil
}

// Wants reports whether a new link of rail r is to be put into use rather than closed.
func (t *Tracker) Wants(r *Rail) bool {
	return !t.closed && (!t.ignoring || r.owesBye) && r.state != Closed && r.state != Leaving
}

// Up puts a new link of rail r into use. remote is the address of its other end, progress the
// current Loss.Progress. Up returns false if the link is no longer wanted.
func (t *Tracker) Up(now time.Duration, r *Rail, progress uint64, remote string) bool {
	if !t.Wants(r) {
		if r.peer < 0 && r.state == Dialing {
			r.to(Down) // Leave reports later whether it must be opened to send Bye.
		}
		return false
	}
	r.up(now, progress)
	if r.peer < 0 {
		t.warnRestored(r, remote)
		t.reach.updateAll(now) // The forwarder will report the ranks that it does not reach.
	}
	return true
}

// Change is the effect of a forwarder's report on whether this process reaches the rank in the
// report.
type Change uint8

// Changes.
const (
	Nothing  Change = iota // The report changes nothing.
	Restored               // The rail may reach the rank in the report again.
	Departed               // The rank has finished: it needs nothing more and sends nothing more.
	Cut                    // The rail no longer reaches the rank in the report.
)

// Reachable handles report x of rail r's forwarder about its link to another rank, and returns the
// effect on that rank. An error means that no forwarder may send such a report.
func (t *Tracker) Reachable(now time.Duration, r *Rail, x wire.RailState) (Change, error) {
	rank := int(x.Rank)
	if !t.Replays || r.peer >= 0 || rank >= t.Size || rank == t.Rank {
		return Nothing, fmt.Errorf("unexpected RailState of rank %d", x.Rank)
	}
	if t.Paths != nil && !slices.Contains(t.Paths[rank], r.index) {
		return Nothing, nil // Other rails lead there.
	}
	if t.reach.isLost(rank) {
		return Nothing, nil
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

// ClusterLost records that the ranks first ≤ r < end, those of a cluster, are lost: no deadline
// runs for them any more. The user is told the reason.
func (t *Tracker) ClusterLost(first, end int, reason string) {
	t.reach.lose(first, end)
	if t.speaks() {
		t.Warn(reason + "; the job goes on without it")
	}
}

// PeerLost takes direct rail r out of use for good, because the other process is lost.
func (t *Tracker) PeerLost(r *Rail) {
	r.StopRedial()
	r.close()
}

// Alone reports whether no rail can carry r's frames in its place now. Where only one forwarder
// leads to each rank, that is true of every rail to a forwarder. Of any other rail it is true if no
// other rail to a forwarder has a link.
func (t *Tracker) Alone(r *Rail) bool {
	return !t.Several && r.peer < 0 ||
		!slices.ContainsFunc(t.reach.forwarders, func(o *Rail) bool { return o != r && o.Linked() })
}
