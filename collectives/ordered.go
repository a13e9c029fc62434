package collectives

// These are the reductions for interleaved ranks of clusters if rank order must be kept: operators
// that do not commute, and scans. They also reduce elements whose format differs between clusters,
// because operands cross in few places here: leaders convert all that they exchange. The leader
// of a cluster (in reduce at home: the root) natively gathers the operands of its ranks and reduces
// each of its runs (ranges of ranks without a rank of another cluster in between). Leaders exchange
// these totals and combine the runs of all clusters in rank order. The results are natively
// broadcast or scattered.
//
//	time 2λ(a·m) + L + w·m·G; bytes w·m, w the sending cluster's runs (for scans those before the receiver's last rank)

// ordered is the state of one leader.
type ordered struct {
	*env
	count    int
	bytes    int      // bytes of one operand
	gathered []byte   // this cluster's operands, in order
	totals   []byte   // totals of this cluster's runs, in order
	in       [][]byte // [cluster] message from its leader
}

// gatherOrdered returns the round that gathers a cluster's operands at a local rank. The state is
// nil elsewhere.
func gatherOrdered(e *env, send []byte, count, leader int) (Round, *ordered) {
	send = send[:count*e.extent]
	if e.local.Rank() != leader {
		return step(func() (Request, error) { return e.local.Gatherv(send, nil, nil, nil, leader) }), nil
	}
	counts, displs, all := e.equal(len(send))
	o := &ordered{env: e, count: count, bytes: len(send), gathered: all, in: make([][]byte, e.l.Clusters())}
	return step(func() (Request, error) { return e.local.Gatherv(send, all, counts, displs, leader) }), o
}

// runs returns the number of runs of a cluster that begin before a rank.
func (l *Layout) runs(cluster, before int) int {
	n := 0
	for _, r := range l.Runs {
		if r.Cluster == cluster && r.First < before {
			n++
		}
	}
	return n
}

// reduceRuns computes the totals of this cluster's runs.
func (o *ordered) reduceRuns() error {
	o.totals = o.Scratch(o.l.runs(o.l.Cluster, o.l.Size) * o.bytes)
	rest := o.totals
	for _, r := range o.l.Runs {
		if r.Cluster != o.l.Cluster {
			continue
		}
		first, members := o.l.LocalOf(r.First), make([][]byte, r.Count)
		for i := range members {
			members[i] = o.gathered[(first+i)*o.bytes:][:o.bytes]
		}
		copy(rest, members[r.Count-1])
		members[r.Count-1] = rest[:o.bytes]
		if err := o.fold(members, o.count); err != nil {
			return err
		}
		rest = rest[o.bytes:]
	}
	o.in[o.l.Cluster] = o.totals
	return nil
}

// foldRuns combines the blocks of all runs, which it takes from in, in rank order. The result is in
// memory of its own or of in.
func (o *ordered) foldRuns(bytes, count int) ([]byte, error) {
	if err := o.arrive(); err != nil {
		return nil, err
	}
	next := make([]int, len(o.in))
	parts := make([][]byte, len(o.l.Runs))
	for i, r := range o.l.Runs {
		parts[i] = o.in[r.Cluster][next[r.Cluster]:][:bytes]
		next[r.Cluster] += bytes
	}
	return parts[len(parts)-1], o.fold(parts, count)
}

// exchangeRuns returns the round in which leaders exchange totals. out returns the bytes for a
// cluster, expect the number of bytes from one.
func (o *ordered) exchangeRuns(peer func(k int) int, out func(k int) []byte, expect func(k int) int) Round {
	return func() ([]Request, error) {
		var b batch
		b.err = o.reduceRuns()
		o.l.others(func(k int) {
			if n := expect(k); n > 0 {
				o.in[k] = o.Scratch(n)
				b.add(o.Recv(peer(k), 0, o.in[k]))
			}
			if message := out(k); len(message) > 0 {
				b.add(o.sendElements(peer(k), message))
			}
		})
		return b.reqs, b.err
	}
}

