//go:build openmpi || mpich

package mmpi

import (
	"context"
	"fmt"
	"math"
	"unsafe"

	"github.com/leidenzipper/zipper/cgo/mpi"
)

// Every collective has a nonblocking form (I…) that returns a request and a blocking one. All processes of the communicator
// call it, in the same order, with the same root, operator and sizes as far as the comment says. Where MPI has IN_PLACE
// a nil send slice means it.

func finish(q *Request, err error) error {
	if err != nil {
		return err
	}
	_, err = q.Wait(context.Background())
	return err
}

// Barrier returns when every process has entered it.
func (c *Comm) Barrier() error { return finish(c.Ibarrier()) }

// Ibarrier is the nonblocking Barrier.
func (c *Comm) Ibarrier() (*Request, error) { return start(c.p, c.h.Ibarrier) }

// Bcast copies the root's buf to everyone's. All lengths are the same.
func Bcast[T Scalar](c *Comm, buf []T, root int) error { return finish(Ibcast(c, buf, root)) }

// Ibcast is the nonblocking Bcast.
func Ibcast[T Scalar](c *Comm, buf []T, root int) (*Request, error) {
	b, err := buffer(buf)
	if err != nil {
		return nil, err
	}
	return start(c.p, func() (mpi.Request, error) { return c.h.Ibcast(b, root) }, b.P)
}

// Reduce combines the send slices of all elementwise into recv at the root (elsewhere recv may be nil). At the root a nil send
// takes recv as this process's part.
func Reduce[T Scalar](c *Comm, send, recv []T, op Op, root int) error {
	return finish(Ireduce(c, send, recv, op, root))
}

// Ireduce is the nonblocking Reduce.
func Ireduce[T Scalar](c *Comm, send, recv []T, op Op, root int) (*Request, error) {
	in, out, inPlace, h, err := inOut("Reduce", send, recv, c.rank == root, op)
	if err != nil {
		return nil, err
	}
	return start(c.p, func() (mpi.Request, error) { return c.h.Ireduce(in.P, inPlace, out, h, root) }, in.P, out.P)
}

// Allreduce is Reduce with the result everywhere. A nil send takes recv as this process's part.
func Allreduce[T Scalar](c *Comm, send, recv []T, op Op) error {
	return finish(Iallreduce(c, send, recv, op))
}

// Iallreduce is the nonblocking Allreduce.
func Iallreduce[T Scalar](c *Comm, send, recv []T, op Op) (*Request, error) {
	in, out, inPlace, h, err := inOut("Allreduce", send, recv, true, op)
	if err != nil {
		return nil, err
	}
	return start(c.p, func() (mpi.Request, error) { return c.h.Iallreduce(in.P, inPlace, out, h) }, in.P, out.P)
}

// Scan gives each process the combination of the parts of ranks 0 … its own.
func Scan[T Scalar](c *Comm, send, recv []T, op Op) error {
	return finish(Iscan(c, send, recv, op, false))
}

// Exscan gives each process the combination of the parts of the ranks before its own; rank 0's recv is not changed.
func Exscan[T Scalar](c *Comm, send, recv []T, op Op) error {
	return finish(Iscan(c, send, recv, op, true))
}

// Iscan is the nonblocking Scan or, exclusive, Exscan.
func Iscan[T Scalar](c *Comm, send, recv []T, op Op, exclusive bool) (*Request, error) {
	in, out, inPlace, h, err := inOut("Scan", send, recv, true, op)
	if err != nil {
		return nil, err
	}
	return start(c.p, func() (mpi.Request, error) { return c.h.Iscan(in.P, inPlace, out, h, exclusive) }, in.P, out.P)
}

