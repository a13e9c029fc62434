package collectives

// allreduce returns the schedule of an allreduce of a vector of m bytes.
//
// Slices of few bytes: a native reduction of every segment to a leader of each cluster, leaders
// exchange these parts and combine them in cluster order, native broadcasts. Leaders take turns by
// segment. With few ranks, also for more bytes, the leader gathers all operands of its cluster.
// That takes the fewest messages, which cost more than the bytes on its link if ranks share
// processors.
//
//	time λ(s) + L + mG + λ(s); bytes m between each two clusters, each way; messages 1 a segment
//
// Slices of many bytes: every cluster cuts a segment into one slice for each of its ranks. A native
// alltoall brings a rank all operands of its slice, which it combines in order of rank. The owners
// of overlapping slices exchange the common parts and combine them in cluster order. A native
// allgather joins the slices. Every rank does the same share of the work: its link carries 2m-m/a
// bytes each way. Both native collectives take one step, while a reduction to one rank and a
// broadcast move s bytes some log(a) times one after the other. If hosts share a link among their
// ranks, each host combines first, and both native collectives take two steps (grid.go).
//
//	time λ(s) + L + mG + λ(s); bytes m between each two clusters, each way; messages at most (a+b-1) a segment
//
// The result has the same bits on all ranks.
func allreduce(e *env, a Args) Schedule {
	switch n := a.Count * e.extent; {
	case n*e.l.widest() > e.t.Few && n >= e.t.Slice*e.l.widest():
		return allreduceSlices(e, a)
	case e.sumsFew(n):
		return allreduceFew(e, a, n)
	}
	return allreduceLeaders(e, a)
}

// sumsFew reports whether an allreduce of n bytes uses allreduceFew. Other clusters, with more
// ranks, may use allreduceLeaders at the same time.
func (e *env) sumsFew(n int) bool { return e.fewBytes(n, e.t.Few) && e.l.few() }

// fewBytes reports whether a leader may send n bytes to each rank of its cluster, in one segment
// and with at most the given number of bytes in all.
func (e *env) fewBytes(n, most int) bool {
	return 0 < n && n <= e.t.Segment && n*e.l.widest() <= most
}