// sendElements sends elements to a rank of another cluster, in the format between clusters.
func (e *env) sendElements(to int, b []byte) (Request, error) {
	if e.recoded {
		c := e.Scratch(len(b))
		copy(c, b)
		if err := e.Recode(c, len(c)/e.extent, false); err != nil {
			return nil, err
		}
		b = c
	}
	return e.Send(to, 0, b)
}

// arrived converts elements that have come from another cluster to the format of memory.
func (e *env) arrived(b []byte) error {
	if !e.recoded {
		return nil
	}
	return e.Recode(b, len(b)/e.extent, true)
}

// arrive converts the elements that have come from all other clusters.
func (o *ordered) arrive() (err error) {
	o.l.others(func(k int) {
		if err == nil {
			err = o.arrived(o.in[k])
		}
	})
	return err
}

// first returns the lowest rank of cluster k, which leads the cluster.
func (e *env) first(k int) int { return e.l.Member(k, 0) }

func reduceOrdered(e *env, a Args) Schedule {
	home := e.l.ClusterOf(a.Root)
	leader := 0
	if e.l.Cluster == home {
		leader = e.l.LocalOf(a.Root)
	}
	if a.Count == 0 {
		return nil
	}
	gather, o := gatherOrdered(e, a.Send, a.Count, leader)
	if o == nil {
		return Schedule{gather}
	}
	if e.l.Rank != a.Root {
		return Schedule{gather, func() ([]Request, error) {
			var b batch
			b.err = o.reduceRuns()
			b.add(e.sendElements(a.Root, o.totals))
			return b.reqs, b.err
		}}
	}
	return Schedule{gather,
		o.exchangeRuns(e.first, func(int) []byte { return nil }, func(k int) int { return e.l.runs(k, e.l.Size) * o.bytes }),
		compute(func() error {
			sum, err := o.foldRuns(o.bytes, o.count)
			copy(a.Recv, sum)
			return err
		})}
}

func allreduceOrdered(e *env, a Args) Schedule {
	if a.Count == 0 {
		return nil
	}
	gather, o := gatherOrdered(e, a.Send, a.Count, 0)
	recv := a.Recv[:a.Count*e.extent]
	s := Schedule{gather}
	if o != nil {
		s = append(s,
			o.exchangeRuns(e.first, func(int) []byte { return o.totals }, func(k int) int { return e.l.runs(k, e.l.Size) * o.bytes }),
			compute(func() error {
				sum, err := o.foldRuns(o.bytes, o.count)
				copy(recv, sum)
				return err
			}))
	}
	return append(s, step(func() (Request, error) { return e.local.Bcast(recv, 0) }))
}

// allreduceRecoded returns the schedule of an allreduce of elements whose format differs between
// clusters. The leader of the first cluster combines all, because leaders that compute in different
// formats would get different results. The others get its result.
//
//	time 2λ(a·m) + 2L + w·m·G + m·G; bytes w·m to the first cluster, m from it
func allreduceRecoded(e *env, a Args) Schedule {
	if a.Count == 0 {
		return nil
	}
	gather, o := gatherOrdered(e, a.Send, a.Count, 0)
	recv := a.Recv[:a.Count*e.extent]
	bcast := step(func() (Request, error) { return e.local.Bcast(recv, 0) })
	home := e.first(0)
	switch {
	case o == nil:
		return Schedule{gather, bcast}
	case e.l.Rank != home:
		return Schedule{gather,
			func() ([]Request, error) {
				var b batch
				b.err = o.reduceRuns()
				b.add(e.sendElements(home, o.totals))
				b.add(e.Recv(home, 0, recv))
				return b.reqs, b.err
			},
			compute(func() error { return e.arrived(recv) }), bcast}
	}
	return Schedule{gather,
		o.exchangeRuns(e.first, func(int) []byte { return nil }, func(k int) int { return e.l.runs(k, e.l.Size) * o.bytes }),
		func() ([]Request, error) {
			var b batch
			sum, err := o.foldRuns(o.bytes, o.count)
			copy(recv, sum)
			b.err = err
			e.l.others(func(k int) { b.add(e.sendElements(e.first(k), recv)) })
			return b.reqs, b.err
		}, bcast}
}

