package collectives

// Part is what a leaf, a process that leads nobody, does in a small collective: it gives local rank
// 0 so many bytes of what it sends (a native Gatherv), and gets so many of the result from it (a
// native Bcast).
type Part struct {
	Give, Get int
}

// Leaf reports whether a collective is no more than that in this process. The bytes that it gives
// are all of Send, in a barrier any; those that it gets belong at the beginning of Recv. What
// buffers hold does not matter, nor, for operators that are equally commutative, which it is.
func Leaf(l *Layout, a Args, t Tuning) (p Part, ok bool) {
	if l.local() == 0 || !l.few() || a.check(l) != nil {
		return p, false
	}
	e := env{l: l, t: t.Filled(), extent: a.Extent}
	switch a.Op {
	case OpBarrier:
		return Part{1, 1}, true
	case OpAllreduce:
		n := a.Count * a.Extent
		return Part{n, n}, (a.Commutative || l.Contiguous) && e.sumsFew(n)
	case OpAllgatherv:
		var total int64
		for i, n := range a.RecvCounts {
			if a.RecvDispls[i] != total {
				return p, false
			}
			total += n
		}
		return Part{int(a.RecvCounts[l.Rank]), int(total)}, l.Contiguous && total > 0 && e.gathersFew(total)
	}
	return p, false
}
