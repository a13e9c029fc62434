package abi

// #include "abi.h"
import "C"

import (
	"unsafe"

	"github.com/leidenzipper/zipper/collectives"
	"github.com/leidenzipper/zipper/mmpi/engine"
)

const (
	opBcast    = collectives.OpBcast
	opScatterv = collectives.OpScatterv
)

// counts returns a copy of an array of n numbers of C, which C does not keep, or nil for NULL.
func counts(p *C.int64_t, n int) []int64 {
	if p == nil {
		return nil
	}
	return append([]int64(nil), unsafe.Slice((*int64)(unsafe.Pointer(p)), n)...)
}

// span returns the length in bytes that a buffer must have that contains blocks with these counts
// and displacements.
func span(counts, displs []int64) int64 {
	var n int64
	for i, c := range counts {
		if c > 0 && i < len(displs) {
			n = max(n, displs[i]+c)
		}
	}
	return n
}

// coll converts a z_coll to its Go form; the lengths of the buffers follow from the counts.
func coll(a *C.z_coll, c *engine.Comm) engine.Coll {
	n := c.Size()
	r := collectives.Args{Op: collectives.Op(a.op), Root: int(a.root), Count: int(a.count), Extent: int(a.extent),
		Commutative: a.commutative != 0, Recoded: a.recoded != 0, Uniform: a.uniform != 0,
		SendCounts: counts(a.send_counts, n), SendDispls: counts(a.send_displs, n),
		RecvCounts: counts(a.recv_counts, n), RecvDispls: counts(a.recv_displs, n)}
	send, recv := uintptr(unsafe.Pointer(a.send)), uintptr(a.recv)
	own, all := int64(a.send_bytes), int64(a.count)*int64(a.extent)
	root := r.Root == c.Rank()
	switch r.Op {
	case collectives.OpBcast:
		r.Recv = bytes(recv, own)
	case collectives.OpGatherv:
		r.Send = bytes(send, own)
		if root {
			r.Recv = bytes(recv, span(r.RecvCounts, r.RecvDispls))
		}
	case collectives.OpScatterv:
		r.Recv = bytes(recv, own)
		if root {
			r.Send = bytes(send, span(r.SendCounts, r.SendDispls))
		}
	case collectives.OpAllgatherv:
		r.Send, r.Recv = bytes(send, own), bytes(recv, span(r.RecvCounts, r.RecvDispls))
	case collectives.OpAlltoallv:
		r.Send, r.Recv = bytes(send, span(r.SendCounts, r.SendDispls)), bytes(recv, span(r.RecvCounts, r.RecvDispls))
	case collectives.OpReduce:
		r.Send = bytes(send, all)
		if root {
			r.Recv = bytes(recv, all)
		}
	case collectives.OpAllreduce, collectives.OpScan, collectives.OpExscan:
		r.Send, r.Recv = bytes(send, all), bytes(recv, all)
	case collectives.OpReduceScatter:
		var sum int64
		for _, k := range r.RecvCounts {
			sum += k
		}
		r.Send = bytes(send, sum*int64(a.extent))
		if len(r.RecvCounts) == n {
			r.Recv = bytes(recv, r.RecvCounts[c.Rank()]*int64(a.extent))
		}
	}
	return engine.Coll{Args: r, Type: uint64(a._type), Operator: uint64(a.mpi_op), Skipped: uint32(a.skipped)}
}

//export ze_coll
func ze_coll(comm int32, args *C.z_coll, cell *engineCell) C.int {
	return on(comm, func(e *engine.Engine, c *engine.Comm) error { return e.Collective(c, coll(args, c), cell.cell()) })
}

//export ze_coll_leaf
func ze_coll_leaf(comm int32, args *C.z_coll, give, get *int64) C.int {
	rc := C.int(0)
	on(comm, func(e *engine.Engine, c *engine.Comm) error {
		part, ok := e.Leaf(c, coll(args, c))
		*give, *get, rc = int64(part.Give), int64(part.Get), C.int(bool32(ok))
		return nil
	})
	return rc
}
