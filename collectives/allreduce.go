package collectives

// allreduce of a vector of m bytes.
//
// Slices of few bytes: a native reduction of every segment to a leader of each cluster (of a few small operands: a gather), leaders exchange these parts and combine them in
// cluster order, native broadcasts. Leaders take turns by segment.
//
//	time λ(s) + L + mG + λ(s); bytes m between each two clusters, each way; messages 1 a segment
//
// Slices of many bytes: every cluster cuts a segment into one slice for each of its ranks. A native alltoall brings a rank all operands of its
// slice, which it combines in order of rank; the owners of slices that overlap exchange what these have in common and combine it in
// cluster order; a native allgather joins the slices. Every rank does the same share of the work, on its link are 2m-m/a bytes each way, and both
// native steps are one step long, where a reduction to one rank and a broadcast move s bytes some log(a) times one after the other.
//
//	time λ(s) + L + mG + λ(s); bytes m between each two clusters, each way; messages at most (a+b-1) a segment
//
// The result has the same bits everywhere.
func allreduce(e *env, a Args) Schedule {
	if a.Count*e.extent >= e.t.Slice*e.l.widest() {
		return allreduceSlices(e, a)
	}
	return allreduceLeaders(e, a)
}

func allreduceLeaders(e *env, a Args) Schedule {
	seg, unit, window := cut(a.Count, e.extent, e.t), e.extent, e.t.window()
	me := e.l.Cluster
	leads := func(i int) bool { return e.l.leader(me, i, e.t.Leaders, 0) == e.local.Rank() }
	parts := parts{}
	if e.leads(seg.n) {
		parts = e.newParts(seg, slots(seg.n, e.t.LocalDepth, window, 1))
		parts.last = a.Recv
	}
	// Few small operands are combined by the leader: a native reduction takes two steps already with three ranks.
	n := a.Count * unit
	gathers := seg.n == 1 && 0 < n && n <= e.t.CombineBlock && e.l.few()
	var operands []byte
	if gathers && leads(0) {
		operands = e.Scratch(e.local.Size() * n)
	}
	return pipeline(seg.n,
		stage{func(i int, b *batch) {
			if gathers {
				b.add(e.gatherSmall(a.Send[:n], operands)())
				return
			}
			var to []byte
			if leads(i) {
				to = parts.at(i)[me]
			}
			b.add(e.local.Reduce(seg.of(a.Send, i, unit), to, seg.count(i), e.l.leader(me, i, e.t.Leaders, 0)))
		}, e.t.LocalDepth},
		stage{func(i int, b *batch) {
			if leads(i) {
				p := parts.at(i)
				if gathers {
					b.add(nil, e.foldTo(p[me], operands, a.Count))
				}
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

func allreduceSlices(e *env, a Args) Schedule {
	me, n, unit := e.local.Rank(), e.local.Size(), e.extent
	seg, window := e.cutWide(a.Count, unit)
	most := max(1, e.t.Segment/unit)
	widest, under := (seg.size+n-1)/n*unit, slots(seg.n, e.t.LocalDepth, window, 1)
	operands := e.newRing(n*widest, under)
	parts := make([]ring, len(e.l.Members))
	e.l.others(func(k int) { parts[k] = e.newRing(widest, under) })
	slice := func(i int) (from, to int) { return e.slicing(seg.count(i), e.l.Cluster).of(me) }

	return pipeline(seg.n,
		stage{func(i int, b *batch) {
			counts, displs := e.slicing(seg.count(i), e.l.Cluster).blocks(unit)
			recv, at := make([]int64, n), make([]int64, n) // all operands of my slice, one behind the other
			for r := range recv {
				recv[r], at[r] = counts[me], int64(r)*counts[me]
			}
			b.add(e.local.Alltoallv(seg.of(a.Send, i, unit), counts, displs, operands.at(i, n*int(counts[me])), recv, at))
		}, e.t.LocalDepth},
		stage{func(i int, b *batch) {
			from, to := slice(i)
			bytes := (to - from) * unit
			all := make([][]byte, n)
			for r := range all {
				all[r] = operands.at(i, n*bytes)[r*bytes:][:bytes]
			}
			b.add(nil, e.fold(all, to-from))
			e.l.others(func(k int) {
				theirs := parts[k].at(i, bytes)
				e.slicing(seg.count(i), k).common(from, to, most, func(r, lo, hi int) {
					b.add(e.Recv(e.l.Members[k][r], 0, theirs[(lo-from)*unit:(hi-from)*unit]))
				})
			})
			e.l.others(func(k int) {
				e.slicing(seg.count(i), k).common(from, to, most, func(r, lo, hi int) {
					b.add(e.Send(e.l.Members[k][r], 0, all[n-1][(lo-from)*unit:(hi-from)*unit]))
				})
			})
		}, window},
		stage{func(i int, b *batch) {
			from, to := slice(i)
			bytes := (to - from) * unit
			sums := make([][]byte, len(e.l.Members))
			e.l.others(func(k int) { sums[k] = parts[k].at(i, bytes) })
			sums[e.l.Cluster] = operands.at(i, n*bytes)[(n-1)*bytes:]
			b.add(nil, e.fold(sums, to-from))
			all := seg.of(a.Recv, i, unit)
			own := all[from*unit : to*unit]
			copy(own, sums[len(sums)-1])
			counts, displs := e.slicing(seg.count(i), e.l.Cluster).blocks(unit)
			b.add(e.local.Allgatherv(own, all, counts, displs))
		}, e.t.LocalDepth})
}
