package platform

import (
	"math/big"
	"slices"

	"github.com/leidenzipper/zipper/contention/num"
	"github.com/leidenzipper/zipper/contention/solve"
)

// Site is a place for ranks: a cluster, or a zipper node with spare cores.
type Site struct {
	Name   string   // name of the cluster or zipper
	Zipper bool     // whether it is a zipper node
	Speed  float64  // computing speed relative to the other sites
	Slots  []string // host of each rank that the site has room for
	at     place    // cluster or zipper
}

// Sites returns the clusters, then the zipper nodes that have cores. A zipper node computes as fast
// as the fastest cluster that it joins.
func (p *Platform) Sites() []Site {
	var list []Site
	for i, c := range p.Clusters {
		s := Site{Name: c.Name, Speed: c.Speed, at: place{i, 0}}
		for _, h := range c.Hosts.Names {
			for range c.Cores {
				s.Slots = append(s.Slots, h)
			}
		}
		list = append(list, s)
	}
	for i, z := range p.Zippers {
		if z.Cores == 0 {
			continue
		}
		s := Site{Name: z.Name, Zipper: true, at: place{-1, i}}
		for c := range z.Ports {
			s.Speed = max(s.Speed, p.Clusters[p.cluster(c)].Speed)
		}
		for range z.Cores {
			s.Slots = append(s.Slots, z.Name)
		}
		list = append(list, s)
	}
	return list
}

// joined returns the indices of the clusters whose networks a place is on.
func (p *Platform) joined(at place) (list []int) {
	if at.cluster >= 0 {
		return []int{at.cluster}
	}
	for c := range p.Clusters {
		if _, ok := p.Zippers[at.index].Ports[p.Clusters[c].Name]; ok {
			list = append(list, c)
		}
	}
	return list
}

// Networks returns the names of the clusters whose networks a site is on: its own, or those that a
// zipper node joins.
func (p *Platform) Networks(s Site) (names []string) {
	for _, c := range p.joined(s.at) {
		names = append(names, p.Clusters[c].Name)
	}
	return names
}

// common returns the index of the first cluster on whose network both places a and b are. ok is
// false if there is none.
func (p *Platform) common(a, b place) (cluster int, ok bool) {
	for _, c := range p.joined(a) {
		if slices.Contains(p.joined(b), c) {
			return c, true
		}
	}
	return 0, false
}

// Crossings returns the number of forwarders that messages between two sites pass. ok is false if
// the sites cannot reach each other. A place on a zipper node reaches all networks of the node
// without a forwarder, but nothing beyond them.
func (p *Platform) Crossings(a, b Site) (n int, ok bool) {
	if _, ok := p.common(a.at, b.at); ok {
		return 0, true
	}
	if a.Zipper || b.Zipper {
		return 0, false
	}
	steps, err := p.route(a.at.cluster, b.at.cluster)
	return len(steps), err == nil
}

// passes returns the rate in bytes/s at which a zipper relays from one cluster to another, both
// given by name, without other traffic.
func (z *Zipper) passes(from, to string) *big.Rat {
	in, out := z.Ports[from].In.Rat, z.Ports[to].Out.Rat
	least := in
	if out.Cmp(least) < 0 {
		least = out
	}
	limit := func(r *big.Rat) {
		if r.Cmp(least) < 0 {
			least = r
		}
	}
	if z.Forwarder.Copy.Rat != nil {
		limit(z.Forwarder.Copy.Rat)
	}
	if z.Forwarder.Threads > 0 {
		t := new(big.Rat).Add(new(big.Rat).Inv(in), new(big.Rat).Inv(out))
		if z.Forwarder.CopyTime.Rat != nil {
			t.Add(t, z.Forwarder.CopyTime.Rat)
		}
		limit(new(big.Rat).Quo(big.NewRat(int64(z.Forwarder.Threads), 1), t))
	}
	if z.Memory != nil {
		limit(new(big.Rat).Quo(z.Memory.Bandwidth.Rat, big.NewRat(int64(z.Memory.Crossings), 1)))
	}
	return least
}

// CrossingRate returns the rate of all zippers together from one cluster to another one that they
// join, in bytes/s, or 0 if no zipper joins both.
func (p *Platform) CrossingRate(from, to string) float64 {
	sum := 0.0
	a, b := p.cluster(from), p.cluster(to)
	if a < 0 || b < 0 || a == b {
		return 0
	}
	for _, z := range p.joining(a, b) {
		f, _ := p.Zippers[z].passes(from, to).Float64()
		sum += f
	}
	return sum
}

// UsefulZippers returns the largest number of zippers, all like the first one between clusters from
// and to, that still raises the total rate in that direction. It returns 0 if no zipper joins both.
func (p *Platform) UsefulZippers(from, to string) int {
	a, b := p.cluster(from), p.cluster(to)
	if a < 0 || b < 0 || a == b || len(p.joining(a, b)) == 0 {
		return 0
	}
	z := &p.Zippers[p.joining(a, b)[0]]
	ca, cb := &p.Clusters[a], &p.Clusters[b]
	total := func(r *big.Rat, hosts []string) num.Rat {
		return num.NewRat(r).Mul(num.Int[num.Rat](int64(len(hosts))))
	}
	var up, down num.Rat
	if ca.Backbone != nil {
		up = num.NewRat(ca.Backbone.Out.Rat)
	}
	if cb.Backbone != nil {
		down = num.NewRat(cb.Backbone.In.Rat)
	}
	passes := num.NewRat(z.passes(from, to))
	return solve.UsefulZippers(total(ca.NIC.Out.Rat, ca.Hosts.Names), up, total(cb.NIC.In.Rat, cb.Hosts.Names), down,
		passes, passes, passes)
}
