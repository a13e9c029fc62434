package failover

import (
	"fmt"
	"time"
)

// The user is warned while a job goes on without one of its forwarders; otherwise only its lower
// speed would show that. The first rank of each cluster warns. In a job where a single forwarder
// leads to each rank, every rank warns of its own link, once.

// speaks reports whether this process shows warnings to the user for its cluster: it is the
// cluster's first rank, Config.Warn is set, and it has not finished.
func (t *Tracker) speaks() bool { return t.Warn != nil && !t.ignoring && t.Rank == t.First }

// Say shows the user a warning if this process is the first rank of its cluster.
func (t *Tracker) Say(text string) {
	if t.speaks() {
		t.Warn(text)
	}
}

// warnLost warns the user that the forwarder of rail r is not in use, for the reason why.
func (t *Tracker) warnLost(r *Rail, why string) {
	switch {
	case r.warned || t.Warn == nil || t.closed:
	case t.resumes:
		r.warned = true
		t.Warn(why + "; it is reopened, and data that may be lost is sent again (reported once)")
	case t.speaks():
		r.warned = true
		t.Warn(fmt.Sprintf("%s; %d of %d forwarders in use, it is tried again", why, t.reach.linked(), len(t.reach.forwarders)))
	}
}

// warnRestored tells the user that the forwarder of rail r, at the address remote, is in use again.
// It does so only if the user was warned of the loss, and more than one forwarder leads to each
// rank: otherwise only the first loss is reported.
func (t *Tracker) warnRestored(r *Rail, remote string) {
	if r.warned && !t.resumes {
		r.warned = false
		t.Warn(fmt.Sprintf("forwarder %s is in use; %d of %d", remote, t.reach.linked(), len(t.reach.forwarders)))
	}
}

// warnGivenUp warns the user that this process no longer dials the forwarder of rail r. It does so
// only if the user was warned of the loss.
func (t *Tracker) warnGivenUp(r *Rail) {
	if r.warned && t.Warn != nil {
		t.Warn(fmt.Sprintf("forwarder %s is not tried again: %v; %d of %d forwarders in use", r.addr, r.err,
			t.reach.linked(), len(t.reach.forwarders)))
	}
}

// Notices shows the user the warnings, about forwarders and ranks out of reach, that are due at the
// time now.
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

// warnCut warns the user of ranks that have been unreachable for longer than cutAfter because
// forwarders have lost each other. When all ranks can be reached again, it tells the user so.
func (t *Tracker) warnCut(now time.Duration) {
	if !t.speaks() {
		return
	}
	for _, rank := range t.reach.unreachable() {
		since := t.reach.since[rank]
		t.reach.anyRailTo(rank, func(r *Rail) bool {
			if x := r.unreachable[rank]; x.Cut && now-since > cutAfter && !t.warnedCut {
				t.warnedCut = true
				t.Warn(fmt.Sprintf("%s; it is reopened, and data that may be lost is sent again", x.Reason))
			}
			return false
		})
	}
	if t.warnedCut && len(t.reach.since) == 0 {
		t.warnedCut = false
		t.Warn("all ranks are within reach again")
	}
}
