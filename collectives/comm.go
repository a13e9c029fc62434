// Package collectives has one algorithm a file, each opening with what it costs between clusters.
// An algorithm is a Schedule: a list of rounds, each starting operations and giving the requests
// that must be over before the next round. A Runner steps a schedule; blocking and nonblocking
// collectives are the same thing. All buffers are contiguous bytes. Nothing here blocks, starts
// goroutines or reads a clock.
//
// Symbols of the cost formulas: L seconds for one crossing, G seconds per byte that crosses, m
// bytes per rank, n ranks in all, a and b ranks of two clusters, c clusters; λ seconds for one
// native collective of small messages, s bytes of a segment. Bytes are given for each ordered pair
// of clusters.
package collectives

// Request is an operation that a round started. A nil Request is over.
type Request interface {
	// Done reports whether the operation is over, and then how it ended. It is called until it says
	// true.
	Done() (bool, error)
}

// Round starts operations without blocking and returns those to wait for before the next round:
// some it started, some that earlier rounds did. Together with an error it returns what it did
// start.
type Round func() ([]Request, error)

// Schedule is a collective on one process. Rounds run one after the other; the last round waits for
// all that is still under way.
type Schedule []Round

// Comm is a spanning communicator as the algorithms see it. Ranks are ranks of the communicator.
type Comm interface {
	Layout() *Layout
	// Send and Recv move a message between clusters (remote ranks only) within this one collective;
	// messages between the same two ranks with the same stage (0..255) arrive in order. Buffers
	// must stay until done. A message longer than b is an error of the Recv.
	Send(to int, stage int, b []byte) (Request, error)
	Recv(from int, stage int, b []byte) (Request, error)
	// RecvAtMost is Recv of a message that may be shorter than b.
	RecvAtMost(from int, stage int, b []byte) (Request, error)
	// Local is the part of the communicator in this process's cluster.
	Local() Local
	// Reduce computes inout = in op inout over count elements laid out as the collective's type.
	Reduce(in, inout []byte, count int) error
	// Scratch gives n bytes (contents arbitrary) that live until the schedule is over.
	Scratch(n int) []byte
}

// Local runs native nonblocking collectives among the ranks of one cluster. Ranks, roots and the
// order of counts are local: position among the communicator's ranks of this cluster, in order of
// rank. Every local process must start the same calls in the same order. Counts and displacements
// are bytes, except where elements are said.
//
// In place: where a process's own block of recv is send itself (the same address), it is not
// copied: Gatherv and Allgatherv (send is recv's block of this process), Scatterv at the root (recv
// is send's block), reductions (send equals recv). Otherwise buffers do not overlap. What only the
// root needs is nil elsewhere.
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
	Exscan(send, recv []byte, count int) (Request, error) // leaves recv of local rank 0 as it is
}
