package failover

import (
	"maps"
	"slices"
	"time"
)

// reach records since when ranks have been unreachable over all forwarders.
type reach struct {
	rank       int     // rank of this process in the whole job, over all clusters
	size       int     // number of ranks in the whole job, over all clusters
	paths      [][]int // indexes of the rails to forwarders that lead to each rank, by rank (Config.Paths)
	forwarders []*Rail // rails to forwarders, by Rail.index

	unlinkedSince time.Duration // time since which no forwarder is linked; 0: at least one is linked

	// time since which no rail reaches a rank, by rank; reachable ranks have no entry
	since map[int]time.Duration

	lost [][2]int // ranges of lost ranks, which have no entry in since: first, end
}

// add appends rail r, which leads to a forwarder, to those that are considered.
func (h *reach) add(r *Rail) { h.forwarders = append(h.forwarders, r) }

// linked returns the number of rails to forwarders that have an open link.
func (h *reach) linked() (n int) {
	for _, r := range h.forwarders {
		if r.Linked() {
			n++
		}
	}
	return n
}

// anyRailTo reports whether f returns true for some rail to a forwarder that leads to a rank.
func (h *reach) anyRailTo(rank int, f func(r *Rail) bool) bool {
	if h.paths == nil {
		return slices.ContainsFunc(h.forwarders, f)
	}
	return slices.ContainsFunc(h.paths[rank], func(i int) bool { return f(h.forwarders[i]) })
}

// dismissed reports whether all forwarders have refused this process for good.
func (h *reach) dismissed() bool {
	return !slices.ContainsFunc(h.forwarders, func(r *Rail) bool { return r.Linked() || !r.final })
}

// needs reports whether rail r leads to some rank that no rail to a forwarder reaches at present. r
// itself can have a link then, while its forwarder has reported the rank as out of reach. Direct
// rails are not considered.
func (h *reach) needs(r *Rail) bool {
	for rank := range h.size {
		if rank != h.rank && !h.isLost(rank) && h.anyRailTo(rank, func(o *Rail) bool { return o == r }) &&
			!h.anyRailTo(rank, func(o *Rail) bool { return o.Reaches(rank) }) {
			return true
		}
	}
	return false
}

// updateAll updates the time since which there is no link to any forwarder. If there is one, it
// also updates the times since which ranks are unreachable.
func (h *reach) updateAll(now time.Duration) {
	if h.linked() == 0 {
		if h.unlinkedSince == 0 {
			h.unlinkedSince = now
		}
		return
	}
	h.unlinkedSince = 0
	for rank := range h.size {
		h.update(now, rank)
	}
}

// update records now as the time since which a rank is unreachable, unless an earlier time is
// recorded, or removes the record if some rail reaches the rank.
func (h *reach) update(now time.Duration, rank int) {
	if rank == h.rank || h.isLost(rank) {
		return
	}
	if h.anyRailTo(rank, func(r *Rail) bool { return r.Reaches(rank) }) {
		h.restored(rank)
	} else if _, ok := h.since[rank]; !ok {
		h.since[rank] = now
	}
}

// restored forgets since when a rank has been unreachable, because some rail may reach it again.
func (h *reach) restored(rank int) { delete(h.since, rank) }

// lose records that the ranks first ≤ r < end are lost.
func (h *reach) lose(first, end int) {
	h.lost = append(h.lost, [2]int{first, end})
	for rank := first; rank < end; rank++ {
		h.restored(rank)
	}
}

// isLost reports whether a rank is lost.
func (h *reach) isLost(rank int) bool {
	for _, l := range h.lost {
		if rank >= l[0] && rank < l[1] {
			return true
		}
	}
	return false
}

// unreachable returns the ranks that no rail reaches, in ascending order. The order must not depend
// on that of a map, because a simulation repeats a job from its seed.
func (h *reach) unreachable() []int {
	if len(h.since) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(h.since))
}
