// Package sharing computes the rates of a set of transfers under way, and the resource that limits
// each. Five rules do so over the same resource graph: MaxMin (progressive filling, the baseline),
// Streams (the same among connections), Buffered (Streams with the zippers' queues), Zhu
// (hierarchical Ethernet with asymmetric traffic) and Penalty (InfiniBand).
//
// Rates are in bytes per second. Everything is pure and safe for concurrent use. Network and rules
// are generic over num.Number: exact rationals are the reference, floats the fast path.
package sharing

import (
	"fmt"

	"github.com/leidenzipper/zipper/contention/num"
)

// Kind is the kind of a resource, such as an adapter or a forwarder's threads.
type Kind int

const (
	NIC      Kind = iota // one direction of a host's adapter
	Backbone             // one direction of a cluster's network towards the zippers, or of a rack
	Port                 // one direction of one of a zipper's adapters
	Copy                 // a forwarder's copy rate
	// A forwarder's threads: capacity is their number, weights are seconds of one thread per
	// byte.
	Thread
	Memory  // a zipper's memory bus, where weights are crossings per byte, or a host's memory
	Domain  // a switch under the penalty rule: capacity is 1/alpha, the rate of a lone transfer
	Buffers // bytes in flight over a round trip
	Seal    // the cores that encrypt and decrypt a host's messages
)

