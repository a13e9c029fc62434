package collectives

// allgather returns the schedule of an allgather. From a cluster of a ranks to one of b it does one
// of the following:
//
// Few bytes: native allgather in every cluster, leaders exchange the blocks of their clusters,
// native broadcast. With few ranks: native gather, the same exchange, native broadcast of
// everything. That takes fewer messages, also for more bytes.
//
//	time 2λ + L + a·m·G; bytes a·m, messages 1
//
// More bytes: allgatherPairs.
//
// Many bytes: the blocks of cluster a, one after the other, are a stream. It is cut into b equal
// slices, and every sender sends the parts of its block directly to the owners of the slices that
// they are in. Native allgathers join the slices, segment by segment, while the next ones cross.
// All ranks of both clusters are leaders, and no block waits for a native collective before it
// crosses.
//
//	time L + a·m·G + λ(s·b); bytes a·m, messages at most (a+b-1) a segment
func allgather(e *env, a Args) Schedule {
	var total int64
	for _, n := range a.RecvCounts {
		total += n
	}
	if total == 0 {
		return nil
	}
	if e.gathersFew(total) {
		return allgatherFew(e, a)
	}
	if total <= int64(e.t.Combine) {
		return allgatherLeaders(e, a)
	}
	if total <= int64(e.t.Few) {
		return allgatherPairs(e, a)
	}
	return allgatherDirect(e, a)
}

// gathersFew reports whether an allgather of total bytes uses allgatherFew. The limit is twice that
// of an allreduce, in which a leader also receives the bytes from every rank of its cluster.
func (e *env) gathersFew(total int64) bool {
	return e.fewBytes(int(total), 2*e.t.Few) && e.l.widest() <= FewRanks
}

// allgatherLocal starts the native allgather of this cluster's own blocks.
func allgatherLocal(e *env, a Args) op {
	counts, displs := e.l.pick(a.RecvCounts, e.l.Cluster), e.l.pick(a.RecvDispls, e.l.Cluster)
	return func() (Request, error) { return e.local.Allgatherv(a.Send, a.Recv, counts, displs) }
}

func allgatherLeaders(e *env, a Args) Schedule {
	s := Schedule{step(allgatherLocal(e, a))}
	// The other clusters' streams, one after the other, are broadcast at once.
	streams, spread := make([]area, e.l.Clusters()), []func(){}
	var all []byte
	if e.l.Clusters() == 2 {
		k := 1 - e.l.Cluster
		b, f := e.landing(k, a.Recv, a.RecvCounts, a.RecvDispls)
		all, streams[k] = b, area{0, int64(len(b))}
		if f != nil {
			spread = append(spread, f)
		}
	} else {
		var at int64
		e.l.others(func(k int) {
			t, _ := extent(e.l.Members(k), a.RecvCounts, a.RecvDispls)
			streams[k] = area{at, t.bytes}
			at += t.bytes
		})
		all = e.Scratch(int(at))
		e.l.others(func(k int) {
			spread = append(spread, func() { e.spread(k, streams[k].of(all), a) })
		})
	}
	if e.local.Rank() == 0 {
		s = append(s, func() ([]Request, error) {
			var b batch
			mine := e.packed(e.l.Cluster, a.Recv, a.RecvCounts, a.RecvDispls)
			e.l.others(func(k int) {
				peer := e.l.Member(k, 0)
				if in := streams[k].of(all); len(in) > 0 {
					b.add(e.Recv(peer, 0, in))
				}
				if len(mine) > 0 {
					b.add(e.Send(peer, 0, mine))
				}
			})
			return b.reqs, b.err
		})
	}
	if len(all) > 0 {
		s = append(s, step(func() (Request, error) { return e.local.Bcast(all, 0) }))
	}
	return append(s, compute(func() error {
		for _, f := range spread {
			f()
		}
		return nil
	}))
}

func allgatherFew(e *env, a Args) Schedule {
	streams, at := make([]area, e.l.Clusters()), int64(0)
	for k := range e.l.Clusters() {
		t, _ := extent(e.l.Members(k), a.RecvCounts, a.RecvDispls)
		streams[k] = area{at, t.bytes}
		at += t.bytes
	}
	all := e.Scratch(int(at))
	own := streams[e.l.Cluster].of(all)
	s := Schedule{step(func() (Request, error) {
		if e.local.Rank() != 0 {
			return e.local.Gatherv(a.Send, nil, nil, nil, 0)
		}
		counts := e.l.pick(a.RecvCounts, e.l.Cluster)
		displs := make([]int64, len(counts))
		for i := range len(counts) - 1 {
			displs[i+1] = displs[i] + counts[i]
		}
		return e.local.Gatherv(a.Send, own, counts, displs, 0)
	})}
	if e.local.Rank() == 0 {
		s = append(s, func() ([]Request, error) {
			var b batch
			e.l.others(func(k int) {
				if in := streams[k].of(all); len(in) > 0 {
					b.add(e.Recv(e.l.Member(k, 0), 0, in))
				}
				if len(own) > 0 {
					b.add(e.Send(e.l.Member(k, 0), 0, own))
				}
			})
			return b.reqs, b.err
		})
	}
	return append(s, step(func() (Request, error) { return e.local.Bcast(all, 0) }), compute(func() error {
		for k := range e.l.Clusters() {
			e.spread(k, streams[k].of(all), a)
		}
		return nil
	}))
}

