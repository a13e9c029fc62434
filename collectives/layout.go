package collectives

// Layout is where the ranks of a communicator live. It is made once per communicator and does not
// change; safe for concurrent use.
type Layout struct {
	Rank, Size int     // of this process in the communicator; ranks in all
	Cluster    int     // this process's cluster, as an index from 0 in order of first appearance among the ranks
	ClusterOf  []int   // [rank] → cluster
	Members    [][]int // [cluster] → its ranks in ascending order
	LocalOf    []int   // [rank] → position in Members of its cluster
	Runs       []Run   // the maximal ranges of ranks of one cluster, in order of rank
	Contiguous bool    // every cluster's ranks are one run: then cluster order is rank order

	grid *grid // of this process's cluster; nil: none, or unknown
}

// Run is a range of ranks of one cluster.
type Run struct {
	Cluster, First, Count int
}

// NewLayout describes the communicator in which rank i lives in the cluster that clusterOf[i] names
// (any numbers), seen from the process with the given rank.
func NewLayout(clusterOf []int, rank int) *Layout {
	l := &Layout{Rank: rank, Size: len(clusterOf)}
	l.ClusterOf, l.LocalOf, l.Members = grouped(clusterOf)
	for r, k := range l.ClusterOf {
		if last := len(l.Runs) - 1; last >= 0 && l.Runs[last].Cluster == k {
			l.Runs[last].Count++
		} else {
			l.Runs = append(l.Runs, Run{k, r, 1})
		}
	}
	l.Cluster = l.ClusterOf[rank]
	l.Contiguous = len(l.Runs) == len(l.Members)
	return l
}

// grouped numbers the groups that names stand for, from 0 in order of first appearance: each rank's
// group and place in it, and each group's ranks in ascending order.
func grouped(names []int) (groupOf, placeOf []int, members [][]int) {
	groupOf, placeOf = make([]int, len(names)), make([]int, len(names))
	index := map[int]int{}
	for r, name := range names {
		g, known := index[name]
		if !known {
			g = len(index)
			index[name] = g
			members = append(members, nil)
		}
		groupOf[r], placeOf[r] = g, len(members[g])
		members[g] = append(members[g], r)
	}
	return groupOf, placeOf, members
}

// mine gives the ranks of this process's cluster.
func (l *Layout) mine() []int { return l.Members[l.Cluster] }

// local gives this process's position in its cluster.
func (l *Layout) local() int { return l.LocalOf[l.Rank] }

// others calls f for every cluster but this process's, in order.
func (l *Layout) others(f func(cluster int)) {
	for k := range l.Members {
		if k != l.Cluster {
			f(k)
		}
	}
}

// clusters calls f for every cluster, in order.
func (l *Layout) clusters(f func(cluster int)) {
	for k := range l.Members {
		f(k)
	}
}

// FewRanks is how many ranks of a cluster send small messages straight to one of them. With more, a
// tree has fewer messages one after the other, but more steps. All processes of a job have the
// same; libmmpi's native stages are made for it, too (Z_FEW_RANKS in cgo/abi/abi.h: other values do
// not compile).
const FewRanks = 8

// few reports whether this process's cluster has no more than that.
func (l *Layout) few() bool { return len(l.mine()) <= FewRanks }

// widest gives the number of ranks of the largest cluster.
func (l *Layout) widest() int {
	n := 0
	for _, ranks := range l.Members {
		n = max(n, len(ranks))
	}
	return n
}

// leader gives the local rank of the i-th of want leaders of a cluster. Leaders are spread evenly
// over the cluster's ranks (so over its hosts), beginning with first; clusters smaller than want
// have fewer.
func (l *Layout) leader(cluster, i, want, first int) int {
	size := len(l.Members[cluster])
	have := min(want, size)
	return (first + i%have*size/have) % size
}

// pick gives v[r] for the ranks of a cluster, in order.
func (l *Layout) pick(v []int64, cluster int) []int64 {
	out := make([]int64, len(l.Members[cluster]))
	for i, r := range l.Members[cluster] {
		out[i] = v[r]
	}
	return out
}
