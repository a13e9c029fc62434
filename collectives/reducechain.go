package collectives

import "slices"

// reduceChain: a reduction of many segments to one rank where the order of operands does not count.
// On each host of a cluster the ranks give their operands to one of them, its head; the heads are a
// chain: what has come so far is combined with what the host has, and goes on to the next host. In
// the root's cluster the root is the last one. The last one of another cluster sends the result to
// a rank of the root's cluster that is likely to be on another host than the root: so no link
// carries more than m bytes each way. Who only gives leaves when that is taken.
//
//	time h·λ(s) + L + mG, h hosts; bytes m from each other cluster; messages 1 a segment
func reduceChain(e *env, a Args, seg segments) Schedule {
	x := newChain(e, a, seg)
	stages := []stage{{x.begin, e.t.ahead()}}
	for k := 1; k < x.steps; k++ {
		stages = append(stages, stage{func(i int, b *batch) { x.step(k, i, b) }, e.t.LocalDepth})
	}
	return pipeline(seg.n, append(stages, stage{x.end, e.t.window()})...)
}

// chain is the way of a reduction's segments inside a cluster.
type chain struct {
	*env
	a     Args
	seg   segments
	last  int // the local rank that has the cluster's part in the end
	steps int
	moves []move // by step

	gets  []move // those to this process
	comes int    // clusters that send to this process
	parts ring   // what comes, of the segments under way: first from other clusters
}

// move: a rank gives another one of its cluster what it has of a segment.
type move struct{ step, from, to int }

// entrance gives the rank of the root's cluster to which the others send: half the cluster further,
// since neighbours often share a host.
func (e *env) entrance(root int) int {
	ranks := e.l.Members(e.l.ClusterOf(root))
	return ranks[(e.l.LocalOf(root)+(len(ranks)+1)/2)%len(ranks)]
}

func newChain(e *env, a Args, seg segments) *chain {
	x := &chain{env: e, a: a, seg: seg, last: e.collector(e.l.Cluster, a.Root)}
	first := -1
	if e.l.ClusterOf(a.Root) == e.l.Cluster {
		first = e.l.LocalOf(e.entrance(a.Root))
		if first == e.local.Rank() {
			x.comes = e.l.Clusters() - 1
		}
	}
	x.moves, x.steps = chainMoves(e.l.rows(true), first, x.last)
	for _, m := range x.moves {
		if m.to == e.local.Rank() {
			x.gets = append(x.gets, m)
		}
	}
	under := slots(seg.n, e.t.ahead(), x.steps*e.t.LocalDepth, e.t.window())
	x.parts = e.newRing((x.comes+len(x.gets))*seg.size*e.extent, under)
	return x
}

// chainMoves gives what ranks give each other on hosts and from host to host: from where `first`
// is, if that is a rank, to where `last` is, and there to that one. first gives after step 0, in
// which other clusters' parts come to it.
func chainMoves(hosts [][]int, first, last int) (moves []move, steps int) {
	order := slices.Clone(hosts)
	place := func(host []int) int {
		switch {
		case slices.Contains(host, last):
			return 2
		case slices.Contains(host, first):
			return 0
		}
		return 1
	}
	slices.SortStableFunc(order, func(a, b []int) int { return place(a) - place(b) })
	end := len(order) - 1
	head := func(i int) int {
		switch {
		case i == end:
			return last
		case slices.Contains(order[i], first):
			return first
		}
		return order[i][0]
	}
	for i, host := range order {
		for _, r := range host {
			switch {
			case r == head(i):
			case r == first:
				moves = append(moves, move{max(1, end), r, last})
			default:
				moves = append(moves, move{0, r, head(i)})
			}
		}
		if i < end {
			moves = append(moves, move{i + 1, head(i), head(i + 1)})
		}
	}
	slices.SortStableFunc(moves, func(a, b move) int { return a.step - b.step })
	for _, m := range moves {
		steps = max(steps, m.step+1)
	}
	return moves, steps
}

// part gives the i-th of what comes of a segment.
func (x *chain) part(i, seg int) []byte {
	n := x.seg.count(seg) * x.extent
	return x.parts.at(seg, (x.comes+len(x.gets))*n)[i*n:][:n]
}

// begin is step 0; what comes from other clusters comes beside it.
func (x *chain) begin(i int, b *batch) {
	if x.comes > 0 {
		at := 0
		x.l.others(func(k int) {
			from := x.l.Member(k, x.collector(k, x.a.Root))
			b.add(x.Recv(from, 0, x.part(at, i)))
			at++
		})
	}
	x.step(0, i, b)
}

// step starts those of the moves for which it is time.
func (x *chain) step(k, i int, b *batch) {
	any, n, me := false, int64(x.seg.count(i)*x.extent), x.local.Rank()
	m := newMoves(x.local.Size())
	var send, recv []byte
	for _, move := range x.moves {
		if move.step != k {
			continue
		}
		any = true
		if move.from == me {
			send = x.sum(i, b)
			m.send(move.to, n)
		}
	}
	for at, move := range x.gets {
		if move.step == k {
			if recv == nil {
				recv = x.parts.at(i, (x.comes+len(x.gets))*int(n))[(x.comes+at)*int(n):]
			}
			m.receive(move.from, n)
		}
	}
	if any {
		b.add(m.start(x.local, send, recv))
	}
}

// sum combines what has come of a segment with this process's own operand.
func (x *chain) sum(i int, b *batch) []byte {
	list := [][]byte{x.seg.of(x.a.Send, i, x.extent)}
	for k := range x.comes + len(x.gets) {
		list = append(list, x.part(k, i))
	}
	b.add(nil, x.fold(list, x.seg.count(i)))
	return list[len(list)-1]
}

func (x *chain) end(i int, b *batch) {
	switch {
	case x.local.Rank() != x.last:
	case x.l.Rank == x.a.Root:
		copy(x.seg.of(x.a.Recv, i, x.extent), x.sum(i, b))
	default:
		b.add(x.Send(x.entrance(x.a.Root), 0, x.sum(i, b)))
	}
}
