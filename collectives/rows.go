package collectives

import "slices"

// rows returns the local ranks of this process's cluster host by host, each host's in ascending
// order. If the hosts are unknown, or the order of operands matters and the ranks of some host are
// not neighbours, every rank is a row of its own.
func (l *Layout) rows(commutative bool) [][]int {
	if l.hosts != nil && (commutative || slices.IsSorted(slices.Concat(l.hosts...))) {
		return l.hosts
	}
	rows := make([][]int, len(l.mine()))
	for r := range rows {
		rows[r] = []int{r}
	}
	return rows
}

// ahead returns the number of segments that a rank passes to others of its cluster before those
// need them.
func (t Tuning) ahead() int { return max(1, t.kept()/t.Segment) }
