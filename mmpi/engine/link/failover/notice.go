package failover

import (
	"fmt"
	"time"
)

// The user is warned while a job goes on without one of its forwarders; otherwise only its lower
// speed would show that. The first rank of each cluster warns. In a job that is resumed each rank
// warns of its own link, once.

// speaks reports whether this process warns the user for its cluster.
func (t *Tracker) speaks() bool { return t.Warn != nil && !t.ignoring && t.Rank == t.First }

// warnLost warns that a rail to a forwarder is not in use.
func (t *Tracker) warnLost(r *Rail, why string) {
	switch {
	case r.warned || t.Warn == nil || t.closed:
	case t.resumes:
		r.warned = true
		t.Warn(why + "; it is opened again, and what may be lost is sent again (said once)")
	case t.speaks():
		r.warned = true
		t.Warn(fmt.Sprintf("%s; %d of %d forwarders in use, it is tried again", why, t.reach.linked(), len(t.reach.forwarders)))
	}
}

// warnBack tells the user that a forwarder is in use again.
func (t *Tracker) warnBack(r *Rail, remote string) {
	if r.warned && !t.resumes {
		r.warned = false
		t.Warn(fmt.Sprintf("forwarder %s is in use; %d of %d", remote, t.reach.linked(), len(t.reach.forwarders)))
	}
}

// warnGivenUp warns that a forwarder is not dialed any more.
func (t *Tracker) warnGivenUp(r *Rail) {
	if r.warned && t.Warn != nil {
		t.Warn(fmt.Sprintf("forwarder %s is not tried again: %v; %d of %d forwarders in use", r.addr, r.err,
			t.reach.linked(), len(t.reach.forwarders)))
	}
}

// Notices gives the user those warnings that are due at a time.
func (t *Tracker) Notices(now time.Duration) {
	if t.Replays {
		t.warnCut(now)
	}
	if t.Several && now >= lateAfter && !t.checkedLate {
		t.checkedLate = true
		for _, r := range t.reach.forwarders {
			if !r.Linked() {
				t.warnLost(r, fmt.Sprintf("cannot join forwarder %s", r.addr))
			}
		}
	}
}

// warnCut warns of ranks that cannot be reached for a while because forwarders have lost each
// other, and tells when all can be reached again.
func (t *Tracker) warnCut(now time.Duration) {
	if !t.speaks() {
		return
	}
	for _, rank := range t.reach.unreachable() {
		since := t.reach.since[rank]
		t.reach.anyTo(rank, func(r *Rail) bool {
			if x := r.unreachable[rank]; x.Cut && now-since > cutAfter && !t.warnedCut {
				t.warnedCut = true
				t.Warn(fmt.Sprintf("%s; it is opened again, and what may be lost is sent again", x.Reason))
			}
			return false
		})
	}
	if t.warnedCut && len(t.reach.since) == 0 {
		t.warnedCut = false
		t.Warn("all ranks are within reach again")
	}
}
