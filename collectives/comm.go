// Package collectives has one algorithm per file, each of which begins with its cost between
// clusters. An algorithm is a Schedule: a list of rounds, each of which starts operations and
// returns the requests that must finish before the next round. A Runner steps a schedule; blocking
// and nonblocking collectives use it alike. All buffers are contiguous bytes. The package never
// blocks, starts goroutines or reads a clock.
//
// Symbols of the cost formulas: L seconds for one crossing, G seconds per byte that crosses, m
// bytes per rank, n ranks in all, a and b ranks of two clusters, c clusters; λ seconds for one
// native collective of small messages, s bytes of a segment. Bytes are given for each ordered pair
// of clusters.
package collectives

// Request is an operation that a round has started. A nil Request has finished.
type Request interface {
	// Done reports whether the operation has finished, and its error. It must be called until it
	// returns true.
	Done() (bool, error)
}

// Round starts operations without blocking and returns the requests to wait for before the next
// round: its own, or those of earlier rounds. Together with an error it returns the requests that
// it did start.
type Round func() ([]Request, error)

// Schedule is a collective on one process. Rounds run one after the other; the last round waits for
// all remaining requests.
type Schedule []Round

// Comm is a spanning communicator in the view of the algorithms. Ranks are those of the
// communicator.
type Comm interface {
	Layout() *Layout
	// Send and Recv move a message between clusters (remote ranks only) within this one collective.
	// Messages between the same two ranks with the same stage (0..255) arrive in order. Buffers
	// must stay valid until the request has finished. A message longer than b is an error of the
	// Recv.
	Send(to int, stage int, b []byte) (Request, error)
	Recv(from int, stage int, b []byte) (Request, error)
	// RecvAtMost is Recv for a message that may be shorter than b.
	RecvAtMost(from int, stage int, b []byte) (Request, error)
	// Local is the part of the communicator in this process's cluster.
	Local() Local
	// Reduce computes inout = in op inout over count elements laid out as the collective's type.
	Reduce(in, inout []byte, count int) error
	// Recode converts count elements of the collective's type in place: from the format of memory
	// to that between clusters, or back with in. It is called for reductions of Recoded elements.
	Recode(b []byte, count int, in bool) error
	// Scratch returns n bytes of arbitrary content that stay valid until the schedule has finished.
	Scratch(n int) []byte
}

// Local runs native nonblocking collectives among the ranks of one cluster. Ranks, roots and the
// order of counts are local: positions among the communicator's ranks of this cluster, in order of
// rank. Every local process must start the same calls in the same order. Counts and displacements
// are in bytes, unless elements are named.
//
// In place: if a process's own block of recv is send itself (the same address), it is not copied:
// Gatherv and Allgatherv (send is recv's block of this process), Scatterv at the root (recv is
// send's block), reductions (send equals recv). Otherwise buffers must not overlap. Arguments that
// only the root needs are nil elsewhere.
type Local interface {
	Rank() int
	Size() int
	Barrier() (Request, error)
	Bcast(b []byte, root int) (Request, error)
	Gatherv(send, recv []byte, counts, displs []int64, root int) (Request, error)
	Scatterv(send []byte, counts, displs []int64, recv []byte, root int) (Request, error)
	Allgatherv(send, recv []byte, counts, displs []int64) (Request, error)
	Alltoallv(send []byte, scounts, sdispls []int64, recv []byte, rcounts, rdispls []int64) (Request, error)
	// Reduce and the calls below reduce count elements of the collective's type with its operator.
	Reduce(send, recv []byte, count int, root int) (Request, error)
	Allreduce(send, recv []byte, count int) (Request, error)
	ReduceScatter(send, recv []byte, counts []int64) (Request, error) // counts are in elements
	Scan(send, recv []byte, count int) (Request, error)
	Exscan(send, recv []byte, count int) (Request, error) // it does not change recv of local rank 0
}
