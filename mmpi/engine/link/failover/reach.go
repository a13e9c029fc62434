package failover

import (
	"maps"
	"slices"
	"time"
)

// reach has the times since which ranks cannot be reached over any forwarder.
type reach struct {
	rank, size int     // virtual rank of this process, and how many there are
	paths      [][]int // Config.Paths
	forwarders []*Rail

	noneSince time.Duration         // since when there is no link to any forwarder; 0: there is one
	since     map[int]time.Duration // by rank, since when no rail reaches it; without: one does
}

func (h *reach) add(r *Rail) { h.forwarders = append(h.forwarders, r) }

// linked counts the forwarders to which there is a link.
func (h *reach) linked() (n int) {
	for _, r := range h.forwarders {
		if r.Linked() {
			n++
		}
	}
	return n
}

// anyTo reports whether f is true for some rail to a forwarder that leads to a rank.
func (h *reach) anyTo(rank int, f func(r *Rail) bool) bool {
	if h.paths == nil {
		return slices.ContainsFunc(h.forwarders, f)
	}
	return slices.ContainsFunc(h.paths[rank], func(i int) bool { return f(h.forwarders[i]) })
}

// needs reports whether some rank that a rail leads to is reached by no rail.
func (h *reach) needs(r *Rail) bool {
	for rank := range h.size {
		if rank != h.rank && h.anyTo(rank, func(o *Rail) bool { return o == r }) &&
			!h.anyTo(rank, func(o *Rail) bool { return o.Reaches(rank) }) {
			return true
		}
	}
	return false
}

// updateAll notes since when there is no link to any forwarder, or no rail to some rank.
func (h *reach) updateAll(now time.Duration) {
	if h.linked() == 0 {
		if h.noneSince == 0 {
			h.noneSince = now
		}
		return
	}
	h.noneSince = 0
	for rank := range h.size {
		h.update(now, rank)
	}
}

// update notes since when no rail reaches a rank.
func (h *reach) update(now time.Duration, rank int) {
	if rank == h.rank {
		return
	}
	if h.anyTo(rank, func(r *Rail) bool { return r.Reaches(rank) }) {
		h.restored(rank)
	} else if _, ok := h.since[rank]; !ok {
		h.since[rank] = now
	}
}

// restored notes that a rank may be reached again.
func (h *reach) restored(rank int) { delete(h.since, rank) }

// unreachable returns the ranks that no rail reaches in ascending order. The order must not depend
// on that of a map, because a simulation repeats a job from its seed.
func (h *reach) unreachable() []int {
	if len(h.since) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(h.since))
}
