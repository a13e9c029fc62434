package sharing

import (
	"github.com/leidenzipper/zipper/contention/num"
	"github.com/leidenzipper/zipper/contention/pqueue"
)

// MaxMin is progressive filling: the rates of all flows rise together, and when a resource is full
// the flows that use it stop. It is the baseline that the other rules must improve on. Cost:
// O((n*path + resources) log resources).
type MaxMin[T num.Number[T]] struct{}

func (MaxMin[T]) Name() string { return "max-min" }

// level is the common rate at which a resource would be full.
type level[T num.Number[T]] struct {
	resource int // index of the resource
	rate     T   // rate in bytes per second
}

// Before reports whether the resource of l is full at a lower rate than that of other.
func (l level[T]) Before(other level[T]) bool { return l.rate.Cmp(other.rate) < 0 }

func (MaxMin[T]) Share(n *Network[T], active []Active) (Allocation[T], error) {
	if err := n.needClaims(active); err != nil {
		return Allocation[T]{}, err
	}
	free := make([]T, len(n.Resources))   // capacity that stopped flows leave
	demand := make([]T, len(n.Resources)) // weights of the flows still rising
	users := make([][]int32, len(n.Resources))
	rising := make([]int, len(n.Resources))
	for _, f := range active {
		count := num.Int[T](int64(f.Count))
		for _, c := range n.claims[f.Flow] {
			rising[c.resource]++
			demand[c.resource] = demand[c.resource].Add(c.weight.Mul(count))
		}
	}
	total := 0
	for _, k := range rising {
		total += k
	}
	arena := make([]int32, total)
	var queue pqueue.Queue[level[T]]
	for r, k := range rising {
		users[r], arena = arena[:0:k], arena[k:]
		free[r] = n.Resources[r].Capacity
		if k > 0 {
			queue = append(queue, level[T]{r, free[r].Div(demand[r])})
		}
	}
	queue.Init()
	for i, f := range active {
		for _, c := range n.claims[f.Flow] {
			users[c.resource] = append(users[c.resource], int32(i))
		}
	}
	a := Allocation[T]{Rate: make([]T, len(active)), Limits: make([][]Limit, len(active))}
	stopped := make([]bool, len(active))
	limits := make([]Limit, 0, len(active)) // shared by all Limits
	full := make([]bool, len(n.Resources))
	var fullNow []int
	for len(queue) > 0 {
		// Levels only rise while flows stop, so an entry is at worst too low. The first entry is
		// updated until it stays first.
		fullNow = fullNow[:0]
		var rate T
		for len(queue) > 0 {
			top := &queue[0]
			if rising[top.resource] == 0 {
				queue.Take()
				continue
			}
			if now := free[top.resource].Div(demand[top.resource]); now.Cmp(top.rate) > 0 {
				top.rate = now
				queue.Changed()
				continue
			}
			if len(fullNow) > 0 && top.rate.Cmp(rate) > 0 {
				break
			}
			if len(fullNow) == 0 {
				rate = top.rate
			}
			fullNow = append(fullNow, top.resource)
			full[top.resource] = true
			queue.Take()
		}
		for _, r := range fullNow {
			for _, i := range users[r] {
				if stopped[i] {
					continue
				}
				stopped[i] = true
				a.Rate[i] = rate
				from := len(limits)
				count := num.Int[T](int64(active[i].Count))
				for _, c := range n.claims[active[i].Flow] {
					if full[c.resource] {
						limits = append(limits, Limit{Resource: c.resource})
					}
					weight := c.weight.Mul(count)
					free[c.resource] = free[c.resource].Sub(weight.Mul(rate))
					demand[c.resource] = demand[c.resource].Sub(weight)
					rising[c.resource]--
				}
				a.Limits[i] = limits[from:len(limits):len(limits)]
			}
		}
	}
	return a, nil
}
