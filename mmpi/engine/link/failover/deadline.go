package failover

import (
	"fmt"
	"time"
)

// Deadline returns how the job ends because, at the time now, all forwarders or some rank have been
// unreachable for too long, or nil if the job goes on. The limit is the job's patience, or
// deadAfter if no lost link can come back. In a job that outlives clusters, only the forwarders
// declare ranks lost, as long as one of those that lead there can be reached.
func (t *Tracker) Deadline(now time.Duration) *End {
	switch {
	case !t.Replays || t.ignoring || t.finishFailed:
		return nil
	case t.resumes:
		return t.singleRailDeadline(now)
	}
	limit := min(*t.Patience, deadAfter)
	for _, r := range t.reach.forwarders {
		if !r.Linked() && (t.Paths == nil || r.dials) {
			limit = *t.Patience
		}
	}
	if t.reach.unlinkedSince > 0 && now-t.reach.unlinkedSince > limit {
		last := t.lastLoss
		for _, r := range t.reach.forwarders {
			if r.final {
				last = r.err.Error()
			}
		}
		return &End{Rank: t.Rank, Reason: fmt.Sprintf("no forwarder could be reached for %v; the last: %s", limit, last)}
	}
	if t.OnLoss {
		return t.unheardDeadline(now)
	}
	for _, rank := range t.reach.unreachable() {
		last, limit := t.lastLoss, limit
		t.reach.anyRailTo(rank, func(r *Rail) bool {
			if x, ok := r.unreachable[rank]; ok {
				last = x.Reason
				if x.Cut { // The rank may be alive: a link between forwarders is opened again.
					limit = *t.Patience
				}
			}
			return false
		})
		if now-t.reach.since[rank] > limit {
			return &End{Rank: rank, Everywhere: true,
				Reason: fmt.Sprintf("no forwarder could reach rank %d for %v; the last: %s", rank, limit, last)}
		}
	}
	return nil
}

// unheardDeadline does the work of Deadline for ranks of which no forwarder can report that they
// are lost, because no forwarder that leads to them has been reached for the job's patience.
func (t *Tracker) unheardDeadline(now time.Duration) *End {
	for _, rank := range t.reach.unreachable() {
		last := time.Duration(0)
		linked := t.reach.anyRailTo(rank, func(r *Rail) bool {
			last = max(last, r.lostAt)
			return r.Linked()
		})
		if !linked && last > 0 && now-last > *t.Patience {
			return &End{Rank: t.Rank, Reason: fmt.Sprintf("no forwarder that leads to rank %d could be reached for %v; the last: %s",
				rank, *t.Patience, t.lastLoss)}
		}
	}
	return nil
}

// singleRailDeadline does the work of Deadline in a job where a single forwarder leads to each
// rank. The job ends when such a forwarder has been out of reach for too long, unless it leads to
// lost ranks only. That forwarder itself decides which ranks it gives up.
func (t *Tracker) singleRailDeadline(now time.Duration) *End {
	for _, r := range t.reach.forwarders {
		if r.Linked() || r.lostAt == 0 || t.OnLoss && !t.reach.needs(r) {
			continue
		}
		limit, failed := *t.Patience, r.err
		if r.refused {
			switch {
			case r.attempts: // A refusal comes at once, so this attempt waits there for the other ranks.
				failed = nil
			case t.Paths == nil && !r.stopped:
				limit = min(limit, refusedFor)
			}
		}
		if now-r.lostAt <= limit {
			continue
		}
		reason := fmt.Sprintf("%s, and the forwarder is not reached again for %v", r.cause, limit)
		if failed != nil {
			reason += fmt.Sprintf(": %v", failed)
		}
		return &End{Rank: t.Rank, Reason: reason, Everywhere: true}
	}
	return nil
}
