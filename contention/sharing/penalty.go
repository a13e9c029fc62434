package sharing

import (
	"fmt"

	"github.com/leidenzipper/zipper/contention/num"
	"github.com/leidenzipper/zipper/contention/penalty"
)

// Penalty is the model of Martinasso and Méhaut extended to zipped clusters: one contention graph
// per switch domain, in which a zipper is an ordinary vertex, and a crossing flow is an edge in
// each domain that it passes. The time per byte of a hop is rho/capacity of the domain; that of a
// forwarder is the total weight of its flows per capacity. A cut-through flow proceeds at its
// slowest term, a Serial one at the sum of its terms.
//
// A flow slowed in one domain still counts in full in the others. Resources of all other kinds,
// such as ports, NICs and backbones, are ignored, because a domain stands for them: Overloads finds
// promises beyond a capacity.
type Penalty[T num.Number[T]] struct {
	// Reading is the reading of rule (b) of each domain resource; Unmixed if missing.
	Reading map[int]penalty.Reading
	// Clamp divides the rates into an oversubscribed receiving link by its load. It is an extension
	// that no paper has.
	Clamp bool
}

func (Penalty[T]) Name() string { return "penalty" }

func (p Penalty[T]) Share(n *Network[T], active []Active) (Allocation[T], error) {
	type place struct {
		active int
		first  bool
	}
	edges := make(map[int][]penalty.Edge)
	places := make(map[int][]place)
	var domains []int // domains in order of first use
	forwarding := make([]T, len(n.Resources))
	for i, x := range active {
		for _, h := range n.Flows[x.Flow].Hops {
			if edges[h.Domain] == nil {
				domains = append(domains, h.Domain)
			}
			// Equal edges have the index of the first one; the others only count.
			for k := range x.Count {
				edges[h.Domain] = append(edges[h.Domain], penalty.Edge{From: h.From, To: h.To})
				places[h.Domain] = append(places[h.Domain], place{i, k == 0})
			}
		}
		for _, c := range n.claims[x.Flow] {
			if n.Resources[c.resource].Kind.Forwarder() {
				forwarding[c.resource] = forwarding[c.resource].Add(c.weight.Mul(num.Int[T](int64(x.Count))))
			}
		}
	}
	type term struct {
		resource int
		perByte  T
	}
	terms := make([][]term, len(active))
	for _, d := range domains {
		rho := penalty.Rho[T](edges[d], p.Reading[d])
		var loads map[int]T
		if p.Clamp {
			loads = penalty.Loads(edges[d], rho)
		}
		for i, at := range places[d] {
			if !at.first {
				continue
			}
			if load, ok := loads[edges[d][i].To]; ok && load.Cmp(num.Int[T](1)) > 0 {
				rho[i] = rho[i].Mul(load)
			}
			terms[at.active] = append(terms[at.active], term{d, rho[i].Div(n.Resources[d].Capacity)})
		}
	}
	a := Allocation[T]{Rate: make([]T, len(active)), Limits: make([][]Limit, len(active))}
	for i, x := range active {
		f := x.Flow
		for _, c := range n.claims[f] {
			if n.Resources[c.resource].Kind.Forwarder() {
				terms[i] = append(terms[i],
					term{c.resource, forwarding[c.resource].Div(n.Resources[c.resource].Capacity)})
			}
		}
		if len(terms[i]) == 0 {
			return Allocation[T]{}, fmt.Errorf("transfer %s passes neither a switch domain nor a forwarder: the penalty rule cannot place it",
				n.Flows[f].Name)
		}
		var slowest, sum T
		for _, t := range terms[i] {
			slowest, sum = num.Max(slowest, t.perByte), sum.Add(t.perByte)
		}
		for _, t := range terms[i] {
			if t.perByte.Cmp(slowest) == 0 {
				a.Limits[i] = append(a.Limits[i], Limit{Resource: t.resource})
			}
		}
		if !n.Flows[f].Serial {
			sum = slowest
		}
		a.Rate[i] = num.Int[T](1).Div(sum)
	}
	return a, nil
}
