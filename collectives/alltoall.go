package collectives

// alltoall returns the schedule of an alltoall between clusters of a and b ranks. Inside a cluster
// it is native.
//
// Small blocks, all of the same count: native gather to the leader, which sorts them by receiver;
// one message to each other leader; native scatter. In clusters of few ranks the blocks inside the
// cluster take the same path.
//
//	time 2λ + L + a·b·m·G; bytes a·b·m, messages 1
//
// If a leader would have more than Tuning.Window bytes in one of its buffers, this is done in p
// pieces: p times λ, L and messages.
//
// Larger blocks, and small ones of any counts, in clusters of few ranks: alltoallPairs.
//
// Otherwise every pair of ranks exchanges its blocks directly. Empty blocks are not sent; those of
// up to a segment are sent in chunks of p bytes. Ranks begin with different peers.
//
//	time L + a·b·m·G; bytes the blocks', messages a·b·⌈m/p⌉
func alltoall(e *env, a Args) Schedule {
	m, few := a.SendCounts[0], e.l.Size > 2 && e.l.widest() <= FewRanks
	switch {
	case a.Uniform && m > 0 && m <= int64(e.t.CombineBlock) && e.l.Size > 2:
		return alltoallCombined(e, a, int(m))
	case few && (!a.Uniform || m > 0 && m <= int64(e.t.Pair)):
		return alltoallPairs(e, a)
	}
	return alltoallDirect(e, a)
}

// throughLeader reports whether all blocks of an alltoall go through the leader of this cluster, at
// once.
func (e *env) throughLeader(a Args) bool {
	m := a.SendCounts[0]
	if !a.Uniform || m == 0 || m > int64(e.t.CombineBlock) || e.l.Size <= 2 || !e.l.few() {
		return false
	}
	_, pieces := e.l.pieces(int(m), e.t.Window)
	return pieces == 1
}

func alltoallDirect(e *env, a Args) Schedule {
	ops := []op{}
	me := e.local.Rank()
	e.l.others(func(k int) {
		n := e.l.SizeOf(k)
		for i := range n {
			r := e.l.Member(k, (me+i)%n)
			e.chunks(block(a.Recv, a.RecvCounts[r], a.RecvDispls[r]), func(b []byte) {
				ops = append(ops, func() (Request, error) { return e.Recv(r, 0, b) })
			})
		}
		for i := range n {
			r := e.l.Member(k, (me+i)%n)
			e.chunks(block(a.Send, a.SendCounts[r], a.SendDispls[r]), func(b []byte) {
				ops = append(ops, func() (Request, error) { return e.Send(r, 0, b) })
			})
		}
	})
	return Schedule{round(append(ops, alltoallLocal(e, a))...)}
}

// chunks calls f for the parts of a block that cross as messages of their own. The engine itself
// cuts a block of more than a segment, after a handshake.
func (e *env) chunks(b []byte, f func(chunk []byte)) {
	most := e.t.Chunk
	if len(b) > e.t.Segment {
		most = len(b)
	}
	for len(b) > 0 {
		n := min(len(b), most)
		f(b[:n])
		b = b[n:]
	}
}

func alltoallLocal(e *env, a Args) op {
	k := e.l.Cluster
	scounts, sdispls := e.l.pick(a.SendCounts, k), e.l.pick(a.SendDispls, k)
	rcounts, rdispls := e.l.pick(a.RecvCounts, k), e.l.pick(a.RecvDispls, k)
	return func() (Request, error) {
		return e.local.Alltoallv(a.Send, scounts, sdispls, a.Recv, rcounts, rdispls)
	}
}

// combined is the state that the rounds of an alltoall through the leader share. With very many
// ranks there are several pieces, each with some receivers of every cluster, in memory that does
// not grow.
type combined struct {
	e       *env
	a       Args
	m       int               // bytes of a block
	width   int               // largest number of receivers of a cluster in a piece
	through func(f func(int)) // calls f for the clusters whose blocks go through the leader
	blocks  int               // number of blocks that a rank gets in this way

	out, in                              []byte // buffers of each rank
	gathered, byPeer, arrived, scattered []byte // buffers of the leader
}

func alltoallCombined(e *env, a Args, m int) Schedule {
	n := e.local.Size()
	// The leader passes on the blocks for other clusters. With few ranks it passes on all blocks,
	// in place of a native alltoall.
	width, pieces := e.l.pieces(m, e.t.Window)
	c := &combined{e: e, a: a, m: m, width: width, through: e.l.others, blocks: e.l.Size - n}
	direct := []op{alltoallLocal(e, a)}
	if e.throughLeader(a) {
		c.through, c.blocks, direct = e.l.clusters, e.l.Size, nil
	}
	most := c.to(0) // no piece has more
	c.out, c.in = e.Scratch(most*m), e.Scratch(c.blocks*m)
	if e.local.Rank() == 0 {
		mine := len(c.part(e.l.Cluster, 0))
		c.gathered, c.byPeer = e.Scratch(n*most*m), e.Scratch(n*most*m)
		c.arrived, c.scattered = e.Scratch(mine*c.blocks*m), e.Scratch(mine*c.blocks*m)
	}
	var s Schedule
	for i := range pieces {
		s = append(s, c.piece(i, direct)...)
		direct = nil // started with the first piece
	}
	return s
}

