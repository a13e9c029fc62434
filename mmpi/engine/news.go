package engine

import (
	"fmt"
	"time"
)

// What the user is told of a job's several forwarders while the job goes on without one: else only its speed would tell. The first rank of each cluster does.

// lateAfter is when a forwarder that has not been there since the start is told of: the pieces of a job may start in any order.
const lateAfter = 3 * time.Second

func (e *Engine) tellLost(r *rail, why string) {
	if r.told || e.warn == nil || e.err != nil || e.ways.finishing || e.world.Rank != e.firstMine {
		return
	}
	r.told = true
	next := "it is tried again"
	if r.redial == nil {
		next = "it is not tried again"
	}
	e.warn(fmt.Sprintf("%s; %d of %d forwarders in use, %s", why, e.upRails(), len(e.forwarders), next))
}

func (e *Engine) tellMissing(now time.Duration) {
	if now < lateAfter || e.ways.looked {
		return
	}
	e.ways.looked = true
	for _, r := range e.forwarders {
		if !r.up {
			e.tellLost(r, fmt.Sprintf("cannot join forwarder %s", r.addr))
		}
	}
}

func (e *Engine) tellBack(r *rail) {
	if r.told {
		r.told = false
		e.warn(fmt.Sprintf("forwarder %s is in use; %d of %d", r.link.Remote(), e.upRails(), len(e.forwarders)))
	}
}
