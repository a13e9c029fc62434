// Package sweep has what scripts/bench sweep measures: every operation of MPI that spans clusters,
// over powers of two and their neighbours, in several modes in turn, and the worst point of every
// curve. It looks for holes rather than for rows. It does not measure (bench/sweep/zipper-sweep
// does, with mpi/sweep.c in MPI jobs).
package sweep

import "slices"

// Operation is one that mpi/sweep.c knows.
type Operation struct {
	Name        string
	least, most int // bytes; 0: it has no size
}

// Operations in the order in which they are measured.
func Operations() []Operation {
	var all []Operation
	for _, n := range []string{"latency", "bw", "bibw", "rate", "put", "get", "accumulate", "lock", "fence"} {
		all = append(all, Operation{n, 1, maxSize})
	}
	for _, n := range []string{"flood", "threads"} {
		all = append(all, Operation{n, 1, largestSmall})
	}
	for _, n := range []string{"alone", "beside"} { // a stamp is in it
		all = append(all, Operation{n, 8, largestSmall})
	}
	for _, i := range []string{"", "i"} {
		all = append(all, Operation{i + "barrier", 0, 0})
		for _, n := range []string{"bcast", "reduce", "allreduce", "scan", "gather", "scatter", "allgather",
			"alltoall", "alltoallv", "reduce_scatter"} {
			all = append(all, Operation{i + n, 1, maxSize})
		}
	}
	return all
}

// Sizes are those that make sense for the operation; a barrier has one, 0.
func (o Operation) Sizes(list []int) []int {
	if o.most == 0 {
		return []int{0}
	}
	return slices.DeleteFunc(slices.Clone(list), func(n int) bool { return n < o.least || n > o.most })
}
