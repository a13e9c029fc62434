package collectives

// scatter: gather with the arrows turned round. Inside the root's cluster native; to another one a
// message with all its blocks to the leader and a native scatter there, or every block by itself to
// its owner.
//
//	combined  time L + b·m·G + λ; bytes b·m, messages 1
//	direct    time L + b·m·G;     bytes b·m, messages b
func scatter(e *env, a Args) Schedule {
	home, rootLocal := e.l.ClusterOf(a.Root), e.l.LocalOf(a.Root)
	if e.l.Rank == a.Root {
		return scatterAtRoot(e, a)
	}
	if e.l.Cluster == home {
		return Schedule{step(func() (Request, error) { return e.local.Scatterv(nil, nil, nil, a.Recv, rootLocal) })}
	}
	if !e.combined(a.Uniform, len(a.Recv), e.l.Cluster) {
		if len(a.Recv) == 0 {
			return nil
		}
		return Schedule{step(func() (Request, error) { return e.Recv(a.Root, 0, a.Recv) })}
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

func scatterAtRoot(e *env, a Args) Schedule {
	var ops []op
	e.l.others(func(k int) {
		m := int(a.SendCounts[e.l.Member(k, 0)])
		if e.combined(a.Uniform, m, k) {
			b := e.packed(k, a.Send, a.SendCounts, a.SendDispls)
			ops = append(ops, func() (Request, error) { return e.Send(e.l.Member(k, 0), 0, b) })
			return
		}
		for _, r := range e.l.Members(k) {
			if b := block(a.Send, a.SendCounts[r], a.SendDispls[r]); len(b) > 0 {
				ops = append(ops, func() (Request, error) { return e.Send(r, 0, b) })
			}
		}
	})
	counts, displs := e.l.pick(a.SendCounts, e.l.Cluster), e.l.pick(a.SendDispls, e.l.Cluster)
	ops = append(ops, func() (Request, error) { return e.local.Scatterv(a.Send, counts, displs, a.Recv, e.local.Rank()) })
	return Schedule{round(ops...)}
}
