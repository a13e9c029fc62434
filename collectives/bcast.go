package collectives

// bcast returns the schedule of a broadcast of m bytes.
//
// One segment, or slices of few bytes: the root sends every segment to a leader of each other
// cluster and broadcasts it natively in its own. The leader broadcasts it in its cluster. With
// several segments leaders take turns: those in the root's cluster other than the root send on the
// segments that the native broadcast brought them.
//
//	time L + mG + λ(s); bytes m from the root's cluster to each other one; messages 1 a segment
//
// More bytes: every cluster cuts a segment into one slice for each of its ranks, the root's cluster
// without the root itself. A native scatter brings the slices from the root to its cluster. Their
// owners send them to the owners of the overlapping slices in the other clusters, and to each other
// by a native alltoall. In the other clusters a native allgather joins them. The root sends m
// bytes, and no rank sends more (in a native broadcast of one step it would send a times as many).
//
//	time λ(s) + L + mG + λ(s); bytes m from the root's cluster to each other one; messages at most (a+b-1) a segment
func bcast(e *env, buf []byte, root int) Schedule {
	if e.broadcastsSlices(len(buf)) {
		return bcastSlices(e, buf, root)
	}
	return bcastLeaders(e, buf, root)
}

// broadcastsSlices reports whether a broadcast of n bytes uses slices.
func (e *env) broadcastsSlices(n int) bool {
	return n > e.t.Segment && n >= e.t.Slice*e.l.widest()
}

func bcastLeaders(e *env, buf []byte, root int) Schedule {
	seg := cut(len(buf), 1, e.t)
	home, rootLocal := e.l.ClusterOf(root), e.l.LocalOf(root)
	window := e.t.window()
	if seg.n == 0 {
		return nil
	}
	// leader returns the leader of segment i in cluster k.
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
					b.add(e.Recv(e.l.Member(home, leader(home, i)), 0, seg.of(buf, i, 1)))
				}
			}, window},
			stage{func(i int, b *batch) {
				b.add(e.local.Bcast(seg.of(buf, i, 1), leader(e.l.Cluster, i)))
			}, e.t.LocalDepth})
	}
	sent := make([]batch, seg.n)
	send := func(i int) {
		e.l.others(func(k int) { sent[i].add(e.Send(e.l.Member(k, leader(k, i)), 0, seg.of(buf, i, 1))) })
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

func bcastSlices(e *env, buf []byte, root int) Schedule {
	me, n, home := e.local.Rank(), e.local.Size(), e.l.ClusterOf(root)
	seg, window := e.cutWide(len(buf), 1)
	most := e.t.Segment
	source := func(i int) slicing { // slices of the root's cluster
		s := e.slicing(seg.count(i), home)
		if s.ranks > 1 {
			s.without = e.l.LocalOf(root)
		}
		return s
	}
	if e.l.Cluster != home {
		return pipeline(seg.n,
			stage{func(i int, b *batch) {
				from, to := e.slicing(seg.count(i), e.l.Cluster).of(me)
				source(i).common(from, to, most, func(r, lo, hi int) {
					b.add(e.Recv(e.l.Member(home, r), 0, seg.of(buf, i, 1)[lo:hi]))
				})
			}, window},
			stage{func(i int, b *batch) {
				from, to := e.slicing(seg.count(i), e.l.Cluster).of(me)
				counts, displs := e.slicing(seg.count(i), e.l.Cluster).blocks(1)
				all := seg.of(buf, i, 1)
				b.add(e.local.Allgatherv(all[from:to], all, counts, displs))
			}, e.t.LocalDepth})
	}
	sent := make([]batch, seg.n)
	return pipeline(seg.n,
		stage{func(i int, b *batch) {
			all := seg.of(buf, i, 1)
			from, to := source(i).of(me)
			var counts, displs []int64
			var send []byte
			if e.l.Rank == root {
				counts, displs = source(i).blocks(1)
				send = all
			}
			b.add(e.local.Scatterv(send, counts, displs, all[from:to], e.l.LocalOf(root)))
		}, e.t.LocalDepth},
		stage{func(i int, b *batch) {
			all := seg.of(buf, i, 1)
			from, to := source(i).of(me)
			e.l.others(func(k int) {
				e.slicing(len(all), k).common(from, to, most, func(r, lo, hi int) {
					sent[i].add(e.Send(e.l.Member(k, r), 0, all[lo:hi]))
				})
			})
			if n > 2 {
				b.add(exchange(e.local, all, source(i)))
			}
		}, e.t.LocalDepth},
		stage{func(i int, b *batch) { *b, sent[i] = sent[i], batch{} }, window})
}

// exchange starts an alltoall that brings every rank with a slice the others' slices. The rank
// without a slice, the root, has everything already, perhaps in read-only memory.
func exchange(l Local, all []byte, s slicing) (Request, error) {
	me := l.Rank()
	from, to := s.of(me)
	scounts, sdispls := make([]int64, s.ranks), make([]int64, s.ranks)
	rcounts, rdispls := make([]int64, s.ranks), make([]int64, s.ranks)
	// Received data starts at this offset, because some MPI libraries reject buffers with the same
	// address.
	after := 0
	if from == 0 {
		after = to
	}
	for r := range s.ranks {
		if r == me || r == s.without || me == s.without {
			continue
		}
		scounts[r] = int64(to - from)
		if lo, hi := s.of(r); lo < hi {
			rcounts[r], rdispls[r] = int64(hi-lo), int64(lo-after)
		}
	}
	return l.Alltoallv(all[from:to], scounts, sdispls, all[after:], rcounts, rdispls)
}
