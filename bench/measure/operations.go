package measure

import "slices"

// Operation is an operation of the MPI program that the plan sweep measures.
type Operation struct {
	// Name is its name on the program's command line.
	Name string
	// least and most bound its sizes, in bytes; most is 0 for an operation without a size.
	least, most int
}

// Operations returns the operations in the order in which they are measured.
func Operations() []Operation {
	var all []Operation
	for _, n := range []string{"latency", "bw", "bibw", "rate", "put", "get", "accumulate", "lock", "fence"} {
		all = append(all, Operation{n, 1, maxSize})
	}
	for _, n := range []string{"flood", "threads"} {
		all = append(all, Operation{n, 1, largestSmall})
	}
	for _, n := range []string{"alone", "beside"} { // these messages carry a time stamp
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

// Sizes returns those of a list that the operation can have. An operation without a size has one,
// which is 0.
func (o Operation) Sizes(list []int) []int {
	if o.most == 0 {
		return []int{0}
	}
	return slices.DeleteFunc(slices.Clone(list), func(n int) bool { return n < o.least || n > o.most })
}
