package agree

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// model is a job of several clusters whose processes agree, with every message and every report of
// a loss in flight. Its events are explored in all orders, or in random ones.
type model struct {
	sizes  []int       // number of processes of each cluster
	first  []int       // first process of each cluster
	procs  []*proc     // by rank
	ways   [][]Message // [from*n+to] messages on their way, in order
	flat   bool        // whether each process is the leader of itself
	losses int         // number of clusters that may still be lost
	rounds int         // number of agreements that each process starts, one after the other
}

type proc struct {
	machine *Machine
	cluster int
	dead    bool
	lost    Set   // clusters whose loss it has processed
	word    []int // losses of which the word is on its way, in order
	got     []Outcome
	started int
}

func newModel(sizes []int, losses, rounds int, flat bool) *model {
	x := &model{sizes: sizes, losses: losses, rounds: rounds, flat: flat}
	var leaders []Leader
	n := 0
	for c, size := range sizes {
		x.first = append(x.first, n)
		for i := range size {
			if i == 0 || flat {
				leaders = append(leaders, Leader{c, n + i})
			}
		}
		n += size
	}
	for c, size := range sizes {
		var mine []int
		for i := range size {
			mine = append(mine, x.first[c]+i)
		}
		for _, me := range mine {
			p := &proc{cluster: c}
			g := Group{Me: me, Mine: mine, Leaders: leaders}
			if flat {
				g.Mine = []int{me}
			}
			p.machine = New(g, 7, Set{}, nil)
			x.procs = append(x.procs, p)
		}
	}
	x.ways = make([][]Message, n*n)
	return x
}

// clone returns a copy that shares nothing that changes.
func (x *model) clone() *model {
	y := *x
	y.procs, y.ways = nil, make([][]Message, len(x.ways))
	for i, w := range x.ways {
		y.ways[i] = slices.Clone(w)
	}
	for _, p := range x.procs {
		q := *p
		m := *p.machine
		m.rounds = map[uint32]*round{}
		for k, r := range p.machine.rounds {
			c := *r
			c.votes = maps.Clone(r.votes)
			m.rounds[k] = &c
		}
		q.machine, q.word, q.got = &m, slices.Clone(p.word), slices.Clone(p.got)
		y.procs = append(y.procs, &q)
	}
	return &y
}

// key identifies the state.
func (x *model) key() string {
	var b strings.Builder
	fmt.Fprint(&b, x.losses)
	for _, p := range x.procs {
		fmt.Fprint(&b, "|", p.dead, p.word, p.started, len(p.got))
		if p.dead {
			continue
		}
		for _, o := range p.got {
			fmt.Fprint(&b, o.Flag, o.Lost[0], o.Failed, o.Fresh)
		}
		fmt.Fprint(&b, p.machine.lost[0], p.machine.known)
		for _, k := range slices.Sorted(maps.Keys(p.machine.rounds)) {
			r := p.machine.rounds[k]
			fmt.Fprint(&b, "/", k, r.started, r.voted, r.to, r.own.Flag, r.own.Lost[0], r.own.Acked[0])
			for _, v := range slices.Sorted(maps.Keys(r.votes)) {
				fmt.Fprint(&b, ",", v, r.votes[v].Flag, r.votes[v].Lost[0], r.votes[v].Acked[0])
			}
			if r.decision != nil {
				fmt.Fprint(&b, "D", r.decision.Flag, r.decision.Lost[0], r.decision.Acked[0], r.decision.Fresh)
			}
		}
	}
	for i, w := range x.ways {
		for _, m := range w {
			fmt.Fprint(&b, ";", i, m.Kind, m.Number, m.Flag, m.Done, m.Lost[0], m.Acked[0], m.Fresh)
		}
	}
	return b.String()
}

// events returns the events that may be next.
func (x *model) events() (all []func(x *model) error) {
	n := len(x.procs)
	for i, p := range x.procs {
		if p.dead {
			continue
		}
		if p.started < x.rounds && len(p.got) == p.started {
			all = append(all, func(x *model) error { return x.start(i) })
		}
		if len(p.word) > 0 {
			all = append(all, func(x *model) error {
				cluster := x.procs[i].word[0]
				x.procs[i].word = x.procs[i].word[1:]
				x.loses(i, cluster)
				return nil
			})
		}
		for from := range n {
			if len(x.ways[from*n+i]) > 0 {
				all = append(all, func(x *model) error { return x.deliver(from, i) })
			}
		}
	}
	alive := 0
	for c := range x.sizes {
		if !x.procs[x.first[c]].dead {
			alive++
		}
	}
	for c := range x.sizes {
		if x.losses > 0 && alive > 1 && !x.procs[x.first[c]].dead {
			all = append(all, func(x *model) error { x.die(c); return nil })
		}
	}
	return all
}

// start makes a process vote: all bits but one, which its rank determines. Every second agreement
// is a shrink. It has acknowledged the losses that it knows, except for odd ranks.
func (x *model) start(i int) error {
	p := x.procs[i]
	acked := p.lost
	if i%2 == 1 {
		acked = Set{}
	}
	p.machine.fresh = func() uint64 { return uint64(100 + i) }
	p.machine.Start(^uint32(1<<i), p.started%2 == 1, acked)
	p.started++
	return x.take(i)
}

