package collectives

// bcast: the root sends every segment to a leader of each other cluster and broadcasts it natively in its own; the
// leader broadcasts it in its cluster. When there are several segments, leaders take turns: those in the
// root's cluster other than the root send what the native broadcast brought them.
//
//	time L + mG + λ(s); bytes m from the root's cluster to each other one
func bcast(e *env, buf []byte, root int) Schedule {
	seg := cut(len(buf), 1, e.t)
	home, rootLocal := e.l.ClusterOf[root], e.l.LocalOf[root]
	window := e.t.window()
	if seg.n == 0 {
		return nil
	}
	// The leader of segment i in cluster k.
	leader := func(k, i int) int {
		if k == home {
			return e.l.leader(k, i, e.t.Leaders, rootLocal)
		}
		return e.l.leader(k, i, e.t.Leaders, 0)
	}
	if e.l.Cluster != home {
		return pipeline(seg.n,
			stage{func(i int, b *batch) {
				if leader(e.l.Cluster, i) == e.local.Rank() {
					b.add(e.Recv(e.l.Members[home][leader(home, i)], 0, seg.of(buf, i, 1)))
				}
			}, window},
			stage{func(i int, b *batch) {
				b.add(e.local.Bcast(seg.of(buf, i, 1), leader(e.l.Cluster, i)))
			}, e.t.LocalDepth})
	}
	sent := make([]batch, seg.n)
	send := func(i int) {
		e.l.others(func(k int) { sent[i].add(e.Send(e.l.Members[k][leader(k, i)], 0, seg.of(buf, i, 1))) })
	}
	return pipeline(seg.n,
		stage{func(i int, b *batch) {
			if e.l.Rank == root && leader(home, i) == rootLocal {
				send(i) // the root need not wait for its own cluster
			}
			b.add(e.local.Bcast(seg.of(buf, i, 1), rootLocal))
		}, e.t.LocalDepth},
		stage{func(i int, b *batch) {
			if e.l.Rank != root && leader(home, i) == e.local.Rank() {
				send(i)
			}
			*b, sent[i] = sent[i], batch{}
		}, window})
}
