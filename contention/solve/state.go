package solve

import (
	"errors"
	"fmt"
	"slices"

	"github.com/leidenzipper/zipper/contention/num"
	"github.com/leidenzipper/zipper/contention/pqueue"
	"github.com/leidenzipper/zipper/contention/sharing"
)

type start[T num.Number[T]] struct {
	at       T   // time in seconds at which the transfer is due
	transfer int // index of the transfer
}

// Before reports whether the transfer of x is due before that of y.
func (x start[T]) Before(y start[T]) bool {
	if c := x.at.Cmp(y.at); c != 0 {
		return c < 0
	}
	return x.transfer < y.transfer
}

// class is the set of transfers under way over one flow. They share one rate, so one count of bytes
// and of limits serves all. Without a grain every transfer is a class of its own, and so an entry
// of its own for the rule.
type class[T num.Number[T]] struct {
	flow int // index of the flow
	// moved is the number of bytes that each member has moved since the class was made.
	moved   T
	members pqueue.Queue[member[T]] // transfers of the class, the first one to end first
	// limited has the time that the members waited for each resource since the class was made.
	limited []Share[T]
}

type member[T num.Number[T]] struct {
	transfer int        // index of the transfer
	target   T          // value of class.moved at which it ends, in bytes
	began    T          // time of the first byte in seconds
	before   []Share[T] // value of class.limited when it began
}

// Before reports whether the transfer of m ends before that of other.
func (m member[T]) Before(other member[T]) bool { return m.target.Cmp(other.target) < 0 }

type state[T num.Number[T]] struct {
	n         *sharing.Network[T] // network that the transfers share
	transfers []Transfer[T]       // transfers of the run, which other fields refer to by index
	o         Options             // options of the run
	result    *Result[T]          // result so far
	now       T                   // current time in seconds
	// requests says that handshakes are modelled: a transfer enters the queue when its request goes
	// out.
	requests bool
	// waiting has the number of predecessors of each transfer that have not ended, by its index.
	waiting    []int
	earliest   []T     // Start of each transfer, or a later end of a predecessor so far, in seconds
	successors [][]int // indices of the transfers that wait for the end of each transfer
	// writers has the indices of the transfers that wait for each transfer's sender to finish
	// with it.
	writers [][]int
	queue   pqueue.Queue[start[T]] // transfers that are to start, the earliest first
	active  []*class[T]            // classes with transfers under way
	flows   []sharing.Active       // flows of the active classes
	grain   T                      // value of Options.Grain; 0 if none
	// load has, with a grain, the total weight of the active flows on each resource.
	load []T
	// classOf has, with a grain, the class of each flow, by its index; nil if it is not active.
	classOf  []*class[T]
	finished int                                 // number of transfers that have ended
	worst    map[overloadKey]sharing.Overload[T] // largest load of each overloaded resource
	order    []overloadKey                       // keys of worst in the order of their discovery
}

type overloadKey struct{ resource, vertex int }

func newState[T num.Number[T]](n *sharing.Network[T], transfers []Transfer[T], o Options,
	requests bool) (*state[T], error) {
	if o.Grain < 0 || o.Grain > 0.1 || o.Grain != o.Grain {
		return nil, fmt.Errorf("grain %v: must be from 0 to 0.1", o.Grain)
	}
	k := len(transfers)
	s := &state[T]{n: n, transfers: transfers, o: o, requests: requests,
		result: &Result[T]{Start: make([]T, k), Finish: make([]T, k), Limited: make([][]Share[T], k),
			Used: make([]T, len(n.Resources))},
		waiting: make([]int, k), earliest: make([]T, k), successors: make([][]int, k), writers: make([][]int, k),
		worst: make(map[overloadKey]sharing.Overload[T])}
	if o.Grain > 0 {
		s.grain = num.Int[T](int64(o.Grain * 1e9)).Div(num.Int[T](1e9))
		s.load = make([]T, len(n.Resources))
		s.classOf = make([]*class[T], len(n.Flows))
	}
	for i := range transfers {
		t := &transfers[i]
		if t.Flow < 0 || t.Flow >= len(n.Flows) {
			return nil, fmt.Errorf("transfer %s: no flow %d", t.Name, t.Flow)
		}
		for what, v := range map[string]T{"size": t.Bytes, "start": t.Start, "delay": t.Delay, "tail": t.Tail,
			"handshake": t.Handshake, "delay before the handshake": t.Delay.Sub(t.Handshake)} {
			if v.Sign() < 0 || !num.Finite(v) {
				return nil, fmt.Errorf("transfer %s: %s %v: must be finite and 0 or more", t.Name, what, v)
			}
		}
		for _, p := range t.After {
			if p < 0 || p >= k {
				return nil, fmt.Errorf("transfer %s waits for transfer number %d: there are %d", t.Name, p, k)
			}
			s.successors[p] = append(s.successors[p], i)
		}
		for _, p := range t.Sent {
			if p < 0 || p >= k {
				return nil, fmt.Errorf("transfer %s waits for the sender of transfer number %d: there are %d", t.Name,
					p, k)
			}
			s.writers[p] = append(s.writers[p], i)
		}
		s.waiting[i], s.earliest[i] = len(t.After)+len(t.Sent), t.Start
	}
	for i := range transfers {
		if s.waiting[i] == 0 {
			s.ready(i, transfers[i].Start)
		}
	}
	return s, nil
}