// spread copies a cluster's blocks, which are one after the other in from, to their places in the
// receive buffer.
func (e *env) spread(cluster int, from []byte, a Args) {
	for _, r := range e.l.Members(cluster) {
		from = from[copy(block(a.Recv, a.RecvCounts[r], a.RecvDispls[r]), from):]
	}
}

// stream is the data of one cluster on its way to another one: the blocks of its ranks one after
// the other, in slices for the receiving ranks, each slice in pieces.
type stream struct {
	starts         []int64 // [sender] offset of its block; the last entry is the end
	slices, pieces int64
}

func (e *env) stream(from, to int, counts []int64) stream {
	starts := make([]int64, 1, e.l.SizeOf(from)+1)
	for i, r := range e.l.Members(from) {
		starts = append(starts, starts[i]+counts[r])
	}
	slices := int64(e.l.SizeOf(to))
	slice := (starts[len(starts)-1] + slices - 1) / slices
	piece := int64(e.t.native().Segment)
	return stream{starts, slices, (slice + piece - 1) / piece}
}

func (s stream) total() int64 { return s.starts[len(s.starts)-1] }

// piece returns piece p of a receiver's slice, as a range of the stream.
func (s stream) piece(receiver, p int) (from, to int64) {
	n := s.slices * s.pieces
	i := int64(receiver)*s.pieces + int64(p)
	return share(s.total(), i, n), share(s.total(), i+1, n)
}

// parts calls f for every part of a range that is in one sender's block.
func (s stream) parts(from, to int64, f func(sender int, from, to int64)) {
	for i := range len(s.starts) - 1 {
		if lo, hi := max(from, s.starts[i]), min(to, s.starts[i+1]); lo < hi {
			f(i, lo, hi)
		}
	}
}

func allgatherDirect(e *env, a Args) Schedule {
	me := e.local.Rank()
	var waiting batch // requests that only the end waits for
	s := Schedule{func() ([]Request, error) {
		e.l.others(func(k int) { sendSlices(e, a, k, &waiting) })
		waiting.add(allgatherLocal(e, a)())
		return nil, nil
	}}

	// A unit of the pipeline is a piece; the pieces of all other clusters' streams take turns.
	type unit struct {
		cluster, piece int
	}
	var units []unit
	streams, place, spread := make([]stream, e.l.Clusters()), make([][]byte, e.l.Clusters()), []func(){}
	e.l.others(func(k int) {
		streams[k] = e.stream(k, e.l.Cluster, a.RecvCounts)
		var f func()
		if place[k], f = e.landing(k, a.Recv, a.RecvCounts, a.RecvDispls); f != nil {
			spread = append(spread, f)
		}
	})
	for p, more := 0, true; more; p++ {
		more = false
		e.l.others(func(k int) {
			if int64(p) < streams[k].pieces {
				units, more = append(units, unit{k, p}), true
			}
		})
	}
	s = append(s, pipeline(len(units),
		stage{func(i int, b *batch) {
			u := units[i]
			from, to := streams[u.cluster].piece(me, u.piece)
			streams[u.cluster].parts(from, to, func(sender int, from, to int64) {
				b.add(e.Recv(e.l.Member(u.cluster, sender), 0, place[u.cluster][from:to]))
			})
		}, e.t.window()},
		stage{func(i int, b *batch) {
			u := units[i]
			counts, displs := make([]int64, e.local.Size()), make([]int64, e.local.Size())
			for j := range counts {
				from, to := streams[u.cluster].piece(j, u.piece)
				counts[j], displs[j] = to-from, from
			}
			own := block(place[u.cluster], counts[me], displs[me])
			b.add(e.local.Allgatherv(own, place[u.cluster], counts, displs))
		}, e.t.LocalDepth})...)
	return append(s, func() ([]Request, error) { return waiting.reqs, waiting.err }, compute(func() error {
		for _, f := range spread {
			f()
		}
		return nil
	}))
}

// sendSlices sends this process's block to the owners of the slices of its stream to a cluster.
func sendSlices(e *env, a Args, to int, b *batch) {
	st, me := e.stream(e.l.Cluster, to, a.RecvCounts), e.local.Rank()
	start, end := st.starts[me], st.starts[me+1]
	if start == end {
		return
	}
	for p := range int(st.pieces) {
		for j := range e.l.SizeOf(to) {
			from, upto := st.piece(j, p)
			if from, upto = max(from, start), min(upto, end); from < upto {
				b.add(e.Send(e.l.Member(to, j), 0, a.Send[from-start:upto-start]))
			}
		}
	}
}
