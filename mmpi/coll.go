//go:build openmpi || mpich

package mmpi

import (
	"context"
	"fmt"
	"math"
	"unsafe"

	"github.com/leidenzipper/zipper/cgo/mpi"
)

// Every collective has a nonblocking form (I…) that returns a request, and a blocking form. All
// processes of the communicator must call it in the same order, with the same root, operator and
// sizes as far as the comment says. Where MPI has IN_PLACE a nil send slice selects it.

func finish(q *Request, err error) error {
	if err != nil {
		return err
	}
	_, err = q.Wait(context.Background())
	return err
}

// either makes a collective call: blocking if that is wanted and allowed (the request is done
// then), and otherwise nonblocking.
func either(p *Process, wait bool, call func(wait bool) (mpi.Request, error),
	pinned ...unsafe.Pointer) (*Request, error) {
	if wait && p.direct() {
		_, err := call(true)
		return &Request{p: p, done: true}, err
	}
	return start(p, func() (mpi.Request, error) { return call(false) }, pinned...)
}

// Barrier returns when every process has entered it.
func (c *Comm) Barrier() error { return finish(either(c.p, true, c.h.Barrier)) }

// Ibarrier is the nonblocking Barrier.
func (c *Comm) Ibarrier() (*Request, error) { return either(c.p, false, c.h.Barrier) }

// Bcast copies the root's buf to all processes. All lengths must be equal.
func Bcast[T Scalar](c *Comm, buf []T, root int) error { return finish(bcast(c, buf, root, true)) }

// Ibcast is the nonblocking Bcast.
func Ibcast[T Scalar](c *Comm, buf []T, root int) (*Request, error) {
	return bcast(c, buf, root, false)
}

func bcast[T Scalar](c *Comm, buf []T, root int, wait bool) (*Request, error) {
	b, err := buffer(buf)
	if err != nil {
		return nil, err
	}
	return either(c.p, wait, func(wait bool) (mpi.Request, error) { return c.h.Bcast(b, root, wait) }, b.P)
}

// Reduce combines the send slices of all processes elementwise into recv at the root (elsewhere
// recv may be nil). At the root a nil send takes recv as this process's operand.
func Reduce[T Scalar](c *Comm, send, recv []T, op Op, root int) error {
	return finish(reduce(c, send, recv, op, root, true))
}

// Ireduce is the nonblocking Reduce.
func Ireduce[T Scalar](c *Comm, send, recv []T, op Op, root int) (*Request, error) {
	return reduce(c, send, recv, op, root, false)
}

func reduce[T Scalar](c *Comm, send, recv []T, op Op, root int, wait bool) (*Request, error) {
	in, out, inPlace, h, err := inOut("Reduce", send, recv, c.rank == root, op)
	if err != nil {
		return nil, err
	}
	return either(c.p, wait, func(wait bool) (mpi.Request, error) {
		return c.h.Reduce(in.P, inPlace, out, h, root, wait)
	}, in.P, out.P)
}

// Allreduce is Reduce with the result at all processes. A nil send takes recv as this process's
// operand.
func Allreduce[T Scalar](c *Comm, send, recv []T, op Op) error {
	return finish(allreduce(c, send, recv, op, true))
}

// Iallreduce is the nonblocking Allreduce.
func Iallreduce[T Scalar](c *Comm, send, recv []T, op Op) (*Request, error) {
	return allreduce(c, send, recv, op, false)
}

func allreduce[T Scalar](c *Comm, send, recv []T, op Op, wait bool) (*Request, error) {
	in, out, inPlace, h, err := inOut("Allreduce", send, recv, true, op)
	if err != nil {
		return nil, err
	}
	return either(c.p, wait, func(wait bool) (mpi.Request, error) {
		return c.h.Allreduce(in.P, inPlace, out, h, wait)
	}, in.P, out.P)
}

// Scan gives each process the combination of the operands of ranks 0 to its own.
func Scan[T Scalar](c *Comm, send, recv []T, op Op) error {
	return finish(scan(c, send, recv, op, false, true))
}

// Exscan gives each process the combination of the operands of the ranks before its own. rank 0's
// recv is not changed.
func Exscan[T Scalar](c *Comm, send, recv []T, op Op) error {
	return finish(scan(c, send, recv, op, true, true))
}

// Iscan is the nonblocking Scan or, exclusive, Exscan.
func Iscan[T Scalar](c *Comm, send, recv []T, op Op, exclusive bool) (*Request, error) {
	return scan(c, send, recv, op, exclusive, false)
}

