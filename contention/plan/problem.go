// Package plan places the ranks of a job on clusters and zipper nodes so that little traffic has to
// cross the forwarders.
//
// Ranks are put on sites: a cluster with room for its hosts' cores, or a zipper node with its spare
// cores. A zipper node is on several networks, so a rank on it talks to all of them without a
// forwarder: the ranks on zipper nodes are a vertex cut of the communication graph, those on
// clusters an edge cut (section 2.2 of the Leiden Zipper thesis). The cost of a placement, in
// seconds, is
//
//	sum over pairs of bytes*crossings/Rate + mean over ranks of Work/speed
//
// Exact finds the least cost by branch and bound; Improve is a multilevel partitioner (heavy-edge
// coarsening, Fiduccia-Mattheyses refinement) for large graphs. All functions are pure and
// deterministic.
package plan

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/leidenzipper/zipper/internal/disjoint"
)

// Site is a cluster or a zipper node.
type Site struct {
	Name  string  // name of the cluster or zipper node
	Room  int     // number of ranks that it has room for
	Speed float64 // relative speed; work/speed is the time of a rank's computation
}

// Edge is the traffic between two ranks, in both directions together.
type Edge struct {
	A, B  int     // numbers of the ranks
	Bytes float64 // number of bytes, or any other measure of traffic
}

// Problem is a communication graph to be placed.
type Problem struct {
	Ranks int    // number of ranks, which are numbered from 0
	Edges []Edge // traffic between pairs of ranks
	Sites []Site // sites on which ranks can be placed
	// Crossings[s][t] is the number of forwarders that a message from s to t passes. It is
	// symmetric, with 0 on the diagonal.
	Crossings [][]float64
	// Rate is the total rate of the forwarders in bytes/s, which weighs traffic against work. It
	// must be positive.
	Rate float64
	// Work is the time of computation of each rank at speed 1, in seconds; nil if there is none.
	Work []float64
	// Allowed has the sites that a rank may go to. Ranks that are not listed may go anywhere.
	Allowed map[int][]int
	// Together has sets of ranks that must share a site.
	Together [][]int
}

// Placement has the index of the site of each rank.
type Placement []int

// vertex is a set of ranks that stay together, at some level of coarsening.
type vertex struct {
	// ranks has the ranks at the finest level, and at others the indices of vertices of the next
	// finer graph.
	ranks []int
	size  int // number of ranks
	// work has the cost of computing on each site in seconds; +Inf if the site is not allowed.
	work  []float64
	edges []arc // traffic with other vertices
}

type arc struct {
	to    int     // index of the other vertex
	bytes float64 // traffic, in the unit of Edge.Bytes
}

// graph is the problem at one level of coarsening.
type graph struct {
	p        *Problem // problem to be solved
	vertices []vertex // vertices of this level, which edges refer to by index
}

func (p *Problem) check() error {
	if p.Ranks < 1 || len(p.Sites) == 0 || !(p.Rate > 0) || math.IsInf(p.Rate, 0) {
		return errors.New("a plan needs ranks, sites and a crossing rate above 0")
	}
	room := 0
	for _, s := range p.Sites {
		if s.Room < 0 || !(s.Speed > 0) {
			return fmt.Errorf("site %s: room %d, speed %v: want 0 or more, and more than 0", s.Name, s.Room, s.Speed)
		}
		room += s.Room
	}
	if room < p.Ranks {
		return fmt.Errorf("%d ranks do not fit: the clusters and zipper nodes have room for %d", p.Ranks, room)
	}
	if len(p.Crossings) != len(p.Sites) || p.Work != nil && len(p.Work) != p.Ranks {
		return errors.New("crossings must be given for every site and work for every rank")
	}
	for _, row := range p.Crossings {
		if len(row) != len(p.Sites) {
			return errors.New("crossings must be given between all sites")
		}
	}
	for _, e := range p.Edges {
		if e.A < 0 || e.B < 0 || e.A >= p.Ranks || e.B >= p.Ranks || !(e.Bytes >= 0) || math.IsInf(e.Bytes, 0) {
			return fmt.Errorf("edge %d-%d with %v bytes: there are %d ranks", e.A, e.B, e.Bytes, p.Ranks)
		}
	}
	return nil
}

