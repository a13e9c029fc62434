// Package collectives has one algorithm a file, each opening with what it costs between clusters. An
// algorithm is a Schedule: a list of rounds, each starting operations and giving the requests that must be
// over before the next round. The engine runs schedules; blocking and nonblocking collectives are the same
// thing. All buffers are contiguous bytes.
package collectives

// Request is an operation that a round started.
type Request interface {
	Done() (bool, error)
}

// Round starts operations without blocking and returns those to wait for.
type Round func() ([]Request, error)

// Schedule is a collective on one process. Rounds run one after the other.
type Schedule []Round

// Comm is the communicator as the algorithms see it. Ranks are ranks of the spanning communicator.
type Comm interface {
	Rank() int
	Size() int
	// Cluster of every rank, as an index from 0 in order of first appearance; shared, do not change.
	ClusterOf() []int
	// Send and Recv move a message between clusters (remote ranks only) within this one collective; messages
	// between the same two ranks with the same stage arrive in order. Buffers must stay until done.
	Send(to int, stage int, b []byte) (Request, error)
	Recv(from int, stage int, b []byte) (Request, error)
	// Local is the part of the communicator in this process's cluster.
	Local() Local
	// Reduce computes inout = in op inout over count elements laid out as the collective's type.
	Reduce(in, inout []byte, count int) error
}

// Local runs native nonblocking collectives among the ranks of one cluster. Ranks, roots and the order of
// counts are local: position among the communicator's ranks of this cluster, in order of rank. Every local process must
// start the same calls in the same order. Counts and displacements are bytes, except where elements are said.
type Local interface {
	Rank() int
	Size() int
	Barrier() (Request, error)
	Bcast(b []byte, root int) (Request, error)
	Gatherv(send, recv []byte, counts, displs []int64, root int) (Request, error)
	Scatterv(send []byte, counts, displs []int64, recv []byte, root int) (Request, error)
	Allgatherv(send, recv []byte, counts, displs []int64) (Request, error)
	Alltoallv(send []byte, scounts, sdispls []int64, recv []byte, rcounts, rdispls []int64) (Request, error)
	// Reductions over count elements (laid out as the type); op and type are the collective's.
	Reduce(send, recv []byte, count int, root int) (Request, error)
	Allreduce(send, recv []byte, count int) (Request, error)
	ReduceScatter(send, recv []byte, counts []int64) (Request, error) // counts in elements
	Scan(send, recv []byte, count int) (Request, error)
	Exscan(send, recv []byte, count int) (Request, error)
}
