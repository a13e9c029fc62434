//go:build openmpi || mpich

package mpi

// #include "binding.h"
import "C"

import "unsafe"

// The collectives block if wait is set, and otherwise start a request.

func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// unless returns the address of the request for C, or nil for a blocking call.
func (r *Request) unless(wait bool) *C.uintptr_t {
	if wait {
		return nil
	}
	return (*C.uintptr_t)(r)
}

func (o Op) h() C.uintptr_t { return C.uintptr_t(o) }

// Barrier is MPI_Ibarrier.
func (c Communicator) Barrier(wait bool) (r Request, err error) {
	err = check("MPI_Barrier", C.b_barrier(c.h(), r.unless(wait)))
	return r, err
}

// Bcast is MPI_Ibcast.
func (c Communicator) Bcast(b Buffer, root int, wait bool) (r Request, err error) {
	err = check("MPI_Bcast", C.b_bcast(b.P, b.n(), b.t(), C.int(root), c.h(), r.unless(wait)))
	return r, err
}

// Reduce is MPI_Ireduce over out.N elements; in == nil with inPlace.
func (c Communicator) Reduce(in unsafe.Pointer, inPlace bool, out Buffer, op Op, root int, wait bool) (r Request, err error) {
	err = check("MPI_Reduce", C.b_reduce(in, flag(inPlace), out.P, out.n(), out.t(), op.h(), C.int(root), c.h(), r.unless(wait)))
	return r, err
}

// Allreduce is MPI_Iallreduce over out.N elements.
func (c Communicator) Allreduce(in unsafe.Pointer, inPlace bool, out Buffer, op Op, wait bool) (r Request, err error) {
	err = check("MPI_Allreduce", C.b_allreduce(in, flag(inPlace), out.P, out.n(), out.t(), op.h(), c.h(), r.unless(wait)))
	return r, err
}

// Scan is MPI_Iscan or, exclusive, MPI_Iexscan.
func (c Communicator) Scan(in unsafe.Pointer, inPlace bool, out Buffer, op Op, exclusive bool, wait bool) (r Request, err error) {
	err = check("MPI_Scan", C.b_scan(in, flag(inPlace), out.P, out.n(), out.t(), op.h(), flag(exclusive), c.h(), r.unless(wait)))
	return r, err
}

// ReduceScatter is MPI_Ireduce_scatter.
func (c Communicator) ReduceScatter(in unsafe.Pointer, inPlace bool, out unsafe.Pointer, counts IntArray, t DataType, op Op, wait bool) (r Request, err error) {
	err = check("MPI_Reduce_scatter", C.b_reduce_scatter(in, flag(inPlace), out, counts.ptr(), C.uintptr_t(t), op.h(), c.h(), r.unless(wait)))
	return r, err
}

// Gather is MPI_Gather of in.N elements from each process.
func (c Communicator) Gather(in Buffer, out unsafe.Pointer, root int, wait bool) (r Request, err error) {
	err = check("MPI_Gather", C.b_gather(in.P, in.n(), out, in.t(), C.int(root), c.h(), r.unless(wait)))
	return r, err
}

// Scatter is MPI_Scatter of out.N elements to each process.
func (c Communicator) Scatter(in unsafe.Pointer, out Buffer, root int, wait bool) (r Request, err error) {
	err = check("MPI_Scatter", C.b_scatter(in, out.P, out.n(), out.t(), C.int(root), c.h(), r.unless(wait)))
	return r, err
}

// Allgather is MPI_Allgather of in.N elements from each process.
func (c Communicator) Allgather(in Buffer, out unsafe.Pointer, wait bool) (r Request, err error) {
	err = check("MPI_Allgather", C.b_allgather(in.P, in.n(), out, in.t(), c.h(), r.unless(wait)))
	return r, err
}

// Alltoall is MPI_Alltoall of n elements between each two processes.
func (c Communicator) Alltoall(in unsafe.Pointer, n int, out unsafe.Pointer, t DataType, wait bool) (r Request, err error) {
	err = check("MPI_Alltoall", C.b_alltoall(in, C.int(n), out, C.uintptr_t(t), c.h(), r.unless(wait)))
	return r, err
}

// Gatherv is MPI_Igatherv; out, counts and displs are used at the root only. With inPlace the
// root's part is in out.
func (c Communicator) Gatherv(in Buffer, inPlace bool, out unsafe.Pointer, counts, displs IntArray, root int, wait bool) (r Request, err error) {
	err = check("MPI_Gatherv", C.b_gatherv(in.P, flag(inPlace), in.n(), out, counts.ptr(), displs.ptr(), in.t(), C.int(root), c.h(), r.unless(wait)))
	return r, err
}

// Scatterv is MPI_Iscatterv; in, counts and displs are used at the root only.
func (c Communicator) Scatterv(in unsafe.Pointer, counts, displs IntArray, out Buffer, inPlace bool, root int, wait bool) (r Request, err error) {
	err = check("MPI_Scatterv", C.b_scatterv(in, counts.ptr(), displs.ptr(), out.P, flag(inPlace), out.n(), out.t(), C.int(root), c.h(), r.unless(wait)))
	return r, err
}

// Allgatherv is MPI_Iallgatherv.
func (c Communicator) Allgatherv(in Buffer, inPlace bool, out unsafe.Pointer, counts, displs IntArray, wait bool) (r Request, err error) {
	err = check("MPI_Allgatherv", C.b_allgatherv(in.P, flag(inPlace), in.n(), out, counts.ptr(), displs.ptr(), in.t(), c.h(), r.unless(wait)))
	return r, err
}

// Alltoallv is MPI_Ialltoallv with one type on both sides.
func (c Communicator) Alltoallv(in unsafe.Pointer, inPlace bool, scounts, sdispls IntArray, out unsafe.Pointer, rcounts, rdispls IntArray, t DataType, wait bool) (r Request, err error) {
	err = check("MPI_Alltoallv", C.b_alltoallv(in, flag(inPlace), scounts.ptr(), sdispls.ptr(), out, rcounts.ptr(), rdispls.ptr(), C.uintptr_t(t), c.h(), r.unless(wait)))
	return r, err
}
