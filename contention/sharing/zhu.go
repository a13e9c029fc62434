package sharing

import (
	"fmt"

	"github.com/leidenzipper/zipper/contention/num"
	"github.com/leidenzipper/zipper/contention/pqueue"
)

// Zhu is Algorithm 1 of Zhu et al. 2013 (bandwidth of hierarchical Ethernet under concurrent
// traffic), corrected and extended to weighted resources.
//
// A transfer is ranked by its congestion: k is the largest total weight per capacity among the
// resources of its path, kbar the same among their reverse twins. The most congested transfers are
// settled first. If the own direction decides, the transfer gets an equal share of the rest of the
// resource. If the reverse direction decides and is really saturated, the transfer is slowed to the
// rate of that direction (the asymmetric property). If it is not saturated, that reverse congestion
// is dropped and the transfer is queued again.
//
// The default is strict: no rate may exceed the equal share left on any resource of the path, so
// nothing is oversubscribed. Paper is the printed algorithm, which oversubscribes a link in some
// patterns and divides by zero in a few. Ties are settled by the order of the flows (the paper does
// not define one).
type Zhu[T num.Number[T]] struct {
	Paper bool // use the printed algorithm
	// Fair leaves out the asymmetric property, for comparison.
	Fair bool
	// Pops, if set, receives the number of times that a transfer was taken from the queue.
	Pops *int
}

func (z Zhu[T]) Name() string {
	if z.Paper {
		return "zhu-paper"
	}
	return "zhu"
}

type zhuEntry[T num.Number[T]] struct {
	index int // index in the active flows
	// k and kbar are the congestion of the flow in its own and in the reverse direction, in
	// seconds per byte.
	k, kbar T
	dropped uint64 // bit i says that the reverse congestion of claim i is dropped
}

// Before reports whether the transfer of e has the greater congestion, so that it is settled before
// that of other.
func (e zhuEntry[T]) Before(other zhuEntry[T]) bool {
	a, b := &e, &other
	if c := num.Max(a.k, a.kbar).Cmp(num.Max(b.k, b.kbar)); c != 0 {
		return c > 0
	}
	if c := a.k.Cmp(b.k); c != 0 {
		return c > 0
	}
	if c := a.kbar.Cmp(b.kbar); c != 0 {
		return c > 0
	}
	return a.index < b.index
}

// zhuState is the progress of one run. All slices are indexed by resource.
type zhuState[T num.Number[T]] struct {
	n          *Network[T] // network that is shared
	congestion []T         // total weight of the flows that use the resource, per capacity
	// waiting has the total weight of the flows that use the resource and whose rate is not set
	// (not settled).
	waiting []T
	used    []T // units of the resource that the settled flows take
	// fastest has the smallest inverse rate of the settled flows in seconds per byte; 0 if there
	// are none.
	fastest []T
	// reverse has the index of the resource for the reverse direction if its traffic slows this
	// one; otherwise -1.
	reverse []int
}

func (z Zhu[T]) Share(n *Network[T], active []Active) (Allocation[T], error) {
	if err := n.needClaims(active); err != nil {
		return Allocation[T]{}, err
	}
	size := len(n.Resources)
	s := &zhuState[T]{n: n, congestion: make([]T, size), waiting: make([]T, size),
		used: make([]T, size), fastest: make([]T, size), reverse: make([]int, size)}
	for r := range n.Resources {
		s.reverse[r] = -1
		if res := &n.Resources[r]; res.Asymmetric && !z.Fair {
			s.reverse[r] = res.Twin
		}
	}
	for _, f := range active {
		count := num.Int[T](int64(f.Count))
		for _, c := range n.claims[f.Flow] {
			s.waiting[c.resource] = s.waiting[c.resource].Add(c.weight.Mul(count))
		}
	}
	for r := range n.Resources {
		s.congestion[r] = s.waiting[r].Div(n.Resources[r].Capacity)
	}
	queue := make(pqueue.Queue[zhuEntry[T]], len(active))
	for i, x := range active {
		f := x.Flow
		if len(n.claims[f]) > 64 {
			return Allocation[T]{}, fmt.Errorf("transfer %s uses %d resources: at most 64", n.Flows[f].Name,
				len(n.claims[f]))
		}
		e := zhuEntry[T]{index: i}
		for _, c := range n.claims[f] {
			e.k = num.Max(e.k, s.congestion[c.resource])
		}
		e.kbar = s.contraCongestion(f, 0)
		queue[i] = e
	}
	queue.Init()
	a := Allocation[T]{Rate: make([]T, len(active)), Limits: make([][]Limit, len(active))}
	pops := 0
	for len(queue) > 0 {
		e := queue.Take()
		pops++
		f, count := active[e.index].Flow, num.Int[T](int64(active[e.index].Count))
		inverse, limits, err := s.settle(f, &e, z.Paper)
		if err != nil {
			return Allocation[T]{}, err
		}
		if inverse.Sign() == 0 {
			e.kbar = s.contraCongestion(f, e.dropped)
			queue.Add(e)
			continue
		}
		a.Rate[e.index] = num.Int[T](1).Div(inverse)
		a.Limits[e.index] = limits
		for _, c := range n.claims[f] {
			r, weight := c.resource, c.weight.Mul(count)
			s.waiting[r] = s.waiting[r].Sub(weight)
			s.used[r] = s.used[r].Add(weight.Div(inverse))
			if s.fastest[r].Sign() == 0 || inverse.Cmp(s.fastest[r]) < 0 {
				s.fastest[r] = inverse
			}
		}
	}
	if z.Pops != nil {
		*z.Pops = pops
	}
	return a, nil
}