// ready schedules transfer i, whose sender is ready at time at. The transfer becomes active after
// its Delay, or before the Handshake in it if the rule computes the time of requests itself.
func (s *state[T]) ready(i int, at T) {
	s.result.Start[i] = at
	at = at.Add(s.transfers[i].Delay)
	if s.requests {
		at = at.Sub(s.transfers[i].Handshake)
	}
	s.queue.Add(start[T]{at, i})
}

// finish ends transfer i, whose last byte moved at the time at in seconds, and releases the
// transfers that wait for its end.
func (s *state[T]) finish(i int, at T) {
	t := &s.transfers[i]
	s.finished++
	at = at.Add(t.Tail)
	s.result.Finish[i] = at
	s.result.Makespan = num.Max(s.result.Makespan, at)
	s.n.AddUse(t.Flow, t.Bytes, s.result.Used)
	if s.load != nil && t.Bytes.Sign() > 0 {
		s.n.AddUse(t.Flow, num.Int[T](-1), s.load)
	}
	s.release(s.successors[i], at)
	s.written(i, at)
}

// written releases the transfers that wait until the sender has finished with transfer i, at the
// time at in seconds. It does so once.
func (s *state[T]) written(i int, at T) {
	s.release(s.writers[i], at)
	s.writers[i] = nil
}

// release tells the waiting transfers, given by index, that a predecessor ended at the time at in
// seconds, and starts those that no longer wait.
func (s *state[T]) release(waiters []int, at T) {
	for _, next := range waiters {
		s.earliest[next] = num.Max(s.earliest[next], at)
		if s.waiting[next]--; s.waiting[next] == 0 {
			s.ready(next, s.earliest[next])
		}
	}
}

// admit starts the transfers that are due at the current time, and with a grain those that are
// nearly due.
func (s *state[T]) admit() {
	for len(s.queue) > 0 {
		next := s.queue[0]
		if next.at.Cmp(s.now) > 0 {
			if s.grain.Sign() == 0 {
				return
			}
			t := &s.transfers[next.transfer]
			slack := s.grain.Mul(t.Bytes).Mul(s.n.Congestion(t.Flow, s.load))
			if next.at.Sub(s.now).Cmp(slack) > 0 {
				return
			}
		}
		s.queue.Take()
		if s.transfers[next.transfer].Bytes.Sign() == 0 {
			s.finish(next.transfer, next.at)
			continue
		}
		s.join(next)
	}
}

// join starts the transfer of x. With a grain the transfer joins the class of its flow, which join
// creates if the flow has none. Without a grain, the default, join creates a class for this
// transfer alone.
func (s *state[T]) join(x start[T]) {
	t := &s.transfers[x.transfer]
	var c *class[T]
	if s.classOf != nil {
		c = s.classOf[t.Flow]
		s.n.AddUse(t.Flow, num.Int[T](1), s.load)
	}
	if c == nil {
		c = &class[T]{flow: t.Flow}
		s.active = append(s.active, c)
		if s.classOf != nil {
			s.classOf[t.Flow] = c
		}
	}
	c.members.Add(member[T]{x.transfer, c.moved.Add(t.Bytes), x.at, slices.Clone(c.limited)})
}

func (s *state[T]) step(rule sharing.Rule[T]) error {
	if len(s.active) == 0 {
		if len(s.queue) == 0 {
			return s.circular()
		}
		if s.queue[0].at.Cmp(s.now) > 0 {
			s.now = s.queue[0].at
		}
	}
	s.admit()
	if len(s.active) == 0 {
		return nil // only empty transfers were due
	}
	s.flows = s.flows[:0]
	for _, c := range s.active {
		s.flows = append(s.flows, sharing.Active{Flow: c.flow, Count: len(c.members)})
	}
	a, err := rule.Share(s.n, s.flows)
	if err != nil {
		return err
	}
	s.result.Events++
	// ends[k] is the time that the first member of class k still takes.
	ends := make([]T, len(s.active))
	var dt T
	for k, c := range s.active {
		first := c.members[0]
		if a.Rate[k].Sign() <= 0 || len(a.Limits[k]) == 0 {
			return fmt.Errorf("transfer %s stalls: rule %s gives it the rate %v", s.transfers[first.transfer].Name,
				rule.Name(), a.Rate[k])
		}
		ends[k] = first.target.Sub(c.moved).Div(a.Rate[k])
		if k == 0 || ends[k].Cmp(dt) < 0 {
			dt = ends[k]
		}
	}
	if len(s.queue) > 0 {
		if gap := s.queue[0].at.Sub(s.now); gap.Cmp(dt) < 0 {
			dt = gap
		}
	}
	s.advance(a, ends, dt)
	return nil
}

