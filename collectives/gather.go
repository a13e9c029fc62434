package collectives

// gather returns the schedule of a gather. Inside the root's cluster it is native. From another
// cluster, if all ranks know that its blocks have few bytes together, there is a native gather to
// its leader and one message to the root. Otherwise every rank sends its block to the root.
//
//	combined  time λ + L + b·m·G; bytes b·m, messages 1
//	direct    time L + b·m·G;     bytes b·m, messages b·⌈m/s⌉
//
// A block of up to Tuning.kept bytes is sent in segments, which need no go-ahead and which the
// engine keeps. So a rank leaves as soon as the engine has them, like a sender whose socket takes a
// whole message. Longer blocks are received one rank after the other, so that not all ranks stay to
// the end.
//
//	long      rank i of those leaves after i·m·G
func gather(e *env, a Args) Schedule {
	home, rootLocal := e.l.ClusterOf(a.Root), e.l.LocalOf(a.Root)
	if e.l.Rank == a.Root {
		return gatherAtRoot(e, a)
	}
	if e.l.Cluster == home {
		return Schedule{step(func() (Request, error) { return e.local.Gatherv(a.Send, nil, nil, nil, rootLocal) })}
	}
	if !e.combined(a.Uniform, len(a.Send), e.l.Cluster) {
		var ops []op
		e.pieces(a.Send, e.t.kept(), func(b []byte) {
			ops = append(ops, func() (Request, error) { return e.Send(a.Root, 0, b) })
		})
		return Schedule{round(ops...)}
	}
	if e.local.Rank() != 0 {
		return Schedule{step(func() (Request, error) { return e.local.Gatherv(a.Send, nil, nil, nil, 0) })}
	}
	counts, displs, all := e.equal(len(a.Send))
	return Schedule{
		step(func() (Request, error) { return e.local.Gatherv(a.Send, all, counts, displs, 0) }),
		step(func() (Request, error) { return e.Send(a.Root, 0, all) }),
	}
}

// pieces calls f for the parts of a block of a gather or scatter that cross as messages of their
// own: segments if the engine may keep them, and otherwise larger ones.
func (e *env) pieces(b []byte, keeps int, f func(piece []byte)) {
	most := e.t.Segment
	if len(b) > keeps {
		most = max(most, e.t.kept()/2)
	}
	for len(b) > 0 {
		n := min(len(b), most)
		f(b[:n])
		b = b[n:]
	}
}

// begun returns a round that starts operations, and the last round of a schedule, which waits for
// them.
func begun(ops []op) (begin, end Round) {
	var waiting batch
	begin = func() ([]Request, error) {
		for _, o := range ops {
			waiting.add(o())
		}
		return nil, nil
	}
	return begin, func() ([]Request, error) { return waiting.reqs, waiting.err }
}

// inTurn returns a schedule that runs operations one after the other, a few at a time.
func inTurn(ops []op) Schedule {
	return pipeline(len(ops), stage{func(i int, b *batch) { b.add(ops[i]()) }, 3})
}

func gatherAtRoot(e *env, a Args) Schedule {
	counts, displs := e.l.pick(a.RecvCounts, e.l.Cluster), e.l.pick(a.RecvDispls, e.l.Cluster)
	first := []op{func() (Request, error) { return e.local.Gatherv(a.Send, a.Recv, counts, displs, e.local.Rank()) }}
	var long []op // operations to run one after the other
	var after []func()
	e.l.others(func(k int) {
		m := int(a.RecvCounts[e.l.Member(k, 0)])
		if !e.combined(a.Uniform, m, k) {
			for _, r := range e.l.Members(k) {
				list := &first
				if a.RecvCounts[r] > int64(e.t.kept()) {
					list = &long
				}
				e.pieces(block(a.Recv, a.RecvCounts[r], a.RecvDispls[r]), e.t.kept(), func(b []byte) {
					*list = append(*list, func() (Request, error) { return e.Recv(r, 0, b) })
				})
			}
			return
		}
		together, spread := e.landing(k, a.Recv, a.RecvCounts, a.RecvDispls)
		first = append(first, func() (Request, error) { return e.Recv(e.l.Member(k, 0), 0, together) })
		if spread != nil {
			after = append(after, spread)
		}
	})
	begin, end := begun(first)
	s := append(append(Schedule{begin}, inTurn(long)...), end)
	return append(s, compute(func() error {
		for _, f := range after {
			f()
		}
		return nil
	}))
}

// combined reports whether the blocks of m bytes of a cluster cross as one message.
func (e *env) combined(uniform bool, m, cluster int) bool {
	n := e.l.SizeOf(cluster)
	return uniform && m > 0 && n > 1 && m*n <= e.t.Combine
}

// equal returns counts, displacements and memory for a block of m bytes of every rank of this
// cluster.
func (e *env) equal(m int) (counts, displs []int64, all []byte) {
	n := len(e.l.mine())
	return equalBlocks(n, m, e.Scratch(n*m))
}

// equalBlocks is equal for n ranks, in memory that may be larger.
func equalBlocks(n, m int, memory []byte) (counts, displs []int64, all []byte) {
	counts, displs = make([]int64, n), make([]int64, n)
	for i := range n {
		counts[i], displs[i] = int64(m), int64(i*m)
	}
	return counts, displs, memory[:n*m]
}

// gatherSmall gathers blocks of equal size at local rank 0, one after the other.
func (e *env) gatherSmall(own, all []byte) op {
	return func() (Request, error) {
		if e.local.Rank() != 0 {
			return e.local.Gatherv(own, nil, nil, nil, 0)
		}
		counts, displs := make([]int64, e.local.Size()), make([]int64, e.local.Size())
		for i := range counts {
			counts[i], displs[i] = int64(len(own)), int64(i*len(own))
		}
		return e.local.Gatherv(own, all, counts, displs, 0)
	}
}

// landing returns a place for the blocks of a cluster, one after the other in order of rank: in buf
// itself if their places there are so, and otherwise in scratch memory, with a function that copies
// them to their places.
func (e *env) landing(cluster int, buf []byte, counts, displs []int64) (together []byte, spread func()) {
	total, dense := extent(e.l.Members(cluster), counts, displs)
	if dense {
		return total.of(buf), nil
	}
	together = e.Scratch(int(total.bytes))
	return together, func() {
		rest := together
		for _, r := range e.l.Members(cluster) {
			n := copy(block(buf, counts[r], displs[r]), rest)
			rest = rest[n:]
		}
	}
}

// packed returns the blocks of a cluster's ranks one after the other: buf itself if they are so
// there, and otherwise a copy.
func (e *env) packed(cluster int, buf []byte, counts, displs []int64) []byte {
	total, dense := extent(e.l.Members(cluster), counts, displs)
	if dense {
		return total.of(buf)
	}
	b := e.Scratch(int(total.bytes))
	rest := b
	for _, r := range e.l.Members(cluster) {
		rest = rest[copy(rest, block(buf, counts[r], displs[r])):]
	}
	return b
}

// area is a range of a buffer.
type area struct{ at, bytes int64 }

func (a area) of(b []byte) []byte { return block(b, a.bytes, a.at) }

// extent returns the range of all blocks of the ranks, and whether they are one after the other.
func extent(ranks []int, counts, displs []int64) (total area, dense bool) {
	dense = true
	for _, r := range ranks {
		switch {
		case counts[r] == 0:
		case total.bytes == 0:
			total = area{displs[r], counts[r]}
		default:
			dense = dense && displs[r] == total.at+total.bytes
			total.bytes += counts[r]
		}
	}
	return total, dense
}
