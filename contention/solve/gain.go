package solve

import (
	"cmp"
	"slices"

	"github.com/leidenzipper/zipper/contention/num"
	"github.com/leidenzipper/zipper/contention/sharing"
)

// Gain is the effect of doubling resources: 1 - new/old duration. It can be negative for some
// transfers.
type Gain[T any] struct {
	Resources []int // indices of the resources that are doubled together
	Transfer  []T   // gain of each transfer, as a part of its own duration
	Makespan  T     // gain of the whole run, as a part of its duration
}

// Candidates returns the indices of the resources whose doubling can change run r on network n:
// those that limited a transfer, and those on which the weight of a claim depends. The twin of an
// asymmetric resource counts too, because some rules consider reverse traffic.
func Candidates[T num.Number[T]](n *sharing.Network[T], r *Result[T]) []int {
	seen := make([]bool, len(n.Resources))
	mark := func(i int) {
		seen[i] = true
		if t := n.Resources[i].Twin; t >= 0 && n.Resources[i].Asymmetric {
			seen[t] = true
		}
	}
	for _, shares := range r.Limited {
		for _, s := range shares {
			mark(s.Limit.Resource)
		}
	}
	for i := range n.Flows {
		for _, u := range n.Flows[i].Uses {
			for _, p := range u.Per {
				mark(p)
			}
		}
	}
	var list []int
	for i, s := range seen {
		if s {
			list = append(list, i)
		}
	}
	return list
}

// TiedSets returns the sets of two or more resources, by index, that limited a transfer together in
// some step of run r. Doubling only one of them gains nothing, so the set must be doubled. The run
// must have been recorded.
func TiedSets[T any](r *Result[T]) [][]int {
	var sets [][]int
	for _, step := range r.Steps {
		for _, limits := range step.Limits {
			if len(limits) < 2 {
				continue
			}
			set := make([]int, len(limits))
			for i, l := range limits {
				set[i] = l.Resource
			}
			slices.Sort(set)
			if !slices.ContainsFunc(sets, func(s []int) bool { return slices.Equal(s, set) }) {
				sets = append(sets, set)
			}
		}
	}
	return sets
}

// Double repeats the run before with the capacities of the given resources doubled, and returns
// what that saves. plan, if not nil, returns the transfers for the changed network, with new
// stripes; otherwise the same transfers are used.
func Double[T num.Number[T]](n *sharing.Network[T], transfers []Transfer[T], rule sharing.Rule[T], o Options,
	before *Result[T],
	plan func(*sharing.Network[T]) ([]Transfer[T], error), resources ...int) (Gain[T], error) {
	g := Gain[T]{Resources: resources, Transfer: make([]T, len(transfers))}
	doubled, err := n.Scale(num.Int[T](2), resources...)
	if err != nil {
		return g, err
	}
	if plan != nil {
		if transfers, err = plan(doubled); err != nil {
			return g, err
		}
	}
	o.Record = false
	after, err := Run(doubled, transfers, rule, o)
	if err != nil {
		return g, err
	}
	for i := range g.Transfer {
		g.Transfer[i] = saving(before.Finish[i].Sub(before.Start[i]), after.Finish[i].Sub(after.Start[i]))
	}
	g.Makespan = saving(before.Makespan, after.Makespan)
	return g, nil
}

func saving[T num.Number[T]](before, after T) T {
	if before.Sign() == 0 {
		var z T
		return z
	}
	return num.Int[T](1).Sub(after.Div(before))
}

// Gains repeats the run before with each candidate resource, and each set of resources that limit a
// transfer together, doubled in turn. It returns the gains, the largest gain of the makespan first.
// plan is that of Double.
func Gains[T num.Number[T]](n *sharing.Network[T], transfers []Transfer[T], rule sharing.Rule[T], o Options,
	before *Result[T],
	plan func(*sharing.Network[T]) ([]Transfer[T], error)) ([]Gain[T], error) {
	var sets [][]int
	for _, r := range Candidates(n, before) {
		sets = append(sets, []int{r})
	}
	sets = append(sets, TiedSets(before)...)
	gains := make([]Gain[T], 0, len(sets))
	for _, set := range sets {
		g, err := Double(n, transfers, rule, o, before, plan, set...)
		if err != nil {
			return nil, err
		}
		gains = append(gains, g)
	}
	slices.SortStableFunc(gains, func(a, b Gain[T]) int {
		if c := b.Makespan.Cmp(a.Makespan); c != 0 {
			return c
		}
		return cmp.Compare(len(a.Resources), len(b.Resources))
	})
	return gains, nil
}