// build returns the graph of the problem at its finest level: ranks that must share a site become
// one vertex, and parallel edges one edge. It returns an error if no allowed site has room for a
// vertex.
func (p *Problem) build() (*graph, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	joined := disjoint.New(p.Ranks)
	for _, set := range p.Together {
		for _, r := range set {
			if r < 0 || r >= p.Ranks {
				return nil, fmt.Errorf("rank %d must stay with others: there are %d ranks", r, p.Ranks)
			}
			joined.Join(r, set[0])
		}
	}
	g := &graph{p: p}
	index := make([]int, p.Ranks)
	for r := range joined {
		if joined.Find(r) == r {
			index[r] = len(g.vertices)
			g.vertices = append(g.vertices, vertex{work: make([]float64, len(p.Sites))})
		}
	}
	for r := range joined {
		index[r] = index[joined.Find(r)]
		v := &g.vertices[index[r]]
		v.ranks, v.size = append(v.ranks, r), v.size+1
		for s := range p.Sites {
			if p.Work != nil {
				v.work[s] += p.Work[r] / p.Sites[s].Speed / float64(p.Ranks)
			}
			if sites, ok := p.Allowed[r]; ok && !slices.Contains(sites, s) {
				v.work[s] = math.Inf(1)
			}
		}
	}
	for i, v := range g.vertices {
		fits := false
		for s, site := range p.Sites {
			fits = fits || !math.IsInf(v.work[s], 1) && site.Room >= v.size
		}
		if !fits {
			return nil, fmt.Errorf("ranks %v must stay together: no site they may go to has room for %d",
				g.vertices[i].ranks, v.size)
		}
	}
	pairs := make(map[[2]int]float64)
	for _, e := range p.Edges {
		a, b := index[e.A], index[e.B]
		if a != b && e.Bytes > 0 {
			pairs[[2]int{min(a, b), max(a, b)}] += e.Bytes
		}
	}
	g.connect(pairs)
	return g, nil
}

func (g *graph) connect(pairs map[[2]int]float64) {
	for pair, bytes := range pairs {
		g.vertices[pair[0]].edges = append(g.vertices[pair[0]].edges, arc{pair[1], bytes})
		g.vertices[pair[1]].edges = append(g.vertices[pair[1]].edges, arc{pair[0], bytes})
	}
	for i := range g.vertices { // maps have no order, but a plan must be deterministic
		slices.SortFunc(g.vertices[i].edges, func(a, b arc) int { return a.to - b.to })
	}
}

// at returns the cost in seconds of vertex v on site s: that of computing there, and of the traffic
// with the neighbours that are placed. where has the site of each vertex, or -1 if it is not
// placed.
func (g *graph) at(v, s int, where []int) float64 {
	cost := 0.0
	for _, e := range g.vertices[v].edges {
		if t := where[e.to]; t >= 0 {
			cost += e.bytes * g.p.Crossings[s][t]
		}
	}
	return cost/g.p.Rate + g.vertices[v].work[s]
}

// Cost returns the cost of placement at in seconds: the mean over the ranks of their computing
// time, plus the time of the traffic that crosses forwarders (Crossing/Rate). It returns +Inf if
// the placement overfills a site or breaks Allowed or Together.
func (p *Problem) Cost(at Placement) float64 {
	cost := 0.0
	used := make([]int, len(p.Sites))
	for r, s := range at {
		used[s]++
		if sites, ok := p.Allowed[r]; ok && !slices.Contains(sites, s) {
			return math.Inf(1)
		}
		if p.Work != nil {
			cost += p.Work[r] / p.Sites[s].Speed / float64(p.Ranks)
		}
	}
	for s, n := range used {
		if n > p.Sites[s].Room {
			return math.Inf(1)
		}
	}
	for _, set := range p.Together {
		for _, r := range set {
			if at[r] != at[set[0]] {
				return math.Inf(1)
			}
		}
	}
	return cost + p.Crossing(at)/p.Rate
}

// Crossing returns the number of bytes that pass forwarders in placement at, counted once for each
// forwarder.
func (p *Problem) Crossing(at Placement) float64 {
	bytes := 0.0
	for _, e := range p.Edges {
		if e.A != e.B {
			bytes += e.Bytes * p.Crossings[at[e.A]][at[e.B]]
		}
	}
	return bytes
}

func (g *graph) placement(where []int) Placement {
	at := make(Placement, g.p.Ranks)
	for v := range g.vertices {
		for _, r := range g.vertices[v].ranks {
			at[r] = where[v]
		}
	}
	return at
}
