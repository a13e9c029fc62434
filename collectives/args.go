package collectives

import "fmt"

// Op is a collective. The numbers are those of enum z_coll_op in cgo/abi/abi.h.
type Op int

// These are the collectives.
const (
	OpBarrier Op = iota
	OpBcast
	OpGatherv
	OpScatterv
	OpAllgatherv
	OpAlltoallv
	OpReduce
	OpAllreduce
	OpReduceScatter
	OpScan
	OpExscan
)

var opNames = [...]string{"barrier", "bcast", "gatherv", "scatterv", "allgatherv", "alltoallv", "reduce", "allreduce",
	"reduce_scatter", "scan", "exscan"}

func (o Op) String() string {
	if o < 0 || int(o) >= len(opNames) {
		return fmt.Sprintf("collective %d", int(o))
	}
	return opNames[o]
}

// Args has the arguments of one collective in one process. Counts and displacements are in bytes
// and indexed by rank, unless elements are named.
//
//	Bcast          Recv is the buffer, everywhere of the same length
//	Gatherv        Send; at the root Recv, RecvCounts, RecvDispls. At the root Send may be its place in Recv
//	Scatterv       Recv; at the root Send, SendCounts, SendDispls. At the root Recv may be its place in Send
//	Allgatherv     Send, Recv, RecvCounts, RecvDispls. Send may be its place in Recv
//	Alltoallv      Send, SendCounts, SendDispls, Recv, RecvCounts, RecvDispls
//	reductions     Send, Recv (Reduce: at the root) of Count elements; Send may be Recv
//	ReduceScatter  Send has the sum of RecvCounts (elements) and Recv RecvCounts[rank] elements; Send may begin where Recv does
type Args struct {
	Op                     Op
	Root                   int // rank of the root
	Send, Recv             []byte
	SendCounts, SendDispls []int64
	RecvCounts, RecvDispls []int64
	// Uniform says that every rank has the same count and knows that (MPI_Gather, not MPI_Gatherv).
	// Then small messages of Gatherv, Scatterv and Alltoallv are combined. It must be equal at
	// every rank.
	Uniform     bool
	Count       int  // number of elements of a reduction
	Extent      int  // bytes of one element of a reduction
	Commutative bool // whether a reduction's operator commutes; equal at every rank
	// Recoded says that a reduction's elements have another format between clusters than in memory,
	// where their formats differ. It must be equal at every rank.
	Recoded bool
}

// New returns the schedule of one collective for this process. All processes of the communicator
// must give matching arguments and equal tunings. The error describes invalid arguments of this
// process.
func New(c Comm, a Args, t Tuning) (Schedule, error) {
	if err := a.check(c.Layout()); err != nil {
		return nil, fmt.Errorf("%v: %w", a.Op, err)
	}
	x := &env{Comm: c, l: c.Layout(), local: c.Local(), t: t.Filled()}
	if x.l.SizeOf(x.l.Cluster) == 1 {
		x.local = solo{}
	}
	switch a.Op {
	case OpBarrier:
		return barrier(x), nil
	case OpBcast:
		return bcast(x, a.Recv, a.Root), nil
	case OpGatherv:
		return gather(x, a), nil
	case OpScatterv:
		return scatter(x, a), nil
	case OpAllgatherv:
		return allgather(x, a), nil
	case OpAlltoallv:
		return alltoall(x, a), nil
	}
	x.extent, x.recoded = a.Extent, a.Recoded
	ordered := (a.Commutative || x.l.Contiguous) && !a.Recoded
	switch a.Op {
	case OpReduce:
		if !ordered {
			return reduceOrdered(x, a), nil
		}
		return reduce(x, a), nil
	case OpAllreduce:
		switch {
		case a.Recoded:
			return allreduceRecoded(x, a), nil
		case !ordered:
			return allreduceOrdered(x, a), nil
		}
		return allreduce(x, a), nil
	case OpReduceScatter:
		if !ordered {
			return reduceScatterOrdered(x, a), nil
		}
		return reduceScatter(x, a), nil
	default: // OpScan, OpExscan
		if !x.l.Contiguous || a.Recoded {
			return scanOrdered(x, a), nil
		}
		return scan(x, a), nil
	}
}

// env has the data that the algorithms work with: the communicator, the places of its ranks, and
// the tuning.
type env struct {
	Comm
	l      *Layout
	local  Local
	t      Tuning
	extent int
	// recoded says that elements have another format between clusters (Args.Recoded).
	recoded bool
}

func (a *Args) check(l *Layout) error {
	if a.Op < 0 || a.Op > OpExscan {
		return fmt.Errorf("unknown")
	}
	if a.Root < 0 || a.Root >= l.Size {
		return fmt.Errorf("root %d is not a rank of this communicator of %d", a.Root, l.Size)
	}
	if a.Count < 0 || a.Extent < 0 {
		return fmt.Errorf("count %d and extent %d must not be negative", a.Count, a.Extent)
	}
	root := a.Root == l.Rank
	switch a.Op {
	case OpGatherv:
		if root {
			return fits("receive", a.Recv, a.RecvCounts, a.RecvDispls, l.Size)
		}
	case OpScatterv:
		if root {
			return fits("send", a.Send, a.SendCounts, a.SendDispls, l.Size)
		}
	case OpAllgatherv:
		if err := fits("receive", a.Recv, a.RecvCounts, a.RecvDispls, l.Size); err != nil {
			return err
		}
		return holds("send", a.Send, a.RecvCounts[l.Rank])
	case OpAlltoallv:
		if err := fits("send", a.Send, a.SendCounts, a.SendDispls, l.Size); err != nil {
			return err
		}
		return fits("receive", a.Recv, a.RecvCounts, a.RecvDispls, l.Size)
	case OpReduce, OpAllreduce, OpScan, OpExscan:
		if a.Op != OpReduce || root {
			if err := holds("receive", a.Recv, int64(a.Count)*int64(a.Extent)); err != nil {
				return err
			}
		}
		return holds("send", a.Send, int64(a.Count)*int64(a.Extent))
	case OpReduceScatter:
		if len(a.RecvCounts) != l.Size {
			return fmt.Errorf("%d counts for %d ranks", len(a.RecvCounts), l.Size)
		}
		var sum int64
		for _, n := range a.RecvCounts {
			if n < 0 {
				return fmt.Errorf("negative count %d", n)
			}
			sum += n
		}
		if err := holds("receive", a.Recv, a.RecvCounts[l.Rank]*int64(a.Extent)); err != nil {
			return err
		}
		return holds("send", a.Send, sum*int64(a.Extent))
	}
	return nil
}

func holds(what string, b []byte, n int64) error {
	if int64(len(b)) < n {
		return fmt.Errorf("%s buffer has %d bytes, needs %d", what, len(b), n)
	}
	return nil
}

func fits(what string, b []byte, counts, displs []int64, size int) error {
	if len(counts) != size || len(displs) != size {
		return fmt.Errorf("%d counts and %d displacements for %d ranks", len(counts), len(displs), size)
	}
	for i, n := range counts {
		if n < 0 || n > 0 && (displs[i] < 0 || displs[i] > int64(len(b))-n) {
			return fmt.Errorf("%s block of rank %d (%d bytes at %d) lies outside the buffer of %d bytes", what, i, n,
				displs[i], len(b))
		}
	}
	return nil
}
