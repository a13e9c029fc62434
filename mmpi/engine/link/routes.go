package link

import (
	"maps"
	"slices"
)

// Which rails lead to whom.

// addRoutes says which of them lead to whom.
func (s *Set) addRoutes(routes [][]int) {
	if routes == nil {
		return
	}
	for i, c := range s.world.Clusters {
		var there []*rail
		for _, k := range routes[i] {
			there = append(there, s.rails[k])
		}
		for range c.Size {
			s.paths = append(s.paths, there)
		}
	}
}

// railsTo gives the rails over forwarders that lead to a rank, up or not; both ends count them
// alike.
func (s *Set) railsTo(rank int) []*rail {
	if s.paths == nil {
		return s.forwarders
	}
	return s.paths[rank]
}

// preferredRail gives the place in railsTo of the rail that a peer's small messages take: pairs are
// spread evenly, whether processes talk to all of another cluster or each to its like, and both
// directions of a pair take the same rail.
func (s *Set) preferredRail(rank int) int {
	lo, hi := min(rank, s.world.Rank), max(rank, s.world.Rank)
	_, first := s.world.Place(lo)
	_, second := s.world.Place(hi)
	n := len(s.railsTo(rank))
	return (lo - first + (hi-second)/n) % n
}

// reaches reports whether both sides of the rail are there for a rank.
func (r *rail) reaches(rank int) bool {
	if r.peer != nil {
		return r.open() && r.peer.Rank == rank
	}
	if !r.open() || r.set.paths != nil && !slices.Contains(r.set.paths[rank], r) {
		return false
	}
	if len(r.unreachable) == 0 {
		return true
	}
	_, cut := r.unreachable[rank]
	return !cut
}

// rail gives the one for everything but segments; nil: none reaches the peer.
func (p *Peer) rail() *rail {
	if d := p.direct; d != nil && d.reaches(p.Rank) {
		return d
	}
	rails := p.set.railsTo(p.Rank)
	if !p.set.multi {
		if r := rails[p.preferred]; !p.set.resumes || r.reaches(p.Rank) {
			return r
		}
		return nil
	}
	for i := range rails {
		if r := rails[(p.preferred+i)%len(rails)]; r.reaches(p.Rank) {
			return r
		}
	}
	return nil
}

// carries reports whether frames for a peer go over this rail now: a direct link takes all of them.
func (r *rail) carries(p *Peer) bool {
	if d := p.direct; d != nil && d.reaches(p.Rank) {
		return r == d
	}
	return r.reaches(p.Rank)
}

// linkedForwarders counts the forwarders that there is a link to.
func (v *failover) linkedForwarders() (n int) {
	for _, r := range v.set.forwarders {
		if r.linked() {
			n++
		}
	}
	return n
}

// unreachable returns the ranks that no rail reaches, lowest first: the first one that is reported
// must not depend on the order of a map, because a simulation repeats a job from its seed.
func (v *failover) unreachable() []int {
	if len(v.unreachableSince) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(v.unreachableSince))
}
