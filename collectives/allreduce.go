package collectives

// allreduce: a native reduction of every segment to a leader of each cluster, leaders exchange these parts and combine
// them in cluster order, native broadcasts. Leaders take turns by segment. The result has the same bits everywhere.
//
//	time λ(s) + L + mG + λ(s); bytes m between each two clusters, each way
func allreduce(e *env, a Args) Schedule {
	seg, unit, window := cut(a.Count, e.extent, e.t), e.extent, e.t.window()
	me := e.l.Cluster
	leads := func(i int) bool { return e.l.leader(me, i, e.t.Leaders, 0) == e.local.Rank() }
	parts := parts{}
	if e.leads(seg.n) {
		parts = e.newParts(seg, slots(seg.n, e.t.LocalDepth, window, 1))
		parts.last = a.Recv
	}
	return pipeline(seg.n,
		stage{func(i int, b *batch) {
			var to []byte
			if leads(i) {
				to = parts.at(i)[me]
			}
			b.add(e.local.Reduce(seg.of(a.Send, i, unit), to, seg.count(i), e.l.leader(me, i, e.t.Leaders, 0)))
		}, e.t.LocalDepth},
		stage{func(i int, b *batch) {
			if leads(i) {
				p := parts.at(i)
				e.l.others(func(k int) {
					peer := e.l.Members[k][e.l.leader(k, i, e.t.Leaders, 0)]
					b.add(e.Recv(peer, 0, p[k]))
					b.add(e.Send(peer, 0, p[me]))
				})
			}
		}, window},
		stage{func(i int, b *batch) {
			if leads(i) {
				b.err = e.fold(parts.at(i), seg.count(i))
			}
			b.add(e.local.Bcast(seg.of(a.Recv, i, unit), e.l.leader(me, i, e.t.Leaders, 0)))
		}, e.t.LocalDepth})
}

// leads reports whether this process is the leader of one of n segments.
func (e *env) leads(n int) bool {
	for i := range min(n, e.t.Leaders) {
		if e.l.leader(e.l.Cluster, i, e.t.Leaders, 0) == e.local.Rank() {
			return true
		}
	}
	return false
}