// ReduceScatter combines all send slices and gives rank i the next counts[i] elements of the result; len(send) is the sum of counts.
func ReduceScatter[T Scalar](c *Comm, send, recv []T, counts []int, op Op) error {
	n, err := c.blocks("ReduceScatter", counts, nil)
	if err != nil {
		return err
	}
	in, err1 := buffer(send)
	out, err2 := buffer(recv)
	h, err3 := op.handle(in.Type)
	if err := first(err1, err2, err3); err != nil {
		return err
	}
	if len(send) < n || len(recv) < counts[c.rank] {
		return fmt.Errorf("mmpi: ReduceScatter: send has %d elements and recv %d, counts need %d and %d", len(send), len(recv), n, counts[c.rank])
	}
	a := mpi.Ints(counts)
	q, err := start(c.p, func() (mpi.Request, error) {
		return c.h.IreduceScatter(in.P, false, out.P, a, in.Type, h)
	}, in.P, out.P, address(a))
	return finish(q, err)
}

// Gather collects equal parts at the root: recv has Size·len(send) elements there.
func Gather[T Scalar](c *Comm, send, recv []T, root int) error {
	counts, displs := c.even(len(send))
	return Gatherv(c, send, recv, counts, displs, root)
}

// Gatherv collects counts[i] elements of rank i at recv[displs[i]] at the root; counts and displs matter only there.
func Gatherv[T Scalar](c *Comm, send, recv []T, counts, displs []int, root int) error {
	return finish(Igatherv(c, send, recv, counts, displs, root))
}

// Igatherv is the nonblocking Gatherv.
func Igatherv[T Scalar](c *Comm, send, recv []T, counts, displs []int, root int) (*Request, error) {
	in, err1 := buffer(send)
	out, err2 := buffer(recv)
	var err3 error
	if c.rank == root {
		err3 = c.fits("Gatherv", counts, displs, len(recv))
	} else {
		counts, displs = nil, nil
	}
	if err := first(err1, err2, err3); err != nil {
		return nil, err
	}
	a, d := mpi.Ints(counts), mpi.Ints(displs)
	return start(c.p, func() (mpi.Request, error) { return c.h.Igatherv(in, false, out.P, a, d, root) }, in.P, out.P, address(a), address(d))
}

// Scatter gives rank i the i-th len(recv) elements of the root's send.
func Scatter[T Scalar](c *Comm, send, recv []T, root int) error {
	counts, displs := c.even(len(recv))
	return Scatterv(c, send, recv, counts, displs, root)
}

// Scatterv gives rank i counts[i] elements from the root's send[displs[i]]; send, counts and displs matter only at the root.
func Scatterv[T Scalar](c *Comm, send, recv []T, counts, displs []int, root int) error {
	return finish(Iscatterv(c, send, recv, counts, displs, root))
}

// Iscatterv is the nonblocking Scatterv.
func Iscatterv[T Scalar](c *Comm, send, recv []T, counts, displs []int, root int) (*Request, error) {
	in, err1 := buffer(send)
	out, err2 := buffer(recv)
	var err3 error
	if c.rank == root {
		err3 = c.fits("Scatterv", counts, displs, len(send))
	} else {
		counts, displs = nil, nil
	}
	if err := first(err1, err2, err3); err != nil {
		return nil, err
	}
	a, d := mpi.Ints(counts), mpi.Ints(displs)
	return start(c.p, func() (mpi.Request, error) { return c.h.Iscatterv(in.P, a, d, out, false, root) }, in.P, out.P, address(a), address(d))
}

// Allgather gives everyone all parts, which have equal lengths: recv has Size·len(send) elements.
func Allgather[T Scalar](c *Comm, send, recv []T) error {
	counts, displs := c.even(len(send))
	return Allgatherv(c, send, recv, counts, displs)
}

// Allgatherv gives everyone counts[i] elements of rank i at recv[displs[i]].
func Allgatherv[T Scalar](c *Comm, send, recv []T, counts, displs []int) error {
	return finish(Iallgatherv(c, send, recv, counts, displs))
}

// Iallgatherv is the nonblocking Allgatherv.
func Iallgatherv[T Scalar](c *Comm, send, recv []T, counts, displs []int) (*Request, error) {
	in, err1 := buffer(send)
	out, err2 := buffer(recv)
	if err := first(err1, err2, c.fits("Allgatherv", counts, displs, len(recv))); err != nil {
		return nil, err
	}
	a, d := mpi.Ints(counts), mpi.Ints(displs)
	return start(c.p, func() (mpi.Request, error) { return c.h.Iallgatherv(in, false, out.P, a, d) }, in.P, out.P, address(a), address(d))
}

