package collectives

// alltoall, between clusters of a and b ranks; inside a cluster native.
//
// small blocks, all of the same count: native gather to the leader, which sorts by receiver; one
// message to each other leader; native scatter. Of few bytes in clusters of few ranks the blocks
// inside the cluster go the same way.
//
//	time 2λ + L + a·b·m·G; bytes a·b·m, messages 1
//
// otherwise every pair of ranks by itself, blocks without bytes not at all, those of up to a
// segment in chunks of p bytes. Ranks begin with different peers.
//
//	time L + a·b·m·G; bytes the blocks', messages a·b·⌈m/p⌉
func alltoall(e *env, a Args) Schedule {
	if a.Uniform && a.SendCounts[0] > 0 && a.SendCounts[0] <= int64(e.t.CombineBlock) && e.l.Size > 2 {
		return alltoallCombined(e, a, int(a.SendCounts[0]))
	}
	ops := []op{}
	me := e.local.Rank()
	e.l.others(func(k int) {
		n := len(e.l.Members[k])
		for i := range n {
			r := e.l.Members[k][(me+i)%n]
			e.chunks(block(a.Recv, a.RecvCounts[r], a.RecvDispls[r]), func(b []byte) {
				ops = append(ops, func() (Request, error) { return e.Recv(r, 0, b) })
			})
		}
		for i := range n {
			r := e.l.Members[k][(me+i)%n]
			e.chunks(block(a.Send, a.SendCounts[r], a.SendDispls[r]), func(b []byte) {
				ops = append(ops, func() (Request, error) { return e.Send(r, 0, b) })
			})
		}
	})
	return Schedule{round(append(ops, alltoallLocal(e, a))...)}
}

// chunks calls f for the parts of a block that cross as messages of their own. One of more than a
// segment is cut by the engine, after a handshake.
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

func alltoallCombined(e *env, a Args, m int) Schedule {
	n := e.local.Size()
	// What goes through the leader: what is for other clusters; few bytes among few ranks all, in
	// place of a native alltoall.
	through, total, direct := e.l.others, (e.l.Size-n)*m, []op{alltoallLocal(e, a)}
	if e.l.few() && e.l.Size*m <= e.t.Slice {
		through, total, direct = e.l.clusters, e.l.Size*m, nil
	}
	out, in := e.Scratch(total), e.Scratch(total)
	first := func() ([]Request, error) { // my blocks, by cluster, then by rank
		rest := out
		through(func(k int) {
			for _, r := range e.l.Members[k] {
				rest = rest[copy(rest, block(a.Send, a.SendCounts[r], a.SendDispls[r])):]
			}
		})
		return nil, nil
	}
	last := func() ([]Request, error) {
		rest := in
		through(func(k int) {
			for _, r := range e.l.Members[k] {
				rest = rest[copy(block(a.Recv, a.RecvCounts[r], a.RecvDispls[r]), rest):]
			}
		})
		return nil, nil
	}
	if e.local.Rank() != 0 {
		return Schedule{first,
			round(append(direct, func() (Request, error) { return e.local.Gatherv(out, nil, nil, nil, 0) })...),
			step(func() (Request, error) { return e.local.Scatterv(nil, nil, nil, in, 0) }),
			last}
	}

	counts, displs, gathered := e.equal(total)
	byPeer, arrived, scattered := e.Scratch(n*total), e.Scratch(n*total), e.Scratch(n*total)
	// For peers in cluster k with kn ranks: byPeer and arrived have one area of n·kn blocks per
	// cluster.
	exchange := func() ([]Request, error) {
		var b batch
		before := 0 // bytes for the clusters before k, of one rank here
		through(func(k int) {
			kn := len(e.l.Members[k])
			message := byPeer[n*before:][:n*kn*m]
			for src := range n {
				for dst := range kn {
					copy(message[(dst*n+src)*m:][:m], gathered[src*total+before+dst*m:])
				}
			}
			from := arrived[n*before:][:n*kn*m]
			if k == e.l.Cluster {
				copy(from, message)
			} else {
				b.add(e.Recv(e.l.Members[k][0], 0, from))
				b.add(e.Send(e.l.Members[k][0], 0, message))
			}
			before += kn * m
		})
		return b.reqs, b.err
	}
	sorted := func() ([]Request, error) {
		before := 0
		through(func(k int) {
			each := len(e.l.Members[k]) * m // bytes from cluster k for one rank here
			for dst := range n {
				copy(scattered[dst*total+before:][:each], arrived[n*before+dst*each:])
			}
			before += each
		})
		return nil, nil
	}
	return Schedule{first,
		round(append(direct, func() (Request, error) { return e.local.Gatherv(out, gathered, counts, displs, 0) })...),
		exchange, sorted,
		step(func() (Request, error) { return e.local.Scatterv(scattered, counts, displs, in, 0) }),
		last}
}
