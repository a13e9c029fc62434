package collectives

// scatter returns the schedule of a scatter, the reverse of gather. Inside the root's cluster it is
// native. Another cluster gets one message with all its blocks to the leader and a native scatter,
// or every block goes directly to its owner.
//
//	combined  time L + b·m·G + λ; bytes b·m, messages 1
//	direct    time L + b·m·G;     bytes b·m, messages b·⌈m/s⌉
//
// Blocks that go directly are sent in order of rank, so that not all ranks stay to the end. They
// are sent in segments, which the engine keeps so that the root need not stay, as long as these
// have at most Tuning.Window bytes for all ranks.
func scatter(e *env, a Args) Schedule {
	home, rootLocal := e.l.ClusterOf(a.Root), e.l.LocalOf(a.Root)
	if e.l.Rank == a.Root {
		return scatterAtRoot(e, a)
	}
	if e.l.Cluster == home {
		return Schedule{step(func() (Request, error) { return e.local.Scatterv(nil, nil, nil, a.Recv, rootLocal) })}
	}
	if !e.combined(a.Uniform, len(a.Recv), e.l.Cluster) {
		var ops []op
		e.pieces(a.Recv, e.keptForAll(), func(b []byte) {
			ops = append(ops, func() (Request, error) { return e.Recv(a.Root, 0, b) })
		})
		return Schedule{round(ops...)}
	}
	if e.local.Rank() != 0 {
		return Schedule{step(func() (Request, error) { return e.local.Scatterv(nil, nil, nil, a.Recv, 0) })}
	}
	counts, displs, all := e.equal(len(a.Recv))
	return Schedule{
		step(func() (Request, error) { return e.Recv(a.Root, 0, all) }),
		step(func() (Request, error) { return e.local.Scatterv(all, counts, displs, a.Recv, 0) }),
	}
}

// keptForAll returns the largest size, in bytes, of a rank's block that the root sends in segments,
// which the engine keeps.
func (e *env) keptForAll() int { return e.t.Window / e.l.Size }

func scatterAtRoot(e *env, a Args) Schedule {
	var first, long []op
	e.l.others(func(k int) {
		m := int(a.SendCounts[e.l.Member(k, 0)])
		if e.combined(a.Uniform, m, k) {
			b := e.packed(k, a.Send, a.SendCounts, a.SendDispls)
			first = append(first, func() (Request, error) { return e.Send(e.l.Member(k, 0), 0, b) })
			return
		}
		for _, r := range e.l.Members(k) {
			list := &first
			if a.SendCounts[r] > int64(e.keptForAll()) {
				list = &long
			}
			e.pieces(block(a.Send, a.SendCounts[r], a.SendDispls[r]), e.keptForAll(), func(b []byte) {
				*list = append(*list, func() (Request, error) { return e.Send(r, 0, b) })
			})
		}
	})
	counts, displs := e.l.pick(a.SendCounts, e.l.Cluster), e.l.pick(a.SendDispls, e.l.Cluster)
	first = append(first, func() (Request, error) { return e.local.Scatterv(a.Send, counts, displs, a.Recv, e.local.Rank()) })
	begin, end := begun(first)
	return append(append(Schedule{begin}, inTurn(long)...), end)
}
