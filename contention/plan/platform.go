package plan

import (
	"errors"
	"fmt"

	"github.com/leidenzipper/zipper/contention/platform"
)

// FromPlatform creates the problem of placing a number of ranks with the traffic edges on platform
// p. Its sites are p.Sites(), in order; the crossing rate is that of all zippers in both
// directions.
func FromPlatform(p *platform.Platform, ranks int, edges []Edge) (*Problem, error) {
	x := &Problem{Ranks: ranks, Edges: edges}
	sites := p.Sites()
	for _, s := range sites {
		x.Sites = append(x.Sites, Site{s.Name, len(s.Slots), s.Speed})
		row := make([]float64, len(sites))
		for k, t := range sites {
			n, ok := p.Crossings(s, t)
			row[k] = float64(n)
			if !ok {
				row[k] = unreachable
			}
		}
		x.Crossings = append(x.Crossings, row)
	}
	for _, a := range p.Clusters {
		for _, b := range p.Clusters {
			x.Rate += p.CrossingRate(a.Name, b.Name)
		}
	}
	if x.Rate == 0 {
		if len(p.Clusters) > 1 {
			return nil, errors.New("the platform's clusters are joined by no zipper")
		}
		x.Rate = 1 // one cluster: nothing crosses
	}
	return x, nil
}

// Hosts returns the host of each rank in placement at on platform p. The ranks of a site fill its
// hosts in order. The error names a site without enough room.
func Hosts(p *platform.Platform, at Placement) ([]string, error) {
	sites := p.Sites()
	next := make([]int, len(sites))
	places := make([]string, len(at))
	for r, s := range at {
		if next[s] >= len(sites[s].Slots) {
			return nil, fmt.Errorf("site %s has room for %d ranks", sites[s].Name, len(sites[s].Slots))
		}
		places[r] = sites[s].Slots[next[s]]
		next[s]++
	}
	return places, nil
}

// Clusters returns for each rank of a placement the cluster whose native job it is part of. A rank
// on a zipper node belongs to the cluster with which it exchanges the most bytes, among those that
// the node joins, because messages inside a cluster are native. If several are equal it belongs to
// the first.
func Clusters(p *platform.Platform, x *Problem, at Placement) []string {
	sites := p.Sites()
	bytes := make(map[int]map[string]float64) // bytes of ranks on zipper nodes, by cluster
	add := func(r, other int, n float64) {
		if sites[at[r]].Zipper && !sites[at[other]].Zipper {
			if bytes[r] == nil {
				bytes[r] = make(map[string]float64)
			}
			bytes[r][sites[at[other]].Name] += n
		}
	}
	for _, e := range x.Edges {
		add(e.A, e.B, e.Bytes)
		add(e.B, e.A, e.Bytes)
	}
	names := make([]string, len(at))
	for r, s := range at {
		for i, name := range p.Networks(sites[s]) {
			if i == 0 || bytes[r][name] > bytes[r][names[r]] {
				names[r] = name
			}
		}
	}
	return names
}

// InOrder returns the placement of a job without a plan: ranks fill the sites in order, clusters
// before zipper nodes. It returns an error if there is not enough room.
func InOrder(p *Problem) (Placement, error) {
	at := make(Placement, 0, p.Ranks)
	for s := range p.Sites {
		for range p.Sites[s].Room {
			if len(at) < p.Ranks {
				at = append(at, s)
			}
		}
	}
	if len(at) < p.Ranks {
		return nil, fmt.Errorf("%d ranks do not fit: there is room for %d", p.Ranks, len(at))
	}
	return at, nil
}

// Check returns an error if placement at puts ranks that communicate on sites that cannot reach
// each other.
func (p *Problem) Check(at Placement) error {
	for _, e := range p.Edges {
		if e.A != e.B && e.Bytes > 0 && p.Crossings[at[e.A]][at[e.B]] >= unreachable {
			return fmt.Errorf("ranks %d on %s and %d on %s cannot reach each other", e.A, p.Sites[at[e.A]].Name, e.B,
				p.Sites[at[e.B]].Name)
		}
	}
	return nil
}
