package collectives

// reduce returns the schedule of a reduction of m bytes to one rank.
//
// One segment, in clusters of few ranks: the leader of each cluster (in the root's: the root)
// gathers the operands and combines them. Leaders send the result to the root, which combines the
// clusters' parts in their order. All other ranks leave when the leader has their operand.
//
//	time λ + L + mG; bytes m from each other cluster to the root's, messages 1
//
// More segments, if the order of operands does not matter: reducechain.go. Otherwise there is a
// native reduction of every segment to a leader of each cluster, and the rest is as before. Leaders
// take turns by segment.
//
//	time λ(s) + L + mG; bytes m from each other cluster to the root's
func reduce(e *env, a Args) Schedule {
	seg := cut(a.Count, e.extent, e.t)
	switch {
	case e.reducesFew(a):
		return reduceFew(e, a)
	case seg.n > 1 && a.Commutative && e.l.widest() <= FewRanks:
		return reduceChain(e, a, cut(a.Count, e.extent, e.t.native()))
	}
	return reduceLeaders(e, a, seg)
}

// reducesFew reports whether a reduction uses reduceFew.
func (e *env) reducesFew(a Args) bool { return cut(a.Count, e.extent, e.t).n == 1 && e.l.few() }

// collector returns the local rank of a cluster that has its part of a reduction in the end.
func (e *env) collector(cluster, root int) int {
	if cluster == e.l.ClusterOf(root) {
		return e.l.LocalOf(root)
	}
	return 0
}

func reduceFew(e *env, a Args) Schedule {
	n := a.Count * e.extent
	send, leader := a.Send[:n], e.collector(e.l.Cluster, a.Root)
	if e.local.Rank() != leader {
		return Schedule{step(func() (Request, error) { return e.local.Gatherv(send, nil, nil, nil, leader) })}
	}
	counts, displs, operands := e.equal(n)
	gather := func() (Request, error) { return e.local.Gatherv(send, operands, counts, displs, leader) }
	if e.l.Rank != a.Root {
		sum := e.Scratch(n)
		return Schedule{step(gather), func() ([]Request, error) {
			var b batch
			b.add(nil, e.foldTo(sum, operands, a.Count))
			b.add(e.Send(a.Root, 0, sum))
			return b.reqs, b.err
		}}
	}
	parts := cutEqually(e.Scratch(e.l.Clusters()*n), e.l.Clusters())
	if !same(send, a.Recv) {
		parts[len(parts)-1] = a.Recv[:n]
	}
	var crossing batch
	return Schedule{
		func() ([]Request, error) {
			var b batch
			e.l.others(func(k int) { crossing.add(e.Recv(e.l.Member(k, 0), 0, parts[k])) })
			b.add(gather())
			return b.reqs, b.err
		},
		func() ([]Request, error) {
			crossing.add(nil, e.foldTo(parts[e.l.Cluster], operands, a.Count))
			return crossing.reqs, crossing.err
		},
		compute(func() error {
			err := e.fold(parts, a.Count)
			copy(a.Recv, parts[len(parts)-1])
			return err
		}),
	}
}

func reduceLeaders(e *env, a Args, seg segments) Schedule {
	home, unit := e.l.ClusterOf(a.Root), e.extent
	window := e.t.window()
	leader := func(k, i int) int { return e.l.leader(k, i, e.t.Leaders, 0) }
	if e.l.Cluster != home {
		out := e.newRing(seg.size*unit, slots(seg.n, e.t.LocalDepth, window))
		return pipeline(seg.n,
			stage{func(i int, b *batch) {
				n := seg.count(i)
				var to []byte
				if leader(e.l.Cluster, i) == e.local.Rank() {
					to = out.at(i, n*unit)
				}
				b.add(e.local.Reduce(seg.of(a.Send, i, unit), to, n, leader(e.l.Cluster, i)))
			}, e.t.LocalDepth},
			stage{func(i int, b *batch) {
				if leader(e.l.Cluster, i) == e.local.Rank() {
					b.add(e.Send(a.Root, 0, out.at(i, seg.count(i)*unit)))
				}
			}, window})
	}
	rootLocal := e.l.LocalOf(a.Root)
	if e.l.Rank != a.Root {
		return pipeline(seg.n, stage{func(i int, b *batch) {
			b.add(e.local.Reduce(seg.of(a.Send, i, unit), nil, seg.count(i), rootLocal))
		}, e.t.LocalDepth})
	}
	return reduceAtRoot(e, a, seg, leader)
}

func reduceAtRoot(e *env, a Args, seg segments, leader func(k, i int) int) Schedule {
	unit, window := e.extent, e.t.window()
	parts := e.newParts(seg, slots(seg.n, e.t.LocalDepth, window, 1))
	// The last cluster's part, into which the others are folded, is in the receive buffer, unless
	// the program's own operand is there.
	if !same(a.Send, a.Recv) || e.l.Cluster == e.l.Clusters()-1 {
		parts.last = a.Recv
	}
	crossing := make([]batch, seg.n)
	return pipeline(seg.n,
		stage{func(i int, b *batch) {
			p := parts.at(i)
			e.l.others(func(k int) { crossing[i].add(e.Recv(e.l.Member(k, leader(k, i)), 0, p[k])) })
			b.add(e.local.Reduce(seg.of(a.Send, i, unit), p[e.l.Cluster], seg.count(i), e.local.Rank()))
		}, e.t.LocalDepth},
		stage{func(i int, b *batch) { *b, crossing[i] = crossing[i], batch{} }, window},
		stage{func(i int, b *batch) {
			p := parts.at(i)
			b.err = e.fold(p, seg.count(i))
			if parts.last == nil {
				copy(seg.of(a.Recv, i, unit), p[len(p)-1])
			}
		}, 1})
}

// parts has the operand of each cluster for every segment under way.
type parts struct {
	seg     segments
	unit    int
	memory  ring
	last    []byte // if set, the last cluster's parts are the segments of this buffer
	members int
}

func (e *env) newParts(seg segments, slots int) parts {
	n := e.l.Clusters()
	return parts{seg, e.extent, e.newRing(n*seg.size*e.extent, slots), nil, n}
}

// at returns the parts of segment i, by cluster.
func (p parts) at(i int) [][]byte {
	bytes := p.seg.count(i) * p.unit
	b := p.memory.at(i, p.members*bytes)
	out := make([][]byte, p.members)
	for k := range out {
		out[k] = b[k*bytes:][:bytes]
	}
	if p.last != nil {
		out[p.members-1] = p.seg.of(p.last, i, p.unit)
	}
	return out
}
