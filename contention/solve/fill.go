package solve

import (
	"cmp"
	"math"
	"slices"
)

// filler does max-min sharing among connections with a demand: all rates rise together until a
// resource is full or a demand is met. It keeps its memory between calls.
type filler struct {
	capacity []float64 // capacity of each resource, by its index
	// free has the capacity of each resource that stopped connections, whose rate is set, leave.
	free []float64
	// load has the weight of the rising connections, whose rate is not set, on each resource.
	load    []float64
	users   [][]*connection // connections that use each resource
	rising  []int           // number of rising connections on each resource
	open    []int           // indices of the resources with rising connections
	demands []*connection   // connections sorted by demand
	stop    []*connection   // connections that stop next
}

func newFiller(capacity []float64) filler {
	n := len(capacity)
	return filler{capacity: capacity, free: make([]float64, n), load: make([]float64, n),
		users: make([][]*connection, n), rising: make([]int, n)}
}

const sameLevel = 1 + 1e-9

// fill shares the resources among conns by max-min fairness, and sets the rate of each connection
// and the resources that limit it.
func (f *filler) fill(conns []*connection) {
	left := f.begin(conns)
	for left > 0 {
		level := math.Inf(1) // level at which the next connection stops
		open := f.open[:0]
		for _, r := range f.open {
			if f.rising[r] > 0 {
				open = append(open, r)
				level = min(level, max(0, f.free[r])/f.load[r])
			}
		}
		f.open = open
		for len(f.demands) > 0 && !f.demands[0].risen {
			f.demands = f.demands[1:]
		}
		if len(f.demands) > 0 {
			level = min(level, f.demands[0].demand)
		}
		if math.IsInf(level, 1) { // only hops without resources are left, whose rate is not known
			for _, c := range conns {
				c.risen = false
			}
			return
		}
		f.stop = f.stop[:0]
		for _, r := range f.open {
			if max(0, f.free[r]) > level*f.load[r]*sameLevel {
				continue
			}
			for _, c := range f.users[r] {
				if !c.risen {
					continue
				}
				if c.limits = append(c.limits, r); len(c.limits) == 1 {
					f.stop = append(f.stop, c)
				}
			}
		}
		for _, c := range f.demands {
			if c.demand > level*sameLevel {
				break
			}
			if c.risen && len(c.limits) == 0 {
				f.stop = append(f.stop, c)
			}
		}
		for _, c := range f.stop {
			c.rate, c.risen = min(level, c.demand), false
			left--
			for _, u := range c.uses {
				f.free[u.resource] -= u.weight * c.rate
				f.load[u.resource] -= u.weight
				f.rising[u.resource]--
			}
		}
	}
}

// begin starts the sharing among conns, in which all rates rise from 0, and returns the number of
// connections with a demand.
func (f *filler) begin(conns []*connection) (n int) {
	f.open, f.demands = f.open[:0], nil
	clear(f.rising)
	for _, c := range conns {
		c.rate, c.limits, c.risen = 0, c.limits[:0], c.demand > 0
		if !c.risen {
			continue
		}
		n++
		if !math.IsInf(c.demand, 1) {
			f.demands = append(f.demands, c)
		}
		for _, u := range c.uses {
			r := u.resource
			if f.rising[r] == 0 {
				f.open = append(f.open, r)
				f.free[r], f.load[r], f.users[r] = f.capacity[r], 0, f.users[r][:0]
			}
			f.load[r] += u.weight
			f.rising[r]++
			f.users[r] = append(f.users[r], c)
		}
	}
	slices.SortFunc(f.demands, func(x, y *connection) int { return cmp.Compare(x.demand, y.demand) })
	return n
}