// allreduceFew returns the schedule in which the leader combines the operands of its cluster, n
// bytes each. A native reduction would take two steps with as few as three ranks.
func allreduceFew(e *env, a Args, n int) Schedule {
	send, result := a.Send[:n], a.Recv[:n]
	last := step(func() (Request, error) { return e.local.Bcast(result, 0) })
	if e.local.Rank() != 0 {
		return Schedule{step(e.gatherSmall(send, nil)), last}
	}
	operands := e.Scratch(e.local.Size() * n)
	parts, me := cutEqually(e.Scratch(e.l.Clusters()*n), e.l.Clusters()), e.l.Cluster
	parts[len(parts)-1] = result
	return Schedule{
		step(e.gatherSmall(send, operands)),
		func() ([]Request, error) {
			var b batch
			b.add(nil, e.foldTo(parts[me], operands, a.Count))
			e.l.others(func(k int) {
				peer := e.l.Member(k, 0)
				b.add(e.Recv(peer, 0, parts[k]))
				b.add(e.Send(peer, 0, parts[me]))
			})
			return b.reqs, b.err
		},
		func() ([]Request, error) {
			err := e.fold(parts, a.Count)
			started, err2 := last()
			if err == nil {
				err = err2
			}
			return started, err
		},
	}
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
					peer := e.l.Member(k, e.l.leader(k, i, e.t.Leaders, 0))
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

// localSums describes how the ranks of a cluster combine a segment. in brings each rank the
// operands of its slice. sum returns their sum, and is called once; at returns its place again. out
// distributes the slice of the result to all, starting from the given bytes.
type localSums struct {
	in  []stage
	sum func(i int) ([]byte, error)
	at  func(i int) []byte
	out func(i int, result []byte, b *batch)
	// after has the further stages.
	after []stage
}

func allreduceSlices(e *env, a Args) Schedule {
	unit := e.extent
	seg, window := e.cutWide(a.Count, unit)
	most := max(1, e.t.Segment/unit)
	local := flatSums
	if g := e.l.grid; g != nil && (a.Commutative || g.ordered) {
		local = gridSums
	}
	sums := local(e, a, seg, window)
	slice := func(i int) (from, to int) { return e.slicing(seg.count(i), e.l.Cluster).of(e.local.Rank()) }
	widest := (seg.size + e.local.Size() - 1) / e.local.Size() * unit
	parts := make([]ring, e.l.Clusters())
	e.l.others(func(k int) { parts[k] = e.newRing(widest, slots(seg.n, window, e.t.LocalDepth)) })

	stages := append(sums.in,
		stage{func(i int, b *batch) {
			mine, err := sums.sum(i)
			b.add(nil, err)
			from, to := slice(i)
			e.l.others(func(k int) {
				part := parts[k].at(i, (to-from)*unit)
				e.slicing(seg.count(i), k).common(from, to, most, func(r, lo, hi int) {
					b.add(e.Recv(e.l.Member(k, r), 0, part[(lo-from)*unit:(hi-from)*unit]))
				})
			})
			e.l.others(func(k int) {
				e.slicing(seg.count(i), k).common(from, to, most, func(r, lo, hi int) {
					b.add(e.Send(e.l.Member(k, r), 0, mine[(lo-from)*unit:(hi-from)*unit]))
				})
			})
		}, window},
		stage{func(i int, b *batch) {
			from, to := slice(i)
			all := make([][]byte, e.l.Clusters())
			e.l.others(func(k int) { all[k] = parts[k].at(i, (to-from)*unit) })
			all[e.l.Cluster] = sums.at(i)
			b.add(nil, e.fold(all, to-from))
			result := all[len(all)-1]
			copy(seg.of(a.Recv, i, unit)[from*unit:to*unit], result)
			sums.out(i, result, b)
		}, e.t.LocalDepth})
	return pipeline(seg.n, append(stages, sums.after...)...)
}

// flatSums returns localSums with a native alltoall of slices and a native allgather of results.
func flatSums(e *env, a Args, seg segments, window int) localSums {
	me, n, unit := e.local.Rank(), e.local.Size(), e.extent
	slice := func(i int) slicing { return e.slicing(seg.count(i), e.l.Cluster) }
	widest := (seg.size + n - 1) / n * unit
	// operands has all operands of this process's slice, one after the other.
	operands := e.newRing(n*widest, slots(seg.n, e.t.LocalDepth, window, 1))
	all := func(i int) (list [][]byte, units int) {
		from, to := slice(i).of(me)
		return cutEqually(operands.at(i, n*(to-from)*unit), n), to - from
	}
	return localSums{
		in: []stage{{func(i int, b *batch) {
			counts, displs := slice(i).blocks(unit)
			recv, at := make([]int64, n), make([]int64, n)
			for r := range recv {
				recv[r], at[r] = counts[me], int64(r)*counts[me]
			}
			b.add(e.local.Alltoallv(seg.of(a.Send, i, unit), counts, displs, operands.at(i, n*int(counts[me])), recv,
				at))
		}, e.t.LocalDepth}},
		sum: func(i int) ([]byte, error) {
			list, units := all(i)
			return list[n-1], e.fold(list, units)
		},
		at: func(i int) []byte {
			list, _ := all(i)
			return list[n-1]
		},
		out: func(i int, _ []byte, b *batch) {
			counts, displs := slice(i).blocks(unit)
			to := seg.of(a.Recv, i, unit)
			b.add(e.local.Allgatherv(block(to, counts[me], displs[me]), to, counts, displs))
		},
	}
}

// cutEqually cuts b into n pieces of equal length.
func cutEqually(b []byte, n int) [][]byte {
	list, size := make([][]byte, n), len(b)/n
	for i := range list {
		list[i] = b[i*size:][:size]
	}
	return list
}