// die ends a cluster. The reports of its loss, and its messages, are in flight to all others.
func (x *model) die(cluster int) {
	x.losses--
	n := len(x.procs)
	for i, p := range x.procs {
		if p.cluster == cluster {
			p.dead, p.word = true, nil
			for from := range n {
				x.ways[from*n+i] = nil
			}
		} else if !p.dead && !p.lost.Has(cluster) {
			p.word = append(p.word, cluster)
		}
	}
}

// loses makes a process treat a cluster as lost: nothing more of it arrives.
func (x *model) loses(i, cluster int) {
	p := x.procs[i]
	if p.lost.Has(cluster) {
		return
	}
	p.lost.Add(cluster)
	p.word = slices.DeleteFunc(p.word, func(c int) bool { return c == cluster })
	for from, q := range x.procs {
		if q.cluster == cluster {
			x.ways[from*len(x.procs)+i] = nil
		}
	}
	p.machine.Lose(cluster)
	_ = x.take(i)
}

func (x *model) deliver(from, to int) error {
	n := len(x.procs)
	m := x.ways[from*n+to][0]
	x.ways[from*n+to] = x.ways[from*n+to][1:]
	p := x.procs[to]
	for _, c := range m.Lost.Without(p.lost).Clusters() {
		if c == p.cluster {
			return fmt.Errorf("rank %d is told that its own cluster is lost", to)
		}
		x.loses(to, c)
	}
	b := m.Append(nil)
	m, err := Parse(b)
	if err == nil {
		err = p.machine.Receive(from, m)
	}
	if err != nil {
		return err
	}
	return x.take(to)
}

// take moves a process's messages to their ways, and compares its outcomes with those of the
// others.
func (x *model) take(i int) error {
	p := x.procs[i]
	out, outcomes := p.machine.Take()
	for _, e := range out {
		if to := x.procs[e.To]; !to.dead && !p.lost.Has(to.cluster) {
			x.ways[i*len(x.procs)+e.To] = append(x.ways[i*len(x.procs)+e.To], e.Message)
		}
	}
	p.got = append(p.got, outcomes...)
	for r, q := range x.procs {
		for k := range min(len(p.got), len(q.got)) {
			if !q.dead && p.got[k] != q.got[k] {
				return fmt.Errorf("ranks %d and %d decide differently: %+v, %+v", i, r, p.got[k], q.got[k])
			}
		}
	}
	return nil
}

// atEnd checks a state without events, apart from further losses: each living process has all
// decisions.
func (x *model) atEnd() error {
	for i, p := range x.procs {
		if p.dead {
			continue
		}
		if len(p.got) != x.rounds {
			return fmt.Errorf("rank %d has %d of %d decisions and nothing is under way", i, len(p.got), x.rounds)
		}
		for k, o := range p.got {
			for r, q := range x.procs {
				if voted := o.Flag&(1<<r) == 0; !q.dead && !voted {
					return fmt.Errorf("the vote of rank %d is missing in %x", r, o.Flag)
				}
			}
			if (o.Fresh != 0) != (k%2 == 1) {
				return fmt.Errorf("agreement %d has the context %d", k, o.Fresh)
			}
		}
	}
	return nil
}

// TestAllOrders explores all orders of events of small jobs.
func TestAllOrders(t *testing.T) {
	for _, c := range []struct {
		sizes          []int
		losses, rounds int
		flat           bool
	}{
		{[]int{1, 1}, 1, 2, false}, {[]int{2, 1}, 1, 2, false}, {[]int{1, 2}, 1, 2, false}, {[]int{1, 1, 1}, 1, 1, false},
		{[]int{1, 1, 1}, 2, 1, false}, {[]int{2, 1, 1}, 1, 1, false}, {[]int{1, 1, 1}, 2, 2, false},
		{[]int{1, 2, 1}, 2, 1, false}, {[]int{1, 1, 1, 1}, 1, 1, false}, {[]int{1, 1, 1, 1}, 2, 1, false},
		{[]int{2, 1}, 1, 2, true}, {[]int{2, 2}, 1, 1, true}, {[]int{2, 1, 1}, 1, 1, true}, {[]int{2, 1, 1}, 2, 1, true},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			seen := map[string]bool{}
			queue := []*model{newModel(c.sizes, c.losses, c.rounds, c.flat)}
			ends := 0
			for len(queue) > 0 {
				x := queue[len(queue)-1]
				queue = queue[:len(queue)-1]
				events := x.events()
				for _, e := range events {
					y := x.clone()
					if err := e(y); err != nil {
						t.Fatal(err)
					}
					if k := y.key(); !seen[k] {
						seen[k] = true
						queue = append(queue, y)
					}
				}
				if x.settled() {
					ends++
					if err := x.atEnd(); err != nil {
						t.Fatal(err)
					}
				}
			}
			t.Logf("%d states, %d ends", len(seen), ends)
		})
	}
}

// settled reports whether no event but a loss may be next.
func (x *model) settled() bool {
	y := *x
	y.losses = 0
	return len(y.events()) == 0
}

// TestRandomOrders takes random events in larger jobs.
func TestRandomOrders(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 5))
		sizes := make([]int, 2+r.IntN(4))
		for i := range sizes {
			sizes[i] = 1 + r.IntN(3)
		}
		x := newModel(sizes, r.IntN(len(sizes)), 1+r.IntN(4), r.IntN(2) == 0)
		for {
			events := x.events()
			if x.settled() && (len(events) == 0 || r.IntN(2) == 0) {
				break
			}
			if err := events[r.IntN(len(events))](x); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		if err := x.atEnd(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}
