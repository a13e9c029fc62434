//go:build openmpi || mpich

package mpi

// #include "binding.h"
import "C"

import "unsafe"

func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

func (r *Request) p() *C.uintptr_t { return (*C.uintptr_t)(r) }
func (o Op) h() C.uintptr_t        { return C.uintptr_t(o) }

// Ibarrier is MPI_Ibarrier.
func (c Communicator) Ibarrier() (r Request, err error) {
	err = check("MPI_Ibarrier", C.b_ibarrier(c.h(), r.p()))
	return r, err
}

// Ibcast is MPI_Ibcast.
func (c Communicator) Ibcast(b Buffer, root int) (r Request, err error) {
	err = check("MPI_Ibcast", C.b_ibcast(b.P, b.n(), b.t(), C.int(root), c.h(), r.p()))
	return r, err
}

// Ireduce is MPI_Ireduce over out.N elements; in == nil with inPlace.
func (c Communicator) Ireduce(in unsafe.Pointer, inPlace bool, out Buffer, op Op, root int) (r Request, err error) {
	err = check("MPI_Ireduce", C.b_ireduce(in, flag(inPlace), out.P, out.n(), out.t(), op.h(), C.int(root), c.h(), r.p()))
	return r, err
}

// Iallreduce is MPI_Iallreduce over out.N elements.
func (c Communicator) Iallreduce(in unsafe.Pointer, inPlace bool, out Buffer, op Op) (r Request, err error) {
	err = check("MPI_Iallreduce", C.b_iallreduce(in, flag(inPlace), out.P, out.n(), out.t(), op.h(), c.h(), r.p()))
	return r, err
}

// Iscan is MPI_Iscan or, exclusive, MPI_Iexscan.
func (c Communicator) Iscan(in unsafe.Pointer, inPlace bool, out Buffer, op Op, exclusive bool) (r Request, err error) {
	err = check("MPI_Iscan", C.b_iscan(in, flag(inPlace), out.P, out.n(), out.t(), op.h(), flag(exclusive), c.h(), r.p()))
	return r, err
}

// IreduceScatter is MPI_Ireduce_scatter.
func (c Communicator) IreduceScatter(in unsafe.Pointer, inPlace bool, out unsafe.Pointer, counts IntArray, t DataType, op Op) (r Request, err error) {
	err = check("MPI_Ireduce_scatter", C.b_ireduce_scatter(in, flag(inPlace), out, counts.ptr(), C.uintptr_t(t), op.h(), c.h(), r.p()))
	return r, err
}

// Igatherv is MPI_Igatherv; out, counts and displs matter at the root only. With inPlace the root's part is in out.
func (c Communicator) Igatherv(in Buffer, inPlace bool, out unsafe.Pointer, counts, displs IntArray, root int) (r Request, err error) {
	err = check("MPI_Igatherv", C.b_igatherv(in.P, flag(inPlace), in.n(), out, counts.ptr(), displs.ptr(), in.t(), C.int(root), c.h(), r.p()))
	return r, err
}

// Iscatterv is MPI_Iscatterv; in, counts and displs matter at the root only.
func (c Communicator) Iscatterv(in unsafe.Pointer, counts, displs IntArray, out Buffer, inPlace bool, root int) (r Request, err error) {
	err = check("MPI_Iscatterv", C.b_iscatterv(in, counts.ptr(), displs.ptr(), out.P, flag(inPlace), out.n(), out.t(), C.int(root), c.h(), r.p()))
	return r, err
}

// Iallgatherv is MPI_Iallgatherv.
func (c Communicator) Iallgatherv(in Buffer, inPlace bool, out unsafe.Pointer, counts, displs IntArray) (r Request, err error) {
	err = check("MPI_Iallgatherv", C.b_iallgatherv(in.P, flag(inPlace), in.n(), out, counts.ptr(), displs.ptr(), in.t(), c.h(), r.p()))
	return r, err
}

// Ialltoallv is MPI_Ialltoallv with one type on both sides.
func (c Communicator) Ialltoallv(in unsafe.Pointer, inPlace bool, scounts, sdispls IntArray, out unsafe.Pointer, rcounts, rdispls IntArray, t DataType) (r Request, err error) {
	err = check("MPI_Ialltoallv", C.b_ialltoallv(in, flag(inPlace), scounts.ptr(), sdispls.ptr(), out, rcounts.ptr(), rdispls.ptr(), C.uintptr_t(t), c.h(), r.p()))
	return r, err
}
