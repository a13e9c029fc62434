package collectives

// slicing is a segment of some units cut into a slice for each rank of a cluster, in order of rank
// and as equal as possible.
type slicing struct {
	units, ranks int
	without      int // local rank without a slice; -1 if each has one
}

func (e *env) slicing(units, cluster int) slicing {
	return slicing{units, e.l.SizeOf(cluster), -1}
}

// cutWide returns segments with slices of about t.Segment bytes. window is the number of segments
// under way between clusters.
func (e *env) cutWide(total, unit int) (seg segments, window int) {
	t := e.t
	t.Segment *= e.l.widest()
	return cut(total, unit, t), t.window()
}

// of returns a local rank's slice, as a range of units.
func (s slicing) of(rank int) (from, to int) {
	n := s.ranks
	if s.without >= 0 {
		if n--; rank == s.without {
			return 0, 0
		}
		if rank > s.without {
			rank--
		}
	}
	return share(s.units, rank, n), share(s.units, rank+1, n)
}

// blocks returns bytes and displacements of all slices.
func (s slicing) blocks(unit int) (counts, displs []int64) {
	counts, displs = make([]int64, s.ranks), make([]int64, s.ranks)
	for r := range counts {
		from, to := s.of(r)
		counts[r], displs[r] = int64((to-from)*unit), int64(from*unit)
	}
	return counts, displs
}

// common calls f for the intersection of a range of units with each slice, in pieces of at most
// most units.
func (s slicing) common(from, to, most int, f func(rank, from, to int)) {
	for r := range s.ranks {
		lo, hi := s.of(r)
		for lo, hi = max(lo, from), min(hi, to); lo < hi; lo += most {
			f(r, lo, min(lo+most, hi))
		}
	}
}

// share returns total*i/n without overflow: the beginning of share i of n equal ones.
func share[T int | int64](total, i, n T) T { return total/n*i + total%n*i/n }
