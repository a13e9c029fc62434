// Package world says who takes part in a job, by virtual rank.
package world

import "github.com/leidenzipper/zipper/internal/wire"

// World is who takes part in the job, seen from one process.
type World struct {
	Rank     int            // mine, virtual
	Clusters []wire.Cluster // in order of virtual rank
	TagUB    int
	Hosts    []int32 // of every process of this cluster, by its rank there, the first one on its host; nil: unknown
	Order    []int32 // of every rank of MPI_COMM_WORLD the virtual rank; nil: the same

	Namesake  bool // another cluster has a host of the same name as this process's
	Libraries int  // different MPI libraries, whatever their versions
}

// Size is the number of virtual ranks.
func (w *World) Size() int {
	n := 0
	for _, c := range w.Clusters {
		n += int(c.Size)
	}
	return n
}

// Place gives the cluster of a virtual rank and the first virtual rank of that cluster; -1, -1 for
// none.
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

// Mine gives the virtual ranks of this process's cluster: first ≤ r < end.
func (w *World) Mine() (first, end int) {
	cluster, first := w.Place(w.Rank)
	return first, first + int(w.Clusters[cluster].Size)
}
