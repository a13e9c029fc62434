package plan

import (
	"errors"
	"math"
	"slices"
)

// ErrTooLarge means that branch and bound exceeded its limit. Improve still works.
var ErrTooLarge = errors.New("the graph is too large for an exact plan")

// Exact returns a placement of least cost (Problem.Cost). steps bounds the number of placements of
// a rank that it tries; 0 means exactSteps. If the bound is exceeded the error is ErrTooLarge.
func Exact(p *Problem, steps int) (Placement, error) {
	g, err := p.build()
	if err != nil {
		return nil, err
	}
	if steps <= 0 {
		steps = exactSteps
	}
	s := &search{g: g, left: steps, best: math.Inf(1), where: make([]int, len(g.vertices)),
		used: make([]int, len(p.Sites))}
	if where, ok := g.improve(); ok { // a good first bound
		s.best, s.found = p.Cost(g.placement(where))*(1+1e-12), where
	}
	for v := range g.vertices {
		s.order = append(s.order, v)
		s.where[v] = -1
	}
	weight := func(v int) (w float64) {
		for _, e := range g.vertices[v].edges {
			w += e.bytes
		}
		return w
	}
	slices.SortStableFunc(s.order, func(a, b int) int { return int(math.Copysign(1, weight(b)-weight(a))) })
	s.place(0, 0)
	switch {
	case s.left <= 0:
		return nil, ErrTooLarge
	case s.found == nil:
		return nil, errors.New("no placement satisfies all constraints: the sets of ranks that stay together do not fit side by side")
	}
	return g.placement(s.found), nil
}

type search struct {
	g     *graph  // graph to be placed
	order []int   // vertices in the order in which they are placed
	where []int   // site of each vertex; -1 if it is not placed
	used  []int   // number of ranks on each site
	best  float64 // least cost found so far
	found []int   // placement of least cost; nil if none was found
	left  int     // number of steps that may still be tried
}

func (s *search) place(k int, cost float64) {
	if s.left--; s.left <= 0 {
		return
	}
	if k == len(s.order) {
		if cost < s.best {
			s.best, s.found = cost, slices.Clone(s.where)
		}
		return
	}
	// Every vertex still to be placed costs at least its cheapest site.
	bound := cost
	for _, v := range s.order[k:] {
		least := math.Inf(1)
		for t := range s.g.p.Sites {
			if s.used[t]+s.g.vertices[v].size <= s.g.p.Sites[t].Room {
				least = math.Min(least, s.g.at(v, t, s.where))
			}
		}
		bound += least
	}
	if bound >= s.best {
		return
	}
	v := s.order[k]
	type choice struct {
		site int
		cost float64
	}
	var choices []choice
	for t := range s.g.p.Sites {
		if s.used[t]+s.g.vertices[v].size <= s.g.p.Sites[t].Room {
			if c := s.g.at(v, t, s.where); !math.IsInf(c, 1) {
				choices = append(choices, choice{t, c})
			}
		}
	}
	slices.SortStableFunc(choices, func(a, b choice) int { return int(math.Copysign(1, a.cost-b.cost)) })
	for _, c := range choices {
		s.where[v] = c.site
		s.used[c.site] += s.g.vertices[v].size
		s.place(k+1, cost+c.cost)
		s.used[c.site] -= s.g.vertices[v].size
		s.where[v] = -1
	}
}
