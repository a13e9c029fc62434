package collectives

// scanChain returns the schedule of a scan of many bytes over two clusters. Every rank passes the
// prefix of a segment that ends with its own operand to the next rank, also from the first cluster
// to the second. Segments follow each other. Every link carries m bytes.
//
//	time (a+b)·λ(s) + L + mG; bytes m from the first cluster to the second; messages 1 a segment
func scanChain(e *env, a Args) Schedule {
	x := &scanLine{env: e, a: a, seg: cut(a.Count, e.extent, e.t.finer(a.Count*e.extent, 2*FewRanks))}
	n, depth := x.seg.size*e.extent, e.t.ahead()
	steps := e.local.Size() - 1 // from each rank to the next one
	under := slots(x.seg.n, (steps+1)*depth, e.t.window())
	x.in = e.newRing(n, under)
	if a.Op == OpExscan {
		x.out = e.newRing(n, under)
	}
	s := []stage{{x.begin, depth}}
	for k := range steps {
		s = append(s, stage{func(i int, b *batch) { x.step(k, i, b) }, depth})
	}
	return pipeline(x.seg.n, append(s, stage{x.end, e.t.window()})...)
}

type scanLine struct {
	*env
	a   Args
	seg segments
	in  ring // prefixes from the previous rank
	out ring // exscan: prefixes for the next rank
}

// starts reports whether this process is the first rank.
func (x *scanLine) starts() bool { return x.l.Rank == 0 }

func (x *scanLine) prefix(i int) []byte { return x.in.at(i, x.seg.count(i)*x.extent) }

// begin receives the prefix of the first cluster at the first rank of the second; end sends it.
func (x *scanLine) begin(i int, b *batch) {
	if x.l.Cluster == 1 && x.local.Rank() == 0 {
		ranks := x.l.Members(0)
		b.add(x.Recv(ranks[len(ranks)-1], 0, x.prefix(i)))
	}
}

// step passes the prefix of local rank k to the next one.
func (x *scanLine) step(k, i int, b *batch) {
	n, m := int64(x.seg.count(i)*x.extent), newMoves(x.local.Size())
	var send, recv []byte
	switch x.local.Rank() {
	case k:
		send = x.result(i, b)
		m.send(k+1, n)
	case k + 1:
		recv = x.prefix(i)
		m.receive(k, n)
	}
	b.add(m.start(x.local, send, recv))
}

// result computes this process's result of a segment, and returns the prefix for the next rank.
func (x *scanLine) result(i int, b *batch) []byte {
	send, recv, n := x.seg.of(x.a.Send, i, x.extent), x.seg.of(x.a.Recv, i, x.extent), x.seg.count(i)
	next := recv
	if x.a.Op == OpExscan {
		next = x.out.at(i, len(send))
	}
	if !same(next, send) {
		copy(next, send)
	}
	if !x.starts() {
		b.add(nil, x.Reduce(x.prefix(i), next, n))
		if x.a.Op == OpExscan {
			copy(recv, x.prefix(i))
		}
	}
	return next
}

func (x *scanLine) end(i int, b *batch) {
	if x.local.Rank() != x.local.Size()-1 {
		return
	}
	next := x.result(i, b)
	if x.l.Cluster == 0 {
		b.add(x.Send(x.l.Member(1, 0), 0, next))
	}
}
