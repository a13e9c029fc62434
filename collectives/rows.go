package collectives

import "slices"

// rows gives the local ranks of this process's cluster host by host, each host's in ascending
// order. If the order of operands counts, hosts whose ranks are not neighbours are taken apart; so
// are all where nobody knows the hosts.
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

// ahead is how many segments a rank hands to others of its cluster before those need them.
func (t Tuning) ahead() int { return max(1, t.kept()/t.Segment) }
