package collectives

// reduce: a native reduction of every segment to a leader of each cluster (in the root's cluster:
// the root), which sends it to the root; there the clusters' parts are combined in cluster order.
// Leaders take turns by segment.
//
//	time λ(s) + L + mG; bytes m from each other cluster to the root's
func reduce(e *env, a Args) Schedule {
	home := e.l.ClusterOf(a.Root)
	seg, unit := cut(a.Count, e.extent, e.t), e.extent
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
	// The last cluster's part, into which the others are folded, has the receive buffer, unless the
	// program's own contribution is there.
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

// parts holds, for every segment under way, the contribution of each cluster.
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

// at gives the parts of segment i, by cluster.
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
