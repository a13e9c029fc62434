package vrank

import "fmt"

// Group is an ordered set of virtual ranks, like an MPI group: position i is the rank in the group.
// The nil Group is empty. Operations never change their operands.
type Group []int

// Undefined is the rank of a process that is not in a group (MPI_UNDEFINED).
const Undefined = -1

// Relation is the outcome of Compare.
type Relation int

// These are the results of MPI_Group_compare.
const (
	Unequal   Relation = iota
	Similar            // same members in another order
	Identical          // same members in the same order
)

// Range has the first and last rank (included if the stride reaches it) and the stride, which may
// be negative but not 0.
type Range struct{ First, Last, Stride int }

// World returns the group of all ranks of a world of n ranks.
func World(n int) Group {
	g := make(Group, n)
	for i := range g {
		g[i] = i
	}
	return g
}

func (g Group) index() map[int]int {
	at := make(map[int]int, len(g))
	for i, v := range g {
		at[v] = i
	}
	return at
}

// Rank returns the position of a virtual rank, or Undefined.
func (g Group) Rank(virtual int) int {
	for i, v := range g {
		if v == virtual {
			return i
		}
	}
	return Undefined
}

// Union returns the members of g in order, then those of h that are not in g, in order.
func (g Group) Union(h Group) Group {
	u := append(make(Group, 0, len(g)+len(h)), g...)
	in := g.index()
	for _, v := range h {
		if _, ok := in[v]; !ok {
			u = append(u, v)
		}
	}
	return u
}

// Intersection returns the members of g that are also in h, in the order of g.
func (g Group) Intersection(h Group) Group { return g.filter(h, true) }

// Difference returns the members of g that are not in h, in the order of g.
func (g Group) Difference(h Group) Group { return g.filter(h, false) }

func (g Group) filter(h Group, want bool) Group {
	in := h.index()
	r := make(Group, 0, len(g))
	for _, v := range g {
		if _, ok := in[v]; ok == want {
			r = append(r, v)
		}
	}
	return r
}

// pick marks the given positions. It returns an error for a position that is out of range or given
// twice.
func (g Group) pick(ranks []int) ([]bool, error) {
	taken := make([]bool, len(g))
	for _, r := range ranks {
		if r < 0 || r >= len(g) {
			return nil, fmt.Errorf("vrank: rank %d is not in a group of %d", r, len(g))
		}
		if taken[r] {
			return nil, fmt.Errorf("vrank: rank %d is named twice", r)
		}
		taken[r] = true
	}
	return taken, nil
}

// Incl returns the members at the given ranks, in the given order. Each rank must be in the group
// and be given once.
func (g Group) Incl(ranks []int) (Group, error) {
	if _, err := g.pick(ranks); err != nil {
		return nil, err
	}
	r := make(Group, len(ranks))
	for i, at := range ranks {
		r[i] = g[at]
	}
	return r, nil
}

// Excl returns the members at all other ranks than the given ones, in the order of g.
func (g Group) Excl(ranks []int) (Group, error) {
	taken, err := g.pick(ranks)
	if err != nil {
		return nil, err
	}
	r := make(Group, 0, len(g)-len(ranks))
	for i, v := range g {
		if !taken[i] {
			r = append(r, v)
		}
	}
	return r, nil
}

// RangeIncl is Incl for all ranks of the ranges.
func (g Group) RangeIncl(ranges []Range) (Group, error) {
	ranks, err := g.expand(ranges)
	if err != nil {
		return nil, err
	}
	return g.Incl(ranks)
}

// RangeExcl is Excl for all ranks of the ranges.
func (g Group) RangeExcl(ranges []Range) (Group, error) {
	ranks, err := g.expand(ranges)
	if err != nil {
		return nil, err
	}
	return g.Excl(ranks)
}

func (g Group) expand(ranges []Range) ([]int, error) {
	var ranks []int
	for _, r := range ranges {
		if r.Stride == 0 {
			return nil, fmt.Errorf("vrank: range %d..%d has stride 0", r.First, r.Last)
		}
		if r.First < 0 || r.First >= len(g) {
			return nil, fmt.Errorf("vrank: range begins at rank %d, group has %d", r.First, len(g))
		}
		for at := r.First; r.Stride > 0 && at <= r.Last || r.Stride < 0 && at >= r.Last; at += r.Stride {
			if at < 0 || at >= len(g) {
				return nil, fmt.Errorf("vrank: range %d..%d reaches beyond a group of %d", r.First, r.Last, len(g))
			}
			ranks = append(ranks, at)
		}
	}
	return ranks, nil
}

// Translate returns the ranks in h of the members at the given ranks of g, or Undefined for those
// that are not in h.
func (g Group) Translate(ranks []int, h Group) ([]int, error) {
	at := h.index()
	out := make([]int, len(ranks))
	for i, r := range ranks {
		if r < 0 || r >= len(g) {
			return nil, fmt.Errorf("vrank: rank %d is not in a group of %d", r, len(g))
		}
		out[i] = Undefined
		if p, ok := at[g[r]]; ok {
			out[i] = p
		}
	}
	return out, nil
}

// Compare returns the relation between g and h.
func (g Group) Compare(h Group) Relation {
	if len(g) != len(h) {
		return Unequal
	}
	at, rel := h.index(), Identical
	for i, v := range g {
		p, ok := at[v]
		switch {
		case !ok:
			return Unequal
		case p != i:
			rel = Similar
		}
	}
	return rel
}

// Spans reports whether the group has ranks of more than one cluster.
func (g Group) Spans(l *Layout) bool {
	first := -1
	for _, v := range g {
		c, _, ok := l.Place(v)
		if ok && first >= 0 && c != first {
			return true
		}
		if ok {
			first = c
		}
	}
	return false
}

// Part returns the members in one cluster, in the order of g: the local part of a communicator with
// this group.
func (g Group) Part(l *Layout, cluster int) Group {
	var r Group
	for _, v := range g {
		if c, _, ok := l.Place(v); ok && c == cluster {
			r = append(r, v)
		}
	}
	return r
}
