package collectives

// scan returns the schedule of a scan or exscan of m bytes if every cluster's ranks are contiguous.
//
// Few bytes, few ranks: scanfew.go. Many bytes, over two clusters of few ranks: scanchain.go.
// Otherwise there is a native scan of every segment. After it the last rank of a cluster has the
// cluster's total, and sends it to a leader of each later cluster. The leader combines the totals
// of the clusters before its own, in order, and broadcasts the result natively. Every rank combines
// it with its own prefix.
//
//	time λ(s) + L + mG + λ(s); bytes m from each cluster to each later one
func scan(e *env, a Args) Schedule {
	n := a.Count * e.extent
	switch {
	case n == 0:
		return nil
	case n <= e.t.Slice*e.l.widest() && e.l.widest() <= FewRanks:
		return scanFew(e, a)
	case e.l.Clusters() == 2 && e.l.widest() <= FewRanks:
		return scanChain(e, a)
	}
	return scanLeaders(e, a)
}

func scanLeaders(e *env, a Args) Schedule {
	x := newScanner(e, a)
	depth := e.t.LocalDepth
	s := []stage{{x.prefix, depth}, {x.exchange, e.t.window()}}
	if e.l.Cluster > 0 {
		s = append(s, stage{x.spread, depth}, stage{x.combine, 1})
	}
	return pipeline(x.seg.n, s...)
}

type scanner struct {
	*env
	a         Args
	seg       segments
	inclusive bool
	last      bool // this process has its cluster's total
	totals    ring // totals of this cluster, at exscan's last rank
	// before has the totals of the clusters before this one. In spread the last of them becomes the
	// prefix.
	before parts
}

func newScanner(e *env, a Args) *scanner {
	x := &scanner{env: e, a: a, seg: cut(a.Count, e.extent, e.t), inclusive: a.Op == OpScan}
	x.last = e.local.Rank() == e.local.Size()-1
	under := slots(x.seg.n, e.t.LocalDepth, e.t.window(), e.t.LocalDepth, 1)
	if x.last && !x.inclusive {
		x.totals = e.newRing(x.seg.size*e.extent, under)
	}
	if k := e.l.Cluster; k > 0 {
		x.before = parts{x.seg, e.extent, e.newRing(k*x.seg.size*e.extent, under), nil, k}
	}
	return x
}

// leader returns the local rank in a cluster that collects the totals for segment i.
func (x *scanner) leader(cluster, i int) int { return x.l.leader(cluster, i, x.t.Leaders, 0) }

func (x *scanner) segment(b []byte, i int) []byte { return x.seg.of(b, i, x.extent) }

func (x *scanner) prefix(i int, b *batch) {
	send, recv, n := x.segment(x.a.Send, i), x.segment(x.a.Recv, i), x.seg.count(i)
	if x.inclusive {
		b.add(x.local.Scan(send, recv, n))
		return
	}
	if x.last { // Recv may be Send: keep the operand for the total
		copy(x.totals.at(i, len(send)), send)
	}
	b.add(x.local.Exscan(send, recv, n))
}

// total returns this cluster's total of segment i. Only its last rank has it.
func (x *scanner) total(i int, b *batch) []byte {
	recv := x.segment(x.a.Recv, i)
	if x.inclusive {
		return recv
	}
	t := x.totals.at(i, len(recv))
	if x.local.Size() > 1 {
		b.add(nil, x.Reduce(recv, t, x.seg.count(i)))
	}
	return t
}

func (x *scanner) exchange(i int, b *batch) {
	mine := x.l.Cluster
	if x.leader(mine, i) == x.local.Rank() && mine > 0 {
		for k, part := range x.before.at(i) {
			ranks := x.l.Members(k)
			b.add(x.Recv(ranks[len(ranks)-1], 0, part))
		}
	}
	if x.last && mine < x.l.Clusters()-1 {
		t := x.total(i, b)
		for k := mine + 1; k < x.l.Clusters(); k++ {
			b.add(x.Send(x.l.Member(k, x.leader(k, i)), 0, t))
		}
	}
}

func (x *scanner) spread(i int, b *batch) {
	p := x.before.at(i)
	leader := x.leader(x.l.Cluster, i)
	if leader == x.local.Rank() {
		b.add(nil, x.fold(p, x.seg.count(i)))
	}
	b.add(x.local.Bcast(p[len(p)-1], leader))
}

func (x *scanner) combine(i int, b *batch) {
	p, recv := x.before.at(i), x.segment(x.a.Recv, i)
	if !x.inclusive && x.local.Rank() == 0 {
		copy(recv, p[len(p)-1])
		return
	}
	b.add(nil, x.Reduce(p[len(p)-1], recv, x.seg.count(i)))
}
