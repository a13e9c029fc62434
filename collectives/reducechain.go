package collectives

import "slices"

// reduceChain returns the schedule of a reduction of many segments to one rank if the order of
// operands does not matter. On each host of a cluster the ranks give their operands to one of them,
// its head. The heads are a chain: each combines the partial result with the operands of its host,
// and passes it on to the next host. In the root's cluster the root is the last one. The last one
// of another cluster sends the result to a rank of the root's cluster that is likely to be on
// another host than the root, so no link carries more than m bytes each way. A rank that only gives
// its operand leaves when that is taken.
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

// chain is the path of a reduction's segments inside a cluster.
type chain struct {
	*env
	a     Args
	seg   segments
	last  int // local rank that has the cluster's part in the end
	steps int
	moves []move // moves by step

	gets  []move // moves to this process
	comes int    // number of clusters that send to this process
	parts ring   // incoming parts of the segments under way, first those from other clusters
}

// move is one step of the chain: a rank passes its part of a segment to another one of its cluster.
type move struct{ step, from, to int }

// entrance returns the rank of the root's cluster to which the others send: half the cluster
// further, because neighbours often share a host.
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

// chainMoves returns the moves on hosts and from host to host: from the host of `first`, if that is
// a rank, to the host of `last`, and there to that rank. first moves after step 0, in which other
// clusters' parts arrive there.
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

// part returns the place of incoming part i of a segment.
func (x *chain) part(i, seg int) []byte {
	n := x.seg.count(seg) * x.extent
	return x.parts.at(seg, (x.comes+len(x.gets))*n)[i*n:][:n]
}

// begin is step 0, at the same time as the receives from other clusters.
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

// step adds to b the native messages of step k of the chain for segment i.
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

// sum combines the incoming parts of a segment with this process's own operand.
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
