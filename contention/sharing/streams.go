package sharing

import (
	"slices"

	"github.com/leidenzipper/zipper/contention/num"
	"github.com/leidenzipper/zipper/contention/pqueue"
)

// Streams is max-min sharing among connections instead of transfers. All transfers from a host
// through a zipper use its one connection to that zipper; those from a zipper to a host use another
// one. On a resource the connections get equal parts, and a connection's transfers divide its part.
// A part that a transfer or a connection cannot use, because it is limited elsewhere, goes to the
// others. Transfers without Hops, and uses that belong to no hop (a forwarder's), count as
// connections of their own.
//
// Filling: among all open transfers, the one with the smallest share on some resource is settled at
// that rate; then again. A transfer of a shared connection may be settled before another connection
// turns out to leave some capacity of the same resource. So transfers that no full resource limits
// are opened again and share the rest, until no such transfer is left. Cost: for each settled
// transfer, the users of its resources; seldom more than three rounds.
type Streams[T num.Number[T]] struct{}

func (Streams[T]) Name() string { return "streams" }

// stream is the part that one connection has in one resource.
type stream[T num.Number[T]] struct {
	settled T   // units that settled transfers, whose rate is set, take
	open    T   // weight of the other transfers in units per byte
	count   int // number of open transfers, whose rate is not set
}

// edge identifies a connection: by the fields of its Hop, or, for a transfer that is a connection
// of its own, by the transfer's index in from and a domain of -1.
type edge struct{ domain, from, to, of int }

func (f *Flow[T]) edge(u *Use[T], i int) edge {
	if u.Hop > 0 && u.Hop <= len(f.Hops) {
		h := f.Hops[u.Hop-1]
		return edge{h.Domain, h.From, h.To, h.Of}
	}
	return edge{domain: -1, from: i, to: -1}
}

type streamUser struct{ active, stream int }

type streamResource[T num.Number[T]] struct {
	capacity T            // capacity of the resource
	streams  []stream[T]  // connections that use the resource
	users    []streamUser // transfers that use the resource
	open     int          // number of open transfers
}

// level returns the part of the resource, in its units, that a connection with open transfers gets.
// The parts of the connections add up to the capacity if none is smaller than the part of its
// settled transfers.
func (r *streamResource[T]) level() T {
	left, n := r.capacity, int64(0)
	for i := range r.streams {
		if s := &r.streams[i]; s.count > 0 {
			n++
		} else {
			left = left.Sub(s.settled)
		}
	}
	level := left.Div(num.Int[T](n))
	for { // connections whose settled transfers take more than that keep it
		left, rest := left, int64(0)
		for i := range r.streams {
			s := &r.streams[i]
			if s.count == 0 {
				continue
			}
			if s.settled.Cmp(level) > 0 {
				left = left.Sub(s.settled)
			} else {
				rest++
			}
		}
		if rest == 0 {
			return level
		}
		next := left.Div(num.Int[T](rest))
		if next.Cmp(level) >= 0 {
			return next
		}
		level = next
	}
}

// least returns the smallest rate that an open transfer gets on the resource, and the indices of
// the streams with that rate.
func (r *streamResource[T]) least() (rate T, narrow []int) {
	level := r.level()
	for i := range r.streams {
		s := &r.streams[i]
		if s.count == 0 {
			continue
		}
		share := num.Max(level.Sub(s.settled), num.Int[T](0)).Div(s.open)
		switch {
		case narrow == nil || share.Cmp(rate) < 0:
			rate, narrow = share, append(narrow[:0], i)
		case share.Cmp(rate) == 0:
			narrow = append(narrow, i)
		}
	}
	return rate, narrow
}

// streamState is the state of one call of Share.
type streamState[T num.Number[T]] struct {
	n         *Network[T]         // network that is shared
	active    []Active            // flows that share it, which the other fields refer to by index
	resources []streamResource[T] // state of each resource of the network, by its index
	// at has the index of the flow's stream on the resource of each of its claims, as
	// [active][claim].
	at    [][]int
	open  []bool // whether the rate of each flow is not yet set
	rate  []T    // rate of each flow in bytes per second
	limit []int  // index of the resource that settled the rate of each flow
}