// Alltoall gives rank j's recv, at block i, block j of rank i's send; all blocks have len(send)/Size elements.
func Alltoall[T Scalar](c *Comm, send, recv []T) error {
	counts, displs := c.even(len(send) / c.size)
	return Alltoallv(c, send, counts, displs, recv, counts, displs)
}

// Alltoallv is Alltoall with blocks of their own size and place.
func Alltoallv[T Scalar](c *Comm, send []T, scounts, sdispls []int, recv []T, rcounts, rdispls []int) error {
	return finish(Ialltoallv(c, send, scounts, sdispls, recv, rcounts, rdispls))
}

// Ialltoallv is the nonblocking Alltoallv.
func Ialltoallv[T Scalar](c *Comm, send []T, scounts, sdispls []int, recv []T, rcounts, rdispls []int) (*Request, error) {
	in, err1 := buffer(send)
	out, err2 := buffer(recv)
	if err := first(err1, err2, c.fits("Alltoallv send", scounts, sdispls, len(send)), c.fits("Alltoallv recv", rcounts, rdispls, len(recv))); err != nil {
		return nil, err
	}
	sc, sd, rc, rd := mpi.Ints(scounts), mpi.Ints(sdispls), mpi.Ints(rcounts), mpi.Ints(rdispls)
	return start(c.p, func() (mpi.Request, error) {
		return c.h.Ialltoallv(in.P, false, sc, sd, out.P, rc, rd, in.Type)
	}, in.P, out.P, address(sc), address(sd), address(rc), address(rd))
}

func (c *Comm) even(n int) (counts, displs []int) {
	counts, displs = make([]int, c.size), make([]int, c.size)
	for i := range counts {
		counts[i], displs[i] = n, i*n
	}
	return counts, displs
}

func first(errs ...error) error {
	for _, e := range errs {
		if e != nil {
			return e
		}
	}
	return nil
}

func address(a mpi.IntArray) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(a)) }

// blocks checks counts (and displs unless nil) and returns the sum of the counts.
func (c *Comm) blocks(call string, counts, displs []int) (sum int, err error) {
	if len(counts) != c.size || displs != nil && len(displs) != c.size {
		return 0, fmt.Errorf("mmpi: %s: want %d counts and displacements, have %d and %d", call, c.size, len(counts), len(displs))
	}
	for i, n := range counts {
		if n < 0 || n > math.MaxInt32 || displs != nil && (displs[i] < 0 || displs[i] > math.MaxInt32) {
			return 0, fmt.Errorf("mmpi: %s: block %d: counts and displacements must be within 0 … 2^31-1", call, i)
		}
		sum += n
	}
	return sum, nil
}

func (c *Comm) fits(call string, counts, displs []int, have int) error {
	if displs == nil {
		displs = []int{}
	}
	if _, err := c.blocks(call, counts, displs); err != nil {
		return err
	}
	for i, n := range counts {
		if n > 0 && displs[i]+n > have {
			return fmt.Errorf("mmpi: %s: block %d ends at element %d, the slice has %d", call, i, displs[i]+n, have)
		}
	}
	return nil
}

// inOut prepares a reduction's slices and operator: result tells whether recv is used here.
func inOut[T Scalar](call string, send, recv []T, result bool, op Op) (in, out mpi.Buffer, inPlace bool, h mpi.Op, err error) {
	in, err1 := buffer(send)
	out, err2 := buffer(recv)
	h, err3 := op.handle(in.Type)
	if err := first(err1, err2, err3); err != nil {
		return in, out, false, 0, err
	}
	inPlace = send == nil && result
	switch {
	case !result:
		out = mpi.Buffer{N: in.N, Type: in.Type}
	case !inPlace && len(recv) != len(send):
		return in, out, false, 0, fmt.Errorf("mmpi: %s: send has %d elements, recv %d", call, len(send), len(recv))
	}
	return in, out, inPlace, h, nil
}
