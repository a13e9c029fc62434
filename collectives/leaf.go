package collectives

// Part is the work of a leaf, a process that leads no others, in a small collective. It sends Give
// bytes to local rank 0 (a native Gatherv), and receives Get bytes of the result from there (a
// native Bcast or Scatterv).
type Part struct {
	Give, Get int // number of bytes; Nothing if there is no message
}

// Nothing in place of a number of bytes means that there is no message.
const Nothing = -1

// Leaf reports whether a Part is all that this process does in a collective. The bytes that it
// gives are all of Send, or in a barrier any; those that it gets belong at the beginning of Recv.
// The result does not depend on the content of buffers, nor on the operator, except on whether it
// commutes.
func Leaf(l *Layout, a Args, t Tuning) (p Part, ok bool) {
	if l.local() == 0 || !l.few() || a.check(l) != nil {
		return p, false
	}
	e := env{l: l, t: t.Filled(), extent: a.Extent}
	switch a.Op {
	case OpBarrier:
		return Part{1, 1}, true
	case OpGatherv:
		return Part{len(a.Send), Nothing}, e.viaFirst(a, len(a.Send))
	case OpScatterv:
		return Part{Nothing, len(a.Recv)}, e.viaFirst(a, len(a.Recv))
	case OpReduce:
		n := a.Count * a.Extent
		return Part{n, Nothing}, (a.Commutative || l.Contiguous) && e.reducesFew(a) && e.collector(l.Cluster, a.Root) == 0
	case OpReduceScatter:
		all, own := int64(0), a.RecvCounts[l.Rank]*int64(a.Extent)
		for _, n := range a.RecvCounts {
			all += n * int64(a.Extent)
		}
		return Part{int(all), int(own)}, (a.Commutative || l.Contiguous) && 0 < all && all <= int64(e.t.Combine)
	case OpBcast:
		n := len(a.Recv)
		root := l.LocalOf(a.Root) // the root in another cluster sends to local rank 0
		return Part{Nothing, n}, n > 0 && n <= e.t.Segment && !e.broadcastsSlices(n) &&
			(root == 0 || l.ClusterOf(a.Root) != l.Cluster)
	case OpAllreduce:
		n := a.Count * a.Extent
		return Part{n, n}, (a.Commutative || l.Contiguous) && e.sumsFew(n)
	case OpAllgatherv:
		total, together := inOrder(a.RecvCounts, a.RecvDispls)
		return Part{int(a.RecvCounts[l.Rank]), int(total)}, together && l.Contiguous && e.gathersFew(total)
	case OpAlltoallv:
		total, together := inOrder(a.RecvCounts, a.RecvDispls)
		_, sends := inOrder(a.SendCounts, a.SendDispls)
		return Part{int(total), int(total)}, together && sends && l.Contiguous && e.throughLeader(a)
	}
	return p, false
}

// viaFirst reports whether in a gather or scatter this process's block of m bytes goes to or from
// local rank 0: as the root, or as the way to or from another cluster.
func (e *env) viaFirst(a Args, m int) bool {
	if e.l.ClusterOf(a.Root) == e.l.Cluster {
		return e.l.LocalOf(a.Root) == 0
	}
	return e.combined(a.Uniform, m, e.l.Cluster)
}

// inOrder reports whether blocks are one after the other from the beginning, and returns their
// total length.
func inOrder(counts, displs []int64) (total int64, together bool) {
	for i, n := range counts {
		if displs[i] != total {
			return 0, false
		}
		total += n
	}
	return total, true
}
