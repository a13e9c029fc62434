package link

import (
	"fmt"
	"time"
)

// What the user is told of a job's several forwarders while the job goes on without one: else only
// its speed would tell. The first rank of each cluster does.

func (v *failover) tellLost(r *rail, why string) {
	s := v.set
	if s.resumes { // everybody has one of his own
		if !r.told && s.warn != nil && !s.ended {
			r.told = true
			s.warn(why + "; it is opened again, and what may be lost is sent again (said once)")
		}
		return
	}
	if first, _ := s.world.Mine(); r.told || s.warn == nil || s.ended || v.finishing || s.world.Rank != first {
		return
	}
	r.told = true
	s.warn(fmt.Sprintf("%s; %d of %d forwarders in use, it is tried again", why, v.linkedForwarders(),
		len(s.forwarders)))
}

// tellGivenUp tells that a forwarder is not tried any more.
func (v *failover) tellGivenUp(r *rail) {
	if s := v.set; r.told && s.warn != nil {
		s.warn(fmt.Sprintf("forwarder %s is not tried again: %v; %d of %d forwarders in use", r.addr, r.failed,
			v.linkedForwarders(), len(s.forwarders)))
	}
}

// tellMissing tells of forwarders that have not been there since the start, once.
func (v *failover) tellMissing(now time.Duration) {
	s := v.set
	if now < lateAfter || v.looked {
		return
	}
	v.looked = true
	for _, r := range s.forwarders {
		if !r.linked() {
			v.tellLost(r, fmt.Sprintf("cannot join forwarder %s", r.addr))
		}
	}
}

// tellCut tells of ranks to which the way is cut for a while, and that it is there again.
func (v *failover) tellCut(now time.Duration) {
	s := v.set
	if first, _ := s.world.Mine(); s.warn == nil || v.finishing || s.world.Rank != first {
		return
	}
	for _, rank := range v.unreachable() {
		since := v.unreachableSince[rank]
		for _, r := range s.railsTo(rank) {
			if x := r.unreachable[rank]; x.Cut && now-since > cutAfter && !v.toldCut {
				v.toldCut = true
				s.warn(fmt.Sprintf("%s; it is opened again, and what may be lost is sent again", x.Reason))
			}
		}
	}
	if v.toldCut && len(v.unreachableSince) == 0 {
		v.toldCut = false
		s.warn("all ranks are within reach again")
	}
}

func (v *failover) tellBack(r *rail) {
	s := v.set
	if r.told && !s.resumes {
		r.told = false
		s.warn(fmt.Sprintf("forwarder %s is in use; %d of %d", r.link.Remote(), v.linkedForwarders(),
			len(s.forwarders)))
	}
}
