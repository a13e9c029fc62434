// Package world describes the processes of a job, by virtual rank.
package world

import "github.com/leidenzipper/zipper/internal/wire"

// World describes the processes of a job, as one of them sees it.
type World struct {
	Rank     int            // this process's virtual rank
	Clusters []wire.Cluster // in order of virtual rank
	TagUB    int
	// Hosts has for every process of this cluster, by its rank there, the first process on its
	// host. It is nil if unknown.
	Hosts []int32
	// Order has the virtual rank of every rank of MPI_COMM_WORLD. It is nil if they are equal.
	Order []int32

	Namesake  bool // whether another cluster has a host with the name of this process's
	Libraries int  // number of different MPI libraries, regardless of their versions
	Mixed     bool // whether clusters differ in their format of long double
}

// Size returns the number of virtual ranks.
func (w *World) Size() int {
	n := 0
	for _, c := range w.Clusters {
		n += int(c.Size)
	}
	return n
}

// Place returns the cluster of a virtual rank and the first virtual rank of that cluster, or -1, -1
// if there is none.
func (w *World) Place(rank int) (cluster, first int) {
	if rank < 0 {
		return -1, -1
	}
	for i, c := range w.Clusters {
		if rank < first+int(c.Size) {
			return i, first
		}
		first += int(c.Size)
	}
	return -1, -1
}

// Ranks returns the virtual ranks of a cluster: first ≤ r < end.
func (w *World) Ranks(cluster int) (first, end int) {
	for _, c := range w.Clusters[:cluster] {
		first += int(c.Size)
	}
	return first, first + int(w.Clusters[cluster].Size)
}

// Mine returns the virtual ranks of this process's cluster: first ≤ r < end.
func (w *World) Mine() (first, end int) {
	cluster, first := w.Place(w.Rank)
	return first, first + int(w.Clusters[cluster].Size)
}