// pieces cuts an alltoall of blocks of m bytes, so that the buffers of each leader have at most
// most bytes (or one receiver). A piece has width receivers in each cluster, and there are n
// pieces.
func (l *Layout) pieces(m, most int) (width, n int) {
	worst := 1 // bytes for one receiver in each cluster
	for _, size := range l.Sizes {
		worst = max(worst, size*(l.Clusters()-1)*m, (l.Size-size)*m)
	}
	width = max(1, most/worst)
	return width, (l.widest() + width - 1) / width
}

// part returns the receivers of a cluster in a piece.
func (c *combined) part(cluster, piece int) []int {
	ranks := c.e.l.Members(cluster)
	from := min(piece*c.width, len(ranks))
	return ranks[from:min(from+c.width, len(ranks))]
}

// to returns the number of blocks that each rank has for a piece.
func (c *combined) to(piece int) (n int) {
	c.through(func(k int) { n += len(c.part(k, piece)) })
	return n
}

// piece returns the rounds of one piece. direct starts beside the first round.
func (c *combined) piece(i int, direct []op) Schedule {
	e, a, m := c.e, c.a, c.m
	n := e.local.Size()
	out, in := c.out[:c.to(i)*m], c.in
	mine, first := c.part(e.l.Cluster, i), min(i*c.width, n)
	if me := e.local.Rank(); me < first || me >= first+len(mine) {
		in = nil
	}
	pack := func() ([]Request, error) { // this process's blocks, by cluster, then by rank
		rest := out
		c.through(func(k int) {
			for _, r := range c.part(k, i) {
				rest = rest[copy(rest, block(a.Send, a.SendCounts[r], a.SendDispls[r])):]
			}
		})
		return nil, nil
	}
	unpack := func() ([]Request, error) {
		rest := in
		c.through(func(k int) {
			for _, r := range e.l.Members(k) {
				if in != nil {
					rest = rest[copy(block(a.Recv, a.RecvCounts[r], a.RecvDispls[r]), rest):]
				}
			}
		})
		return nil, nil
	}
	if e.local.Rank() != 0 {
		return Schedule{pack,
			round(append(direct, func() (Request, error) { return e.local.Gatherv(out, nil, nil, nil, 0) })...),
			step(func() (Request, error) { return e.local.Scatterv(nil, nil, nil, in, 0) }),
			unpack}
	}
	counts, displs, gathered := equalBlocks(n, len(out), c.gathered)
	toEach, places := make([]int64, n), make([]int64, n)
	for k := range mine {
		toEach[first+k], places[first+k] = int64(c.blocks*m), int64(k*c.blocks*m)
	}
	return Schedule{pack,
		round(append(direct, func() (Request, error) { return e.local.Gatherv(out, gathered, counts, displs, 0) })...),
		func() ([]Request, error) { return c.exchange(i, len(out)) },
		func() ([]Request, error) { c.sort(len(mine)); return nil, nil },
		step(func() (Request, error) {
			return e.local.Scatterv(c.scattered[:len(mine)*c.blocks*m], toEach, places, in, 0)
		}),
		unpack}
}

// exchange sends each other leader the blocks for the piece's receivers of its cluster, by
// receiver, and starts to receive the same from it. total is the number of bytes gathered from each
// rank. byPeer and arrived have an area for each cluster.
func (c *combined) exchange(piece, total int) ([]Request, error) {
	var b batch
	e, m, n := c.e, c.m, c.e.local.Size()
	mine := len(c.part(e.l.Cluster, piece))
	// before is the number of bytes for the clusters before k, from one rank here.
	before, arrived := 0, c.arrived
	c.through(func(k int) {
		kn := len(c.part(k, piece))
		message := c.byPeer[n*before:][:n*kn*m]
		for src := range n {
			for dst := range kn {
				copy(message[(dst*n+src)*m:][:m], c.gathered[src*total+before+dst*m:])
			}
		}
		from := arrived[:e.l.SizeOf(k)*mine*m]
		arrived = arrived[len(from):]
		if k == e.l.Cluster {
			copy(from, message)
		} else {
			if len(from) > 0 {
				b.add(e.Recv(e.l.Member(k, 0), 0, from))
			}
			if len(message) > 0 {
				b.add(e.Send(e.l.Member(k, 0), 0, message))
			}
		}
		before += kn * m
	})
	return b.reqs, b.err
}

// sort sorts the blocks that have arrived by receiver, then by sender.
func (c *combined) sort(receivers int) {
	before, arrived := 0, c.arrived
	c.through(func(k int) {
		each := c.e.l.SizeOf(k) * c.m // bytes from cluster k for one rank here
		for dst := range receivers {
			copy(c.scattered[dst*c.blocks*c.m+before:][:each], arrived[dst*each:])
		}
		arrived = arrived[receivers*each:]
		before += each
	})
}