// contraCongestion returns the largest congestion, in seconds per byte, in the reverse direction of
// the resources that flow f claims. A resource is left out if bit i of dropped is set, where i is
// the index of its claim among the claims of f.
func (s *zhuState[T]) contraCongestion(f int, dropped uint64) T {
	var kbar T
	for i, c := range s.n.claims[f] {
		if t := s.reverse[c.resource]; t >= 0 && dropped&(1<<i) == 0 {
			kbar = num.Max(kbar, s.congestion[t])
		}
	}
	return kbar
}

// floor returns the inverse rate, in seconds per byte, of flow f without other traffic.
func (s *zhuState[T]) floor(f int) T {
	var floor T
	for _, c := range s.n.claims[f] {
		floor = num.Max(floor, c.weight.Div(s.n.Resources[c.resource].Capacity))
	}
	return floor
}

// left returns the inverse, in seconds per byte, of an equal share of the capacity that the settled
// flows leave of resource r. It returns an error, which names flow f, if nothing is left.
func (s *zhuState[T]) left(f, r int) (T, error) {
	rest := s.n.Resources[r].Capacity.Sub(s.used[r])
	if rest.Sign() <= 0 {
		var z T
		return z, fmt.Errorf("transfer %s: nothing is left of %s (the printed algorithm fails on this pattern; use the strict one)",
			s.n.Flows[f].Name, s.n.Resources[r].Name)
	}
	return s.waiting[r].Div(rest), nil
}

// settle returns the inverse rate of flow f, in seconds per byte, and its limits, or 0 if f must be
// queued again because settle dropped a reverse congestion in e. paper selects the printed
// algorithm.
func (s *zhuState[T]) settle(f int, e *zhuEntry[T], paper bool) (inverse T, limits []Limit, err error) {
	claims := s.n.claims[f]
	floor := s.floor(f)
	if e.k.Cmp(e.kbar) >= 0 {
		for _, c := range claims {
			if s.congestion[c.resource].Cmp(e.k) == 0 {
				share, err := s.left(f, c.resource)
				if err != nil {
					return inverse, nil, err
				}
				inverse = num.Max(inverse, num.Max(floor, share))
			}
		}
	} else {
		for i, c := range claims {
			t := s.reverse[c.resource]
			if t < 0 || e.dropped&(1<<i) != 0 || s.congestion[t].Cmp(e.kbar) != 0 {
				continue
			}
			if s.used[t].Cmp(s.n.Resources[t].Capacity) == 0 {
				inverse = num.Max(inverse, s.fastest[t])
				limits = append(limits, Limit{t, true})
			} else {
				e.dropped |= 1 << i
			}
		}
		if inverse.Sign() == 0 {
			return inverse, nil, nil
		}
	}
	if !paper {
		raised := floor
		for _, c := range claims {
			share, err := s.left(f, c.resource)
			if err != nil {
				return inverse, nil, err
			}
			raised = num.Max(raised, share)
		}
		if raised.Cmp(inverse) > 0 {
			inverse, limits = raised, nil
		}
	}
	if limits == nil {
		limits = s.with(f, inverse)
	}
	return inverse, limits, nil
}

// with returns the resources of flow f that explain its inverse rate: those whose equal share it
// is, or otherwise those whose whole capacity allows no more.
func (s *zhuState[T]) with(f int, inverse T) (limits []Limit) {
	for _, c := range s.n.claims[f] {
		share, err := s.left(f, c.resource)
		if err == nil && share.Cmp(inverse) == 0 {
			limits = append(limits, Limit{Resource: c.resource})
		}
	}
	if limits != nil {
		return limits
	}
	for _, c := range s.n.claims[f] {
		if c.weight.Div(s.n.Resources[c.resource].Capacity).Cmp(inverse) == 0 {
			limits = append(limits, Limit{Resource: c.resource})
		}
	}
	return limits
}
