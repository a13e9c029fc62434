package plan

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
)

// Improve returns a placement of the ranks of p with a low cost (Problem.Cost), for graphs of any
// size. It is not always the best one.
func Improve(p *Problem) (Placement, error) {
	g, err := p.build()
	if err != nil {
		return nil, err
	}
	where, ok := g.improve()
	if !ok {
		return nil, errors.New("found no placement that satisfies all constraints: let fewer ranks stay together, or let ranks go to more sites")
	}
	return g.placement(where), nil
}

// Solve returns a placement of the ranks of p: that of Exact for small graphs, and that of Improve
// otherwise. exact reports which one found it.
func Solve(p *Problem) (at Placement, exact bool, err error) {
	g, err := p.build()
	if err != nil {
		return nil, false, err
	}
	if len(g.vertices) <= ExactLimit {
		if at, err = Exact(p, 0); !errors.Is(err, ErrTooLarge) {
			return at, true, err
		}
	}
	at, err = Improve(p)
	return at, false, err
}

func (g *graph) improve() ([]int, bool) {
	levels := []*graph{g}
	for last := g; len(last.vertices) > coarsest; {
		next := last.contract()
		if len(next.vertices) > len(last.vertices)*stalled/100 {
			break
		}
		levels = append(levels, next)
		last = next
	}
	var where []int
	best := math.Inf(1)
	top := levels[len(levels)-1]
	for seed := range uint64(12) {
		try := top.grow(seed)
		top.refine(try)
		if c := top.cost(try); where == nil || c < best {
			where, best = try, c
		}
	}
	for k := len(levels) - 2; k >= 0; k-- {
		finer := make([]int, len(levels[k].vertices))
		for v := range levels[k+1].vertices {
			for _, w := range levels[k+1].vertices[v].ranks {
				finer[w] = where[v]
			}
		}
		where = finer
		levels[k].refine(where)
	}
	return where, !math.IsInf(g.cost(where), 1)
}

// contract returns a smaller graph, in which pairs of vertices with heavy edges between them are
// merged into one.
func (g *graph) contract() *graph {
	// Sets as large as a small site could not be placed there any more.
	most := 1
	for _, s := range g.p.Sites {
		most = max(most, s.Room/8)
	}
	n := len(g.vertices)
	order := rand.New(rand.NewPCG(uint64(n), 1)).Perm(n)
	mate := make([]int, n)
	for v := range mate {
		mate[v] = -1
	}
	c := &graph{p: g.p}
	into := make([]int, n)
	for _, v := range order {
		if mate[v] >= 0 {
			continue
		}
		mate[v] = v
		heaviest := 0.0
		partner := v
		for _, e := range g.vertices[v].edges {
			if mate[e.to] < 0 && e.bytes > heaviest && g.vertices[v].size+g.vertices[e.to].size <= most &&
				g.compatible(v, e.to) {
				heaviest, partner = e.bytes, e.to
			}
		}
		mate[partner] = v
		into[v], into[partner] = len(c.vertices), len(c.vertices)
		x := vertex{ranks: []int{v}, size: g.vertices[v].size, work: slices.Clone(g.vertices[v].work)}
		if partner != v {
			x.ranks, x.size = append(x.ranks, partner), x.size+g.vertices[partner].size
			for s := range x.work {
				x.work[s] += g.vertices[partner].work[s]
			}
		}
		c.vertices = append(c.vertices, x)
	}
	pairs := make(map[[2]int]float64)
	for v := range g.vertices {
		for _, e := range g.vertices[v].edges {
			if a, b := into[v], into[e.to]; v < e.to && a != b {
				pairs[[2]int{min(a, b), max(a, b)}] += e.bytes
			}
		}
	}
	c.connect(pairs)
	return c
}

// compatible reports whether vertices v and w may be merged: every site that is allowed for one of
// them is also allowed for the other.
func (g *graph) compatible(v, w int) bool {
	for s, x := range g.vertices[v].work {
		if math.IsInf(x, 1) != math.IsInf(g.vertices[w].work[s], 1) {
			return false
		}
	}
	return true
}

// cost returns the cost of a placement in seconds, or +Inf if a site has more ranks than room or a
// vertex is on a site that it may not go to. where has the site of each vertex.
func (g *graph) cost(where []int) float64 {
	cost := 0.0
	used := make([]int, len(g.p.Sites))
	for v := range g.vertices {
		s := where[v]
		used[s] += g.vertices[v].size
		cost += g.vertices[v].work[s]
		for _, e := range g.vertices[v].edges {
			if v < e.to {
				cost += e.bytes * g.p.Crossings[s][where[e.to]] / g.p.Rate
			}
		}
	}
	for s, n := range used {
		if n > g.p.Sites[s].Room {
			return math.Inf(1)
		}
	}
	return cost
}

// grow returns the site of each vertex. It places vertices one after the other at the site of least
// cost; seed decides random choices. Vertices that may not go to every site go first, then those
// with the most traffic to placed ones. If no site has room, grow takes the site that overflows by
// the fewest ranks, which refine repairs.
func (g *graph) grow(seed uint64) []int {
	n := len(g.vertices)
	where := make([]int, n)
	tied := make([]float64, n)
	rng := rand.New(rand.NewPCG(seed, 2))
	for v := range where {
		where[v] = -1
		tied[v] = 1e-9 * rng.Float64()
		for _, w := range g.vertices[v].work {
			if math.IsInf(w, 1) {
				tied[v] = math.MaxFloat64 / 4
			}
		}
	}
	used := make([]int, len(g.p.Sites))
	for range n {
		v := -1
		for w := range where {
			if where[w] < 0 && (v < 0 || tied[w] > tied[v]) {
				v = w
			}
		}
		site, least, overflow := -1, math.Inf(1), math.MaxInt
		for s := range g.p.Sites {
			over := max(0, used[s]+g.vertices[v].size-g.p.Sites[s].Room)
			c := g.at(v, s, where)
			if math.IsInf(c, 1) {
				continue
			}
			if site < 0 || over < overflow || over == overflow && c < least {
				site, least, overflow = s, c, over
			}
		}
		if site < 0 {
			site = 0 // no site is allowed; cost reports it
		}
		where[v] = site
		used[site] += g.vertices[v].size
		for _, e := range g.vertices[v].edges {
			tied[e.to] += e.bytes
		}
	}
	return where
}
