package collectives

import "sort"

// Layout is where the ranks of a communicator live. It is made once per communicator and says the
// same from then on. Not safe for concurrent use.
type Layout struct {
	Rank, Size int   // of this process in the communicator; ranks in all
	Cluster    int   // this process's cluster, as an index from 0 in order of first appearance among the ranks
	Sizes      []int // [cluster] → its ranks
	Runs       []Run // the maximal ranges of ranks of one cluster, in order of rank
	Contiguous bool  // every cluster's ranks are one run: then cluster order is rank order

	members [][]int // [cluster] → its ranks; nil until they are asked for
	hosts   [][]int // of this process's cluster: the local ranks on each, in ascending order; nil: unknown
	grid    *grid   // … if they are one; nil: none, or unknown
}

// Run is a range of ranks of one cluster.
type Run struct {
	Cluster, First, Count int
	Local                 int // position of the first one in its cluster
}

// NewLayout describes the communicator in which rank i lives in the cluster that clusterOf[i] names
// (any numbers), seen from the process with the given rank.
func NewLayout(clusterOf []int, rank int) *Layout {
	l := &Layout{Rank: rank, Size: len(clusterOf)}
	index := map[int]int{}
	for r, name := range clusterOf {
		if last := len(l.Runs) - 1; r > 0 && name == clusterOf[r-1] {
			l.Runs[last].Count++
			l.Sizes[l.Runs[last].Cluster]++
			continue
		}
		k, known := index[name]
		if !known {
			k = len(index)
			index[name] = k
			l.Sizes = append(l.Sizes, 0)
		}
		l.Runs = append(l.Runs, Run{k, r, 1, l.Sizes[k]})
		l.Sizes[k]++
	}
	l.members = make([][]int, len(l.Sizes))
	l.Cluster = l.ClusterOf(rank)
	l.Contiguous = len(l.Runs) == len(l.Sizes)
	return l
}

// run gives the one of a rank.
func (l *Layout) run(rank int) *Run {
	n := sort.Search(len(l.Runs), func(i int) bool { return l.Runs[i].First > rank })
	return &l.Runs[n-1]
}

// ClusterOf gives a rank's cluster.
func (l *Layout) ClusterOf(rank int) int { return l.run(rank).Cluster }

// LocalOf gives a rank's position among those of its cluster.
func (l *Layout) LocalOf(rank int) int {
	r := l.run(rank)
	return r.Local + rank - r.First
}

// Clusters gives the number of clusters.
func (l *Layout) Clusters() int { return len(l.Sizes) }

// SizeOf gives the number of a cluster's ranks.
func (l *Layout) SizeOf(cluster int) int { return l.Sizes[cluster] }

// Member gives the rank at a position of a cluster.
func (l *Layout) Member(cluster, local int) int {
	if l.Contiguous {
		return l.Runs[cluster].First + local
	}
	return l.Members(cluster)[local]
}

// Members gives a cluster's ranks in ascending order. They are listed when they are asked for
// first, since few processes of a large communicator need more than some Member.
func (l *Layout) Members(cluster int) []int {
	if l.members[cluster] == nil {
		list := make([]int, 0, l.Sizes[cluster])
		for _, r := range l.Runs {
			for i := 0; r.Cluster == cluster && i < r.Count; i++ {
				list = append(list, r.First+i)
			}
		}
		l.members[cluster] = list
	}
	return l.members[cluster]
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
func (l *Layout) mine() []int { return l.Members(l.Cluster) }

// local gives this process's position in its cluster.
func (l *Layout) local() int { return l.LocalOf(l.Rank) }

// others calls f for every cluster but this process's, in order.
func (l *Layout) others(f func(cluster int)) {
	for k := range l.Clusters() {
		if k != l.Cluster {
			f(k)
		}
	}
}

// clusters calls f for every cluster, in order.
func (l *Layout) clusters(f func(cluster int)) {
	for k := range l.Clusters() {
		f(k)
	}
}

// FewRanks is how many ranks of a cluster send small messages straight to one of them. With more, a
// tree has fewer messages one after the other, but more steps. All processes of a job have the
// same; libmmpi's native stages are made for it, too (Z_FEW_RANKS in cgo/abi/abi.h: other values do
// not compile).
const FewRanks = 8

// few reports whether this process's cluster has no more than that.
func (l *Layout) few() bool { return l.SizeOf(l.Cluster) <= FewRanks }

// widest gives the number of ranks of the largest cluster.
func (l *Layout) widest() int {
	n := 0
	for _, size := range l.Sizes {
		n = max(n, size)
	}
	return n
}

// leader gives the local rank of the i-th of want leaders of a cluster. Leaders are spread evenly
// over the cluster's ranks (so over its hosts), beginning with first; clusters smaller than want
// have fewer.
func (l *Layout) leader(cluster, i, want, first int) int {
	size := l.Sizes[cluster]
	have := min(want, size)
	return (first + i%have*size/have) % size
}

// pick gives v[r] for the ranks of a cluster, in order.
func (l *Layout) pick(v []int64, cluster int) []int64 {
	out := make([]int64, l.Sizes[cluster])
	for i, r := range l.Members(cluster) {
		out[i] = v[r]
	}
	return out
}