func scan[T Scalar](c *Comm, send, recv []T, op Op, exclusive bool, wait bool) (*Request, error) {
	in, out, inPlace, h, err := inOut("Scan", send, recv, true, op)
	if err != nil {
		return nil, err
	}
	return either(c.p, wait, func(wait bool) (mpi.Request, error) {
		return c.h.Scan(in.P, inPlace, out, h, exclusive, wait)
	}, in.P, out.P)
}

// ReduceScatter combines all send slices and gives rank i the next counts[i] elements of the
// result; len(send) is the sum of counts.
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
		return fmt.Errorf("mmpi: ReduceScatter: send has %d elements and recv %d, counts need %d and %d", len(send),
			len(recv), n, counts[c.rank])
	}
	a := mpi.Ints(counts)
	q, err := either(c.p, true, func(wait bool) (mpi.Request, error) {
		return c.h.ReduceScatter(in.P, false, out.P, a, in.Type, h, wait)
	}, in.P, out.P, address(a))
	return finish(q, err)
}

// Gather collects equal parts at the root, where recv has Size·len(send) elements.
func Gather[T Scalar](c *Comm, send, recv []T, root int) error {
	return finish(gather(c, send, recv, root, true))
}

// Igather is the nonblocking Gather.
func Igather[T Scalar](c *Comm, send, recv []T, root int) (*Request, error) {
	return gather(c, send, recv, root, false)
}

func gather[T Scalar](c *Comm, send, recv []T, root int, wait bool) (*Request, error) {
	in, err1 := buffer(send)
	out, err2 := buffer(recv)
	if err := first(err1, err2, c.holds("Gather", c.rank == root, len(recv), len(send))); err != nil {
		return nil, err
	}
	return either(c.p, wait, func(wait bool) (mpi.Request, error) {
		return c.h.Gather(in, out.P, root, wait)
	}, in.P, out.P)
}

// Gatherv collects counts[i] elements of rank i at recv[displs[i]] at the root. counts and displs
// matter only there.
func Gatherv[T Scalar](c *Comm, send, recv []T, counts, displs []int, root int) error {
	return finish(gatherv(c, send, recv, counts, displs, root, true))
}

// Igatherv is the nonblocking Gatherv.
func Igatherv[T Scalar](c *Comm, send, recv []T, counts, displs []int, root int) (*Request, error) {
	return gatherv(c, send, recv, counts, displs, root, false)
}

func gatherv[T Scalar](c *Comm, send, recv []T, counts, displs []int, root int, wait bool) (*Request, error) {
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
	return either(c.p, wait, func(wait bool) (mpi.Request, error) {
		return c.h.Gatherv(in, false, out.P, a, d, root, wait)
	}, in.P, out.P, address(a), address(d))
}

// Scatter gives rank i the i-th len(recv) elements of the root's send.
func Scatter[T Scalar](c *Comm, send, recv []T, root int) error {
	return finish(scatter(c, send, recv, root, true))
}

// Iscatter is the nonblocking Scatter.
func Iscatter[T Scalar](c *Comm, send, recv []T, root int) (*Request, error) {
	return scatter(c, send, recv, root, false)
}

func scatter[T Scalar](c *Comm, send, recv []T, root int, wait bool) (*Request, error) {
	in, err1 := buffer(send)
	out, err2 := buffer(recv)
	if err := first(err1, err2, c.holds("Scatter", c.rank == root, len(send), len(recv))); err != nil {
		return nil, err
	}
	return either(c.p, wait, func(wait bool) (mpi.Request, error) {
		return c.h.Scatter(in.P, out, root, wait)
	}, in.P, out.P)
}

// Scatterv gives rank i counts[i] elements from the root's send[displs[i]]. send, counts and displs
// matter only at the root.
func Scatterv[T Scalar](c *Comm, send, recv []T, counts, displs []int, root int) error {
	return finish(scatterv(c, send, recv, counts, displs, root, true))
}

// Iscatterv is the nonblocking Scatterv.
func Iscatterv[T Scalar](c *Comm, send, recv []T, counts, displs []int, root int) (*Request, error) {
	return scatterv(c, send, recv, counts, displs, root, false)
}

func scatterv[T Scalar](c *Comm, send, recv []T, counts, displs []int, root int, wait bool) (*Request, error) {
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
	return either(c.p, wait, func(wait bool) (mpi.Request, error) {
		return c.h.Scatterv(in.P, a, d, out, false, root, wait)
	}, in.P, out.P, address(a), address(d))
}

// Allgather gives all processes all parts, which must have equal lengths: recv has Size·len(send)
// elements.
func Allgather[T Scalar](c *Comm, send, recv []T) error {
	return finish(allgather(c, send, recv, true))
}

// Iallgather is the nonblocking Allgather.
func Iallgather[T Scalar](c *Comm, send, recv []T) (*Request, error) {
	return allgather(c, send, recv, false)
}

