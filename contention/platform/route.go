package platform

import (
	"errors"
	"fmt"
	"slices"
)

// step is the part of a route from one cluster to the next one by any one of some zippers, all by
// index.
type step struct {
	from, to int   // indices of the clusters
	zippers  []int // indices of the zippers
}

// joining returns the indices of the zippers with ports to both clusters a and b, which are indices
// too.
func (p *Platform) joining(a, b int) (list []int) {
	for i, z := range p.Zippers {
		_, left := z.Ports[p.Clusters[a].Name]
		_, right := z.Ports[p.Clusters[b].Name]
		if left && right {
			list = append(list, i)
		}
	}
	return list
}

// follow returns the steps of an explicit route, from cluster r.From over the zippers r.Via to
// cluster r.To. It returns an error if the route is not possible.
func (p *Platform) follow(r *Route) ([]step, error) {
	from, to := p.cluster(r.From), p.cluster(r.To)
	if from < 0 || to < 0 || from == to {
		return nil, errors.New("want two different clusters")
	}
	if len(r.Via) == 0 {
		return nil, errors.New("via names no zippers")
	}
	visited := []int{from}
	var steps []step
	at := from
	for k, name := range r.Via {
		z, ok := p.hosts[name]
		if !ok || z.cluster >= 0 {
			return nil, fmt.Errorf("unknown zipper %q", name)
		}
		ports := p.Zippers[z.index].Ports
		if _, ok := ports[p.Clusters[at].Name]; !ok {
			return nil, fmt.Errorf("zipper %s has no port to cluster %s", name, p.Clusters[at].Name)
		}
		next := to
		if k < len(r.Via)-1 { // to a cluster that the next zipper also joins
			following, ok := p.hosts[r.Via[k+1]]
			if !ok || following.cluster >= 0 {
				return nil, fmt.Errorf("unknown zipper %q", r.Via[k+1])
			}
			next = -1
			for c := range p.Clusters {
				_, here := ports[p.Clusters[c].Name]
				_, there := p.Zippers[following.index].Ports[p.Clusters[c].Name]
				if here && there && c != at && !slices.Contains(visited, c) {
					next = c
					break
				}
			}
			if next < 0 {
				return nil, fmt.Errorf("the route has a cycle or a gap between zippers %s and %s", name, r.Via[k+1])
			}
		}
		if slices.Contains(visited, next) || slices.ContainsFunc(steps,
			func(s step) bool { return s.zippers[0] == z.index }) {
			return nil, fmt.Errorf("the route has a cycle: it comes back by zipper %s", name)
		}
		if _, ok := ports[p.Clusters[next].Name]; !ok {
			return nil, fmt.Errorf("zipper %s has no port to cluster %s", name, p.Clusters[next].Name)
		}
		steps = append(steps, step{at, next, []int{z.index}})
		visited = append(visited, next)
		at = next
	}
	return steps, nil
}

// route returns the steps from one cluster to another, given by index. An explicit route, or the
// reverse of one, takes precedence over the route with the fewest zippers. At each step all zippers
// that join the two clusters are used. It returns an error if there is no route.
func (p *Platform) route(from, to int) ([]step, error) {
	for i := range p.Routes {
		r := &p.Routes[i]
		if r.From == p.Clusters[from].Name && r.To == p.Clusters[to].Name {
			return p.follow(r)
		}
	}
	for i := range p.Routes {
		r := &p.Routes[i]
		if r.To == p.Clusters[from].Name && r.From == p.Clusters[to].Name {
			steps, err := p.follow(r)
			slices.Reverse(steps)
			for k := range steps {
				steps[k].from, steps[k].to = steps[k].to, steps[k].from
			}
			return steps, err
		}
	}
	before := map[int]int{from: from}
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		for c := range p.Clusters {
			if _, seen := before[c]; !seen && len(p.joining(queue[0], c)) > 0 {
				before[c] = queue[0]
				queue = append(queue, c)
			}
		}
	}
	if _, ok := before[to]; !ok {
		return nil, fmt.Errorf("no zipper leads from cluster %s to cluster %s", p.Clusters[from].Name,
			p.Clusters[to].Name)
	}
	var steps []step
	for c := to; c != from; c = before[c] {
		steps = append(steps, step{before[c], c, p.joining(before[c], c)})
	}
	slices.Reverse(steps)
	return steps, nil
}