// advance moves time by dt seconds at the rates of allocation a, and ends the transfers that have
// then moved all bytes. ends has the time in seconds that each class needs to its next end.
func (s *state[T]) advance(a sharing.Allocation[T], ends []T, dt T) {
	from, to := s.now, s.now.Add(dt)
	if s.o.Record {
		s.record(from, to, a)
		s.noteOverloads(a)
	}
	s.now = to
	var done []int
	kept := s.active[:0]
	for k, c := range s.active {
		c.moved = c.moved.Add(dt.Mul(a.Rate[k]))
		part := dt.Div(num.Int[T](int64(len(a.Limits[k]))))
		for _, l := range a.Limits[k] {
			c.limited = charge(c.limited, l, part)
		}
		over := ends[k].Cmp(dt) <= 0 // independent of the rounding of moved
		for len(c.members) > 0 && (over || s.ended(c, a.Rate[k])) {
			over = false
			m := c.members.Take()
			s.result.Limited[m.transfer] = since(c.limited, m.before)
			done = append(done, m.transfer)
		}
		if len(c.members) > 0 {
			kept = append(kept, c)
		} else if s.classOf != nil {
			s.classOf[c.flow] = nil
		}
	}
	clear(s.active[len(kept):])
	s.active = kept
	for _, i := range done {
		s.finish(i, to)
	}
}

// ended reports whether the first member of class c, whose rate is given in bytes/s, has moved all
// bytes, or nearly so.
func (s *state[T]) ended(c *class[T], rate T) bool {
	first := c.members[0]
	if c.moved.Cmp(first.target) >= 0 {
		return true
	}
	if s.grain.Sign() == 0 {
		return false
	}
	left := first.target.Sub(c.moved).Div(rate)
	return left.Cmp(s.grain.Mul(s.now.Add(left).Sub(first.began))) <= 0
}

func (s *state[T]) record(from, to T, a sharing.Allocation[T]) {
	step := Step[T]{From: from, To: to}
	for k, c := range s.active {
		for _, m := range c.members {
			step.Active = append(step.Active, m.transfer)
			step.Rate = append(step.Rate, a.Rate[k])
			step.Limits = append(step.Limits, a.Limits[k])
		}
	}
	s.result.Steps = append(s.result.Steps, step)
}

func charge[T num.Number[T]](shares []Share[T], l sharing.Limit, time T) []Share[T] {
	for k := range shares {
		if shares[k].Limit == l {
			shares[k].Time = shares[k].Time.Add(time)
			return shares
		}
	}
	return append(shares, Share[T]{l, time})
}

// since returns, for each limit in shares whose time has grown since before, by how much it has.
// before is an earlier state of the same list, which may be shorter: limits that it does not have
// count from 0.
func since[T num.Number[T]](shares, before []Share[T]) []Share[T] {
	var list []Share[T]
	for k, s := range shares {
		if k < len(before) {
			s.Time = s.Time.Sub(before[k].Time)
		}
		if s.Time.Sign() > 0 {
			list = append(list, s)
		}
	}
	return list
}

// noteOverloads keeps the largest load of each resource that allocation a overloads. Only recorded
// runs check, because the check costs as much as a step.
func (s *state[T]) noteOverloads(a sharing.Allocation[T]) {
	for _, o := range sharing.Overloads(s.n, s.flows, a) {
		key := overloadKey{o.Resource, o.Vertex}
		if old, ok := s.worst[key]; !ok {
			s.order = append(s.order, key)
		} else if old.Load.Cmp(o.Load) >= 0 {
			continue
		}
		s.worst[key] = o
	}
}

func (s *state[T]) overloads() []sharing.Overload[T] {
	var list []sharing.Overload[T]
	for _, key := range s.order {
		list = append(list, s.worst[key])
	}
	return list
}

func (s *state[T]) circular() error {
	for i, w := range s.waiting {
		if w > 0 {
			return fmt.Errorf("transfer %s can never start: the transfers wait for each other in a cycle",
				s.transfers[i].Name)
		}
	}
	return errors.New("solver: nothing to do and not finished") // not reached
}

// finite returns x, which must be neither infinite nor NaN, as a number of type T.
func finite[T num.Number[T]](x float64) T {
	var z T
	return z.FromFloat(x)
}
