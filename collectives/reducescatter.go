package collectives

// reduceScatter returns the schedule of a reduce_scatter. M bytes is the whole vector; the part of
// a cluster has the blocks of its ranks.
//
// Few bytes: native reduction to a leader (in clusters of few ranks: a gather), leaders exchange
// each other's parts and combine them in cluster order, native scatter.
//
//	time 2λ + L + M·G/c; bytes the receiving cluster's part, messages 1
//
// Many bytes, few ranks: reduceblocks.go. Otherwise each cluster natively reduces and scatters
// every cluster's part. A remote cluster's part is scattered over all ranks of this one, so each
// has the blocks of one or several ranks there. It sends every block directly to its owner.
//
//	time λ(M) + L + M·G/c; bytes the receiving cluster's part, messages one per receiving rank
func reduceScatter(e *env, a Args) Schedule {
	v := newVector(e, a)
	switch {
	case len(v.all) == 0:
		return nil
	case len(v.all) <= e.t.Combine:
		return reduceScatterLeaders(e, a, v)
	case e.l.widest() <= FewRanks:
		return reduceBlocks(e, a, v)
	}
	return reduceScatterDirect(e, a, v)
}

// vector is the input of a reduce_scatter: a block for every rank.
type vector struct {
	e             *env
	all           []byte
	counts        []int64 // [rank] number of elements
	bytes, displs []int64 // [rank] length and offset
}

func newVector(e *env, a Args) vector {
	v := vector{e, nil, a.RecvCounts, make([]int64, e.l.Size), make([]int64, e.l.Size)}
	var at int64
	for r, n := range a.RecvCounts {
		v.bytes[r], v.displs[r] = n*int64(e.extent), at
		at += v.bytes[r]
	}
	v.all = a.Send[:at]
	return v
}

// part returns the blocks of a cluster's ranks one after the other, from the input vector or a
// reduced one.
func (v vector) part(cluster int, of []byte) []byte {
	return v.e.packed(cluster, of, v.bytes, v.displs)
}

// partBytes returns the size of a cluster's part.
func (v vector) partBytes(cluster int) int {
	t, _ := extent(v.e.l.Members(cluster), v.bytes, v.displs)
	return int(t.bytes)
}

// scatterLocal scatters this cluster's part to its ranks. part is needed at the leader only.
func (v vector) scatterLocal(part, recv []byte) (Request, error) {
	if v.e.local.Rank() != 0 {
		return v.e.local.Scatterv(nil, nil, nil, recv, 0)
	}
	n := v.e.local.Size()
	counts, displs, at := v.e.l.pick(v.bytes, v.e.l.Cluster), make([]int64, n), int64(0)
	for i, c := range counts {
		displs[i] = at
		at += c
	}
	return v.e.local.Scatterv(part, counts, displs, recv, 0)
}

func reduceScatterLeaders(e *env, a Args, v vector) Schedule {
	recv := a.Recv[:v.bytes[e.l.Rank]]
	count := len(v.all) / e.extent
	reduced, parts := []byte(nil), make([][]byte, e.l.Clusters())
	if e.local.Rank() == 0 {
		reduced = e.Scratch(len(v.all))
	}
	first := func() (Request, error) { return e.local.Reduce(v.all, reduced, count, 0) }
	combine := func() error { return nil }
	if e.l.few() {
		var operands []byte
		if e.local.Rank() == 0 {
			operands = e.Scratch(e.local.Size() * len(v.all))
			combine = func() error { return e.foldTo(reduced, operands, count) }
		}
		first = e.gatherSmall(v.all, operands)
	}
	if e.local.Rank() != 0 {
		return Schedule{
			step(first),
			step(func() (Request, error) { return v.scatterLocal(nil, recv) }),
		}
	}
	mine := v.partBytes(e.l.Cluster)
	return Schedule{
		step(first),
		func() ([]Request, error) {
			var b batch
			b.add(nil, combine())
			parts[e.l.Cluster] = v.part(e.l.Cluster, reduced)
			e.l.others(func(k int) {
				if mine > 0 {
					parts[k] = e.Scratch(mine)
					b.add(e.Recv(e.l.Member(k, 0), 0, parts[k]))
				}
				if part := v.part(k, reduced); len(part) > 0 {
					b.add(e.Send(e.l.Member(k, 0), 0, part))
				}
			})
			return b.reqs, b.err
		},
		func() ([]Request, error) {
			var b batch
			if mine > 0 {
				b.add(nil, e.fold(parts, mine/e.extent))
			}
			b.add(v.scatterLocal(parts[len(parts)-1], recv))
			return b.reqs, b.err
		},
	}
}

func reduceScatterDirect(e *env, a Args, v vector) Schedule {
	me, n := e.local.Rank(), e.local.Size()
	recv := a.Recv[:v.bytes[e.l.Rank]]
	parts, sums := make([][]byte, e.l.Clusters()), make([][]byte, e.l.Clusters())

	reduceAll := func() ([]Request, error) {
		var b batch
		for k := range e.l.Clusters() {
			ranks := e.l.Members(k)
			counts := make([]int64, n) // elements of cluster k's part that each local rank gets
			for q, r := range ranks {
				if k == e.l.Cluster {
					counts[q] = v.counts[r]
				} else {
					counts[reducer(q, len(ranks), n)] += v.counts[r]
				}
			}
			sums[k] = e.Scratch(int(counts[me]) * e.extent)
			if part := v.part(k, v.all); len(part) > 0 {
				b.add(e.local.ReduceScatter(part, sums[k], counts))
			}
		}
		return b.reqs, b.err
	}
	exchange := func() ([]Request, error) {
		var b batch
		parts[e.l.Cluster] = sums[e.l.Cluster]
		e.l.others(func(k int) {
			ranks := e.l.Members(k)
			if len(recv) > 0 {
				parts[k] = e.Scratch(len(recv))
				b.add(e.Recv(ranks[reducer(me, n, len(ranks))], 0, parts[k]))
			}
			rest := sums[k]
			for q, r := range ranks {
				if bytes := v.bytes[r]; bytes > 0 && reducer(q, len(ranks), n) == me {
					b.add(e.Send(r, 0, rest[:bytes]))
					rest = rest[bytes:]
				}
			}
		})
		return b.reqs, b.err
	}
	combine := func() error {
		if len(recv) == 0 {
			return nil
		}
		err := e.fold(parts, len(recv)/e.extent)
		copy(recv, parts[len(parts)-1])
		return err
	}
	return Schedule{reduceAll, exchange, compute(combine)}
}

// reducer returns the one of n local ranks that reduces the block of rank q of another cluster with
// size ranks.
func reducer(q, size, n int) int { return q * n / size }
