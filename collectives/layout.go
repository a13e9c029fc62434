package collectives

import "sort"

// Layout has the places of the ranks of a communicator. It is made once per communicator and does
// not change afterwards. It is not safe for concurrent use.
type Layout struct {
	// Rank is the rank of this process in the communicator, and Size the number of all ranks.
	Rank, Size int
	// Cluster is this process's cluster, as an index from 0 in order of first appearance among the
	// ranks.
	Cluster    int
	Sizes      []int // [cluster] number of its ranks
	Runs       []Run // maximal ranges of ranks of one cluster, in order of rank
	Contiguous bool  // whether every cluster's ranks are one run, so that cluster order is rank order

	members [][]int // [cluster] its ranks; nil until requested
	// hosts has the local ranks on each host of this process's cluster, in ascending order. It is
	// nil if unknown.
	hosts [][]int
	grid  *grid // the hosts as a grid; nil if they are none, or unknown
}

// Run is a range of ranks of one cluster.
type Run struct {
	Cluster, First, Count int
	Local                 int // position of the first rank in its cluster
}

// NewLayout returns the layout of a communicator in which rank i is in the cluster clusterOf[i]
// (any numbers), for the process with the given rank.
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

// run returns the run of consecutive ranks that contains rank.
func (l *Layout) run(rank int) *Run {
	n := sort.Search(len(l.Runs), func(i int) bool { return l.Runs[i].First > rank })
	return &l.Runs[n-1]
}

// ClusterOf returns a rank's cluster.
func (l *Layout) ClusterOf(rank int) int { return l.run(rank).Cluster }

// LocalOf returns a rank's position among those of its cluster.
func (l *Layout) LocalOf(rank int) int {
	r := l.run(rank)
	return r.Local + rank - r.First
}

// Clusters returns the number of clusters.
func (l *Layout) Clusters() int { return len(l.Sizes) }

// SizeOf returns the number of a cluster's ranks.
func (l *Layout) SizeOf(cluster int) int { return l.Sizes[cluster] }

// Member returns the rank at a position of a cluster.
func (l *Layout) Member(cluster, local int) int {
	if l.Contiguous {
		return l.Runs[cluster].First + local
	}
	return l.Members(cluster)[local]
}

// Members returns a cluster's ranks in ascending order. The list is made by the first call, because
// few processes of a large communicator need more than some Member.
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

// grouped numbers the groups that names stand for, from 0 in order of first appearance. It returns
// each rank's group and place in it, and each group's ranks in ascending order.
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

// mine returns the ranks of this process's cluster.
func (l *Layout) mine() []int { return l.Members(l.Cluster) }

// local returns this process's position in its cluster.
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

// FewRanks is the largest number of ranks of a cluster that send small messages directly to one of
// them. With more ranks a tree has fewer messages one after the other, but more steps. All
// processes of a job must have the same value. libmmpi's native stages depend on it, too
// (Z_FEW_RANKS in cgo/abi/abi.h: other values do not compile).
const FewRanks = 8

// few reports whether this process's cluster has at most FewRanks ranks.
func (l *Layout) few() bool { return l.SizeOf(l.Cluster) <= FewRanks }

// widest returns the number of ranks of the largest cluster.
func (l *Layout) widest() int {
	n := 0
	for _, size := range l.Sizes {
		n = max(n, size)
	}
	return n
}

// leader returns the local rank of leader i of want leaders of a cluster. Leaders are spread evenly
// over the cluster's ranks (so over its hosts), beginning with first. Clusters smaller than want
// have fewer.
func (l *Layout) leader(cluster, i, want, first int) int {
	size := l.Sizes[cluster]
	have := min(want, size)
	return (first + i%have*size/have) % size
}

// pick returns v[r] for the ranks r of a cluster, in order.
func (l *Layout) pick(v []int64, cluster int) []int64 {
	out := make([]int64, l.Sizes[cluster])
	for i, r := range l.Members(cluster) {
		out[i] = v[r]
	}
	return out
}
