package link

import (
	"fmt"
	"time"
)

// What the user is told of a job's several forwarders while the job goes on without one: else only its speed would
// tell. The first rank of each cluster does.

func (s *Set) tellLost(r *rail, why string) {
	if first, _ := s.world.Mine(); r.told || s.warn == nil || s.ended || s.failover.finishing || s.world.Rank != first {
		return
	}
	r.told = true
	next := "it is tried again"
	if r.redial == nil {
		next = "it is not tried again"
	}
	s.warn(fmt.Sprintf("%s; %d of %d forwarders in use, %s", why, s.linkedForwarders(), len(s.forwarders), next))
}

// tellMissing tells of forwarders that have not been there since the start, once.
func (s *Set) tellMissing(now time.Duration) {
	if now < lateAfter || s.failover.looked {
		return
	}
	s.failover.looked = true
	for _, r := range s.forwarders {
		if !r.linked() {
			s.tellLost(r, fmt.Sprintf("cannot join forwarder %s", r.addr))
		}
	}
}

func (s *Set) tellBack(r *rail) {
	if r.told {
		r.told = false
		s.warn(fmt.Sprintf("forwarder %s is in use; %d of %d", r.link.Remote(), s.linkedForwarders(), len(s.forwarders)))
	}
}