func newStreamState[T num.Number[T]](n *Network[T], active []Active) *streamState[T] {
	s := &streamState[T]{n: n, active: active, resources: make([]streamResource[T], len(n.Resources)),
		at:   make([][]int, len(active)),
		open: make([]bool, len(active)), rate: make([]T, len(active)), limit: make([]int, len(active))}
	known := make([]map[edge]int, len(n.Resources))
	for i, f := range active {
		flow := &n.Flows[f.Flow]
		for j, c := range n.claims[f.Flow] {
			r := &s.resources[c.resource]
			if known[c.resource] == nil {
				known[c.resource] = make(map[edge]int)
				r.capacity = n.Resources[c.resource].Capacity
			}
			e := flow.edge(&flow.Uses[j], i)
			k, ok := known[c.resource][e]
			if !ok {
				k = len(r.streams)
				known[c.resource][e] = k
				r.streams = append(r.streams, stream[T]{})
			}
			s.at[i] = append(s.at[i], k)
			r.users = append(r.users, streamUser{i, k})
		}
		s.reopen(i)
	}
	return s
}

// reopen sets the rate of transfer i to 0 and marks the transfer open, so that fill settles it
// again.
func (s *streamState[T]) reopen(i int) {
	s.move(i, true)
	var none T
	s.rate[i] = none
}

func (s *streamState[T]) settle(i int, rate T, limit int) {
	s.rate[i], s.limit[i] = rate, limit
	s.move(i, false)
}

func (s *streamState[T]) move(i int, open bool) {
	s.open[i] = open
	f := s.active[i]
	for j, c := range s.n.claims[f.Flow] {
		r := &s.resources[c.resource]
		x := &r.streams[s.at[i][j]]
		weight := c.weight.Mul(num.Int[T](int64(f.Count)))
		taken := weight.Mul(s.rate[i])
		if open {
			x.open, x.settled, x.count, r.open = x.open.Add(weight), x.settled.Sub(taken), x.count+1, r.open+1
		} else {
			x.open, x.settled, x.count, r.open = x.open.Sub(weight), x.settled.Add(taken), x.count-1, r.open-1
		}
	}
}

// fill sets the rate of every open transfer, starting at the resource that gives its transfers the
// lowest rate.
func (s *streamState[T]) fill() {
	var queue pqueue.Queue[level[T]]
	for i := range s.resources {
		if s.resources[i].open > 0 {
			rate, _ := s.resources[i].least()
			queue = append(queue, level[T]{i, rate})
		}
	}
	queue.Init()
	for len(queue) > 0 {
		top := &queue[0]
		r := &s.resources[top.resource]
		if r.open == 0 {
			queue.Take()
			continue
		}
		// Shares only rise, so an entry is at worst too low.
		rate, narrow := r.least()
		if rate.Cmp(top.rate) > 0 {
			top.rate = rate
			queue.Changed()
			continue
		}
		for _, u := range r.users {
			if s.open[u.active] && slices.Contains(narrow, u.stream) {
				s.settle(u.active, rate, top.resource)
			}
		}
	}
}

// full reports whether the resource with this index is allocated completely, except for rounding.
func (s *streamState[T]) full(resource int) bool {
	r := &s.resources[resource]
	left := r.capacity
	for i := range r.streams {
		left = left.Sub(r.streams[i].settled)
	}
	return left.Mul(num.Int[T](1e9)).Cmp(r.capacity) <= 0
}

// limited returns the index of a full resource that the flow with index i among the active ones
// uses, if possible the resource that settled its rate. ok is false if none is full.
func (s *streamState[T]) limited(i int) (resource int, ok bool) {
	if s.full(s.limit[i]) {
		return s.limit[i], true
	}
	for _, c := range s.n.claims[s.active[i].Flow] {
		if s.full(c.resource) {
			return c.resource, true
		}
	}
	return 0, false
}

func (Streams[T]) Share(n *Network[T], active []Active) (Allocation[T], error) {
	if err := n.needClaims(active); err != nil {
		return Allocation[T]{}, err
	}
	s := newStreamState(n, active)
	for again := true; again; {
		s.fill()
		var free []int
		for i := range active {
			if r, ok := s.limited(i); ok {
				s.limit[i] = r
			} else {
				free = append(free, i)
			}
		}
		// The last settled transfer filled its resource, so each round has fewer.
		for _, i := range free {
			s.reopen(i)
		}
		again = len(free) > 0
	}
	a := Allocation[T]{Rate: s.rate, Limits: make([][]Limit, len(active))}
	for i, r := range s.limit {
		a.Limits[i] = []Limit{{Resource: r}}
	}
	return a, nil
}
