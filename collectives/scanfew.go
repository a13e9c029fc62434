package collectives

// scanFew returns the schedule of a scan of few bytes. Every rank gives its operand to all later
// ones of its cluster, which combine the operands in order. So the last one has the cluster's
// total, and sends it to the first rank of each later cluster. That rank combines the totals of the
// clusters before and gives the others the result.
//
//	time 2λ + L, in the first cluster λ; bytes m from each cluster to each later one, messages 1
func scanFew(e *env, a Args) Schedule {
	n, me, mine := a.Count*e.extent, e.local.Rank(), e.l.Cluster
	last := me == e.local.Size()-1
	send, recv := a.Send[:n], a.Recv[:n]
	operands := e.Scratch((me + 1) * n) // operands of the ranks up to this one
	var before, crossing, sent batch
	var totals [][]byte // totals of the clusters before this one; the last becomes the prefix
	if mine > 0 {
		totals = cutEqually(e.Scratch(mine*n), mine)
	}
	s := Schedule{
		func() ([]Request, error) {
			if me == 0 {
				for k := range totals {
					ranks := e.l.Members(k)
					crossing.add(e.Recv(ranks[len(ranks)-1], 0, totals[k]))
				}
			}
			m := newMoves(e.local.Size())
			for r := range e.local.Size() {
				switch {
				case r < me:
					m.receive(r, int64(n))
				case r > me:
					m.sendSame(r, int64(n))
				}
			}
			before.add(m.start(e.local, send, operands))
			return before.reqs, before.err
		},
		func() ([]Request, error) {
			list := cutEqually(operands, me+1)
			copy(list[me], send)
			if last && mine < e.l.Clusters()-1 {
				total := e.Scratch(n)
				copy(total, send)
				sent.add(nil, e.fold(append(list[:me:me], total), a.Count))
				for k := mine + 1; k < e.l.Clusters(); k++ {
					sent.add(e.Send(e.l.Member(k, 0), 0, total))
				}
			}
			if a.Op == OpExscan {
				list = list[:me]
			}
			if len(list) > 0 {
				sent.add(nil, e.fold(list, a.Count))
				copy(recv, list[len(list)-1])
			}
			return append(crossing.reqs, sent.reqs...), sent.err
		},
	}
	if mine == 0 {
		return s
	}
	prefix := totals[mine-1]
	return append(s,
		func() ([]Request, error) {
			b := batch{err: crossing.err}
			if me == 0 {
				b.add(nil, e.fold(totals, a.Count))
			}
			m := newMoves(e.local.Size())
			for r := 1; r < e.local.Size() && me == 0; r++ {
				m.sendSame(r, int64(n))
			}
			if me > 0 {
				m.receive(0, int64(n))
				b.add(m.start(e.local, nil, prefix))
			} else {
				b.add(m.start(e.local, prefix, nil))
			}
			return b.reqs, b.err
		},
		compute(func() error {
			if a.Op == OpExscan && me == 0 {
				copy(recv, prefix)
				return nil
			}
			return e.Reduce(prefix, recv, a.Count)
		}))
}