var kindNames = [...]string{"nic", "backbone", "port", "copy", "thread", "memory", "domain", "buffers", "seal"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// Forwarder reports whether a resource of this kind is the relaying work of a zipper.
func (k Kind) Forwarder() bool { return k == Copy || k == Thread }

// Resource is a capacity that transfers share.
type Resource[T any] struct {
	Name string // name of the resource for people
	Kind Kind   // kind of the resource
	// Capacity is in bytes per second; that of a Thread in seconds per second.
	Capacity T
	// Twin is the index of the resource for the reverse direction, or -1.
	Twin int
	// Asymmetric says that traffic of the reverse direction slows this one, as found on Ethernet
	// with TCP (see Zhu). It needs a Twin.
	Asymmetric bool
}

// Use is a transfer's claim on a resource: Weight units for every byte, plus 1/capacity for each
// resource in Per (a thread that receives and sends in blocking calls is busy for 1/r_in + 1/r_out
// per byte). Doubling a resource in Per changes the weight.
type Use[T any] struct {
	Resource int   // index of the resource
	Weight   T     // units of the resource for every byte
	Per      []int // indices of resources whose inverse capacity is added to Weight
	// Hop is 1 + the index in the flow's Hops of the connection by which it uses the resource; 0 if
	// there is none, as for a forwarder's work. Streams uses it.
	Hop int
}

// Hop is the edge that a transfer forms in one switch under the penalty rule.
type Hop struct {
	Domain   int // index of a resource of kind Domain
	From, To int // vertices, numbered per domain
	// Of separates connections that enter at one vertex: those of hosts behind a zipper that
	// translates addresses. With 0 they are one connection.
	Of int
}

// Flow is the path of a transfer through the network.
type Flow[T any] struct {
	Name string   // name of the transfer or path for people
	Uses []Use[T] // claims on resources
	Hops []Hop    // edges in the switches that it passes, in order; only some rules use them
	// Serial adds the times of the hops and of the forwarder (store and forward seen as one flow)
	// instead of taking the slowest one. Only Penalty uses it.
	Serial bool
	// Window is the number of bytes that may be in flight; 0 if unlimited. Only Buffered uses it.
	Window T
	// Socket is the number of bytes of a connection that nothing overtakes: those in its socket and
	// in flight. Only Buffered uses it.
	Socket T
}

type claim[T any] struct {
	resource int // index of the resource
	weight   T   // units of the resource for every byte
}

// Network is a checked set of resources and flows with calculated weights. It is immutable.
type Network[T num.Number[T]] struct {
	Resources []Resource[T] // resources, which flows refer to by index
	Flows     []Flow[T]     // flows, which transfers refer to by index
	// claims has the total weight of each resource that each flow uses, by index of the flow.
	claims [][]claim[T]
}

// New checks resources and flows: capacities are positive, indices in range, no hop leads to
// itself, no flow uses a resource twice, every flow has a use or a hop. The slices are kept, not
// copied.
func New[T num.Number[T]](resources []Resource[T], flows []Flow[T]) (*Network[T], error) {
	for i, r := range resources {
		if r.Capacity.Sign() <= 0 || !num.Finite(r.Capacity) {
			return nil, fmt.Errorf("resource %s has capacity %v: must be positive and finite", r.Name, r.Capacity)
		}
		if r.Twin < -1 || r.Twin >= len(resources) || r.Twin == i {
			return nil, fmt.Errorf("resource %s: no twin %d", r.Name, r.Twin)
		}
	}
	n := &Network[T]{Resources: resources, Flows: flows, claims: make([][]claim[T], len(flows))}
	total := 0
	for i := range flows {
		total += len(flows[i].Uses)
	}
	arena := make([]claim[T], 0, total)
	one := num.Int[T](1)
	for i := range flows {
		f := &flows[i]
		if len(f.Uses) == 0 && len(f.Hops) == 0 {
			return nil, fmt.Errorf("transfer %s uses no resource", f.Name)
		}
		from := len(arena)
		for j, u := range f.Uses {
			if u.Resource < 0 || u.Resource >= len(resources) {
				return nil, fmt.Errorf("transfer %s uses resource number %d: there are %d", f.Name, u.Resource,
					len(resources))
			}
			for _, earlier := range f.Uses[:j] {
				if earlier.Resource == u.Resource {
					return nil, fmt.Errorf("transfer %s uses resource %s twice: its route has a cycle", f.Name,
						resources[u.Resource].Name)
				}
			}
			w := u.Weight
			for _, p := range u.Per {
				if p < 0 || p >= len(resources) {
					return nil, fmt.Errorf("transfer %s: weight depends on resource number %d: there are %d", f.Name, p,
						len(resources))
				}
				w = w.Add(one.Div(resources[p].Capacity))
			}
			if w.Sign() <= 0 || !num.Finite(w) {
				return nil, fmt.Errorf("transfer %s uses resource %s with weight %v: must be positive and finite",
					f.Name, resources[u.Resource].Name, w)
			}
			arena = append(arena, claim[T]{u.Resource, w})
		}
		for _, h := range f.Hops {
			if h.Domain < 0 || h.Domain >= len(resources) || resources[h.Domain].Kind != Domain {
				return nil, fmt.Errorf("transfer %s: resource number %d is not a switch domain", f.Name, h.Domain)
			}
			if h.From == h.To || h.From < 0 || h.To < 0 {
				return nil, fmt.Errorf("transfer %s goes from vertex %d to vertex %d of %s", f.Name, h.From, h.To,
					resources[h.Domain].Name)
			}
		}
		n.claims[i] = arena[from:len(arena):len(arena)]
	}
	return n, nil
}

// needClaims returns an error if an active flow uses no resource with a capacity, because only its
// hops could bound its rate.
func (n *Network[T]) needClaims(active []Active) error {
	for _, f := range active {
		if len(n.claims[f.Flow]) == 0 {
			return fmt.Errorf("transfer %s uses no resource with a capacity", n.Flows[f.Flow].Name)
		}
	}
	return nil
}

// Scale returns a network in which the capacity of the resources with the given indices is
// multiplied by factor, and the weights that depend on them are updated. n is unchanged.
func (n *Network[T]) Scale(factor T, resources ...int) (*Network[T], error) {
	rs := append([]Resource[T](nil), n.Resources...)
	for _, r := range resources {
		rs[r].Capacity = rs[r].Capacity.Mul(factor)
	}
	return New(rs, n.Flows)
}

// Weight returns the units of the resource with index r that the flow with index flow takes per
// byte; 0 if it does not use r.
func (n *Network[T]) Weight(flow, r int) T {
	for _, c := range n.claims[flow] {
		if c.resource == r {
			return c.weight
		}
	}
	var z T
	return z
}

// AddUse adds amount bytes of the flow with index flow to used, which has the use of each resource
// in its own units, by index.
func (n *Network[T]) AddUse(flow int, amount T, used []T) {
	for _, c := range n.claims[flow] {
		used[c.resource] = used[c.resource].Add(c.weight.Mul(amount))
	}
}

// Congestion returns the time in seconds per byte of the flow with index flow if all flows on its
// busiest resource got the same rate in bytes per second, and at least its time without other
// traffic (1/Alone). load has, by index of the resource, the units that all flows together claim
// from it, if each of them moves one byte.
func (n *Network[T]) Congestion(flow int, load []T) T {
	worst := num.Int[T](1).Div(n.Alone(flow))
	for _, c := range n.claims[flow] {
		worst = num.Max(worst, load[c.resource].Div(n.Resources[c.resource].Capacity))
	}
	return worst
}

// Alone returns the rate in bytes per second of the flow with index flow without other traffic,
// bounded by capacities only, without the penalty rule.
func (n *Network[T]) Alone(flow int) T {
	var best T
	lower := func(x T) {
		if best.Sign() == 0 || x.Cmp(best) < 0 {
			best = x
		}
	}
	for _, c := range n.claims[flow] {
		lower(n.Resources[c.resource].Capacity.Div(c.weight))
	}
	for _, h := range n.Flows[flow].Hops {
		lower(n.Resources[h.Domain].Capacity)
	}
	return best
}

// Limit is one reason for a rate: a resource, and whether traffic in the opposite direction of the
// transfer makes it the limit.
type Limit struct {
	Resource int // index of the resource
	// Contra says that traffic in the opposite direction is the limit. Resource is then the one of
	// that direction, which the flow itself does not use.
	Contra bool
}

// Allocation has for each active flow, in the order of the call, a rate in bytes per second and its
// limits (at least one, several when tied).
type Allocation[T any] struct {
	Rate   []T       // rate in bytes per second
	Limits [][]Limit // resources that determine the rate: Limits[i] has those of the active flow i
}

// Overload is a resource, or the receiving link of a vertex of a switch domain, to which a rule
// promised more than its capacity.
type Overload[T any] struct {
	Resource int // index of the resource
	Vertex   int // vertex of the domain; -1 for a resource
	Load     T   // load relative to the capacity, > 1
}

// Active is a flow under way with Count simultaneous transfers.
type Active struct {
	Flow  int // index into Network.Flows
	Count int // at least 1
}

// Each returns the list of the flows with the given indices, in which each has one transfer under
// way.
func Each(flows ...int) []Active {
	list := make([]Active, len(flows))
	for i, f := range flows {
		list[i] = Active{f, 1}
	}
	return list
}

// Rule shares a network among the active flows. The rate of a flow is that of one of its transfers.
// A flow may be listed several times; listing it once with the count gives the same result with
// MaxMin and Penalty, and with Zhu except for the order of ties.
type Rule[T num.Number[T]] interface {
	Name() string
	Share(n *Network[T], active []Active) (Allocation[T], error)
}

// Overloads returns the resources to which allocation a of the active flows gives more than their
// capacity and, for flows with hops, the receiving links of the switches with a load above 1.
func Overloads[T num.Number[T]](n *Network[T], active []Active, a Allocation[T]) []Overload[T] {
	one := num.Int[T](1)
	used := make([]T, len(n.Resources))
	type vertex struct{ domain, v int }
	var entering map[vertex]T
	var order []vertex
	for i, f := range active {
		rate := a.Rate[i].Mul(num.Int[T](int64(f.Count)))
		n.AddUse(f.Flow, rate, used)
		for _, h := range n.Flows[f.Flow].Hops {
			if entering == nil {
				entering = make(map[vertex]T)
			}
			key := vertex{h.Domain, h.To}
			if _, ok := entering[key]; !ok {
				order = append(order, key)
			}
			entering[key] = entering[key].Add(rate)
		}
	}
	var over []Overload[T]
	for r, u := range used {
		if u.Cmp(n.Resources[r].Capacity) > 0 {
			over = append(over, Overload[T]{r, -1, u.Div(n.Resources[r].Capacity)})
		}
	}
	for _, key := range order {
		if load := entering[key].Div(n.Resources[key.domain].Capacity); load.Cmp(one) > 0 {
			over = append(over, Overload[T]{key.domain, key.v, load})
		}
	}
	return over
}