func reduceScatterOrdered(e *env, a Args) Schedule {
	v := newVector(e, a)
	if len(v.all) == 0 {
		return nil
	}
	gather, o := gatherOrdered(e, v.all, len(v.all)/e.extent, 0)
	recv := a.Recv[:v.bytes[e.l.Rank]]
	if o == nil {
		return Schedule{gather, step(func() (Request, error) { return v.scatterLocal(nil, recv) })}
	}
	mine := v.partBytes(e.l.Cluster)
	// parts returns a cluster's part of the total of every run of this cluster.
	parts := func(k int) []byte {
		out := e.Scratch(e.l.runs(e.l.Cluster, e.l.Size) * v.partBytes(k))
		rest := out
		for t := o.totals; len(t) > 0; t = t[o.bytes:] {
			rest = rest[copy(rest, v.part(k, t[:o.bytes])):]
		}
		return out
	}
	return Schedule{gather,
		o.exchangeRuns(e.first, parts, func(k int) int { return e.l.runs(k, e.l.Size) * mine }),
		func() ([]Request, error) {
			var b batch
			var sum []byte
			if mine > 0 {
				o.in[e.l.Cluster] = parts(e.l.Cluster)
				sum, b.err = o.foldRuns(mine, mine/e.extent)
			}
			b.add(v.scatterLocal(sum, recv))
			return b.reqs, b.err
		}}
}

func scanOrdered(e *env, a Args) Schedule {
	if a.Count == 0 {
		return nil
	}
	recv := a.Recv[:a.Count*e.extent]
	if a.Op == OpExscan && e.l.Rank == 0 {
		recv = nil // it stays unchanged
	}
	gather, o := gatherOrdered(e, a.Send, a.Count, 0)
	if o == nil {
		return Schedule{gather, step(func() (Request, error) { return e.local.Scatterv(nil, nil, nil, recv, 0) })}
	}
	last := func(k int) int { return e.l.Member(k, e.l.SizeOf(k)-1) }
	counts, displs, results := e.equal(o.bytes)
	if e.l.Rank == 0 && a.Op == OpExscan {
		counts[0] = 0
	}
	return Schedule{gather,
		o.exchangeRuns(e.first,
			func(k int) []byte { return o.totals[:e.l.runs(e.l.Cluster, last(k))*o.bytes] },
			func(k int) int { return e.l.runs(k, last(e.l.Cluster)) * o.bytes }),
		func() ([]Request, error) {
			var b batch
			b.err = o.prefixes(results, a.Op == OpScan)
			b.add(e.local.Scatterv(results, counts, displs, recv, 0))
			return b.reqs, b.err
		}}
}

// prefixes computes the result of every rank of this cluster.
func (o *ordered) prefixes(results []byte, inclusive bool) error {
	if err := o.arrive(); err != nil {
		return err
	}
	var sum []byte // combination of all ranks so far; nil if there is none yet
	extend := func(by []byte) error {
		if sum != nil {
			if err := o.Reduce(sum, by, o.count); err != nil {
				return err
			}
		}
		sum = by
		return nil
	}
	in := make([][]byte, len(o.in))
	copy(in, o.in)
	for _, r := range o.l.Runs {
		if k := r.Cluster; k != o.l.Cluster {
			if len(in[k]) == 0 {
				continue // after the last rank of this cluster
			}
			if err := extend(in[k][:o.bytes]); err != nil {
				return err
			}
			in[k] = in[k][o.bytes:]
			continue
		}
		for i := range r.Count {
			at := (o.l.LocalOf(r.First) + i) * o.bytes
			result := results[at:][:o.bytes]
			if !inclusive {
				copy(result, sum)
			}
			if err := extend(o.gathered[at:][:o.bytes]); err != nil {
				return err
			}
			if inclusive {
				copy(result, sum)
			}
		}
	}
	return nil
}