func allgather[T Scalar](c *Comm, send, recv []T, wait bool) (*Request, error) {
	in, err1 := buffer(send)
	out, err2 := buffer(recv)
	if err := first(err1, err2, c.holds("Allgather", true, len(recv), len(send))); err != nil {
		return nil, err
	}
	return either(c.p, wait, func(wait bool) (mpi.Request, error) {
		return c.h.Allgather(in, out.P, wait)
	}, in.P, out.P)
}

// Allgatherv gives all processes counts[i] elements of rank i at recv[displs[i]].
func Allgatherv[T Scalar](c *Comm, send, recv []T, counts, displs []int) error {
	return finish(allgatherv(c, send, recv, counts, displs, true))
}

// Iallgatherv is the nonblocking Allgatherv.
func Iallgatherv[T Scalar](c *Comm, send, recv []T, counts, displs []int) (*Request, error) {
	return allgatherv(c, send, recv, counts, displs, false)
}

func allgatherv[T Scalar](c *Comm, send, recv []T, counts, displs []int, wait bool) (*Request, error) {
	in, err1 := buffer(send)
	out, err2 := buffer(recv)
	if err := first(err1, err2, c.fits("Allgatherv", counts, displs, len(recv))); err != nil {
		return nil, err
	}
	a, d := mpi.Ints(counts), mpi.Ints(displs)
	return either(c.p, wait, func(wait bool) (mpi.Request, error) {
		return c.h.Allgatherv(in, false, out.P, a, d, wait)
	}, in.P, out.P, address(a), address(d))
}

// Alltoall copies block j of rank i's send to block i of rank j's recv. All blocks have
// len(send)/Size elements.
func Alltoall[T Scalar](c *Comm, send, recv []T) error {
	return finish(alltoall(c, send, recv, true))
}

// Ialltoall is the nonblocking Alltoall.
func Ialltoall[T Scalar](c *Comm, send, recv []T) (*Request, error) {
	return alltoall(c, send, recv, false)
}

func alltoall[T Scalar](c *Comm, send, recv []T, wait bool) (*Request, error) {
	in, err1 := buffer(send)
	out, err2 := buffer(recv)
	if err := first(err1, err2, c.holds("Alltoall", true, min(len(send), len(recv)), len(send)/c.size)); err != nil {
		return nil, err
	}
	return either(c.p, wait, func(wait bool) (mpi.Request, error) {
		return c.h.Alltoall(in.P, len(send)/c.size, out.P, in.Type, wait)
	}, in.P, out.P)
}

// Alltoallv is Alltoall with blocks of their own size and place.
func Alltoallv[T Scalar](c *Comm, send []T, scounts, sdispls []int, recv []T, rcounts, rdispls []int) error {
	return finish(alltoallv(c, send, scounts, sdispls, recv, rcounts, rdispls, true))
}

// Ialltoallv is the nonblocking Alltoallv.
func Ialltoallv[T Scalar](c *Comm, send []T, scounts, sdispls []int, recv []T,
	rcounts, rdispls []int) (*Request, error) {
	return alltoallv(c, send, scounts, sdispls, recv, rcounts, rdispls, false)
}

func alltoallv[T Scalar](c *Comm, send []T, scounts, sdispls []int, recv []T, rcounts, rdispls []int,
	wait bool) (*Request, error) {
	in, err1 := buffer(send)
	out, err2 := buffer(recv)
	if err := first(err1, err2, c.fits("Alltoallv send", scounts, sdispls, len(send)),
		c.fits("Alltoallv recv", rcounts, rdispls, len(recv))); err != nil {
		return nil, err
	}
	sc, sd, rc, rd := mpi.Ints(scounts), mpi.Ints(sdispls), mpi.Ints(rcounts), mpi.Ints(rdispls)
	return either(c.p, wait, func(wait bool) (mpi.Request, error) {
		return c.h.Alltoallv(in.P, false, sc, sd, out.P, rc, rd, in.Type, wait)
	}, in.P, out.P, address(sc), address(sd), address(rc), address(rd))
}

// holds checks that a slice, if it matters here, has room for n elements of every rank.
func (c *Comm) holds(call string, matters bool, have, n int) error {
	if matters && have < n*c.size {
		return fmt.Errorf("mmpi: %s: %d elements of each of %d ranks do not fit into %d", call, n, c.size, have)
	}
	return nil
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
		return 0, fmt.Errorf("mmpi: %s: want %d counts and displacements, have %d and %d", call, c.size, len(counts),
			len(displs))
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

// inOut prepares a reduction's slices and operator. result says whether recv is used here.
func inOut[T Scalar](call string, send, recv []T, result bool, op Op) (
	in, out mpi.Buffer, inPlace bool, h mpi.Op, err error,
) {
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
