package abi

// #cgo noescape zn_coll
// #include <stdlib.h>
// #include "native.h"
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/leidenzipper/zipper/mmpi/engine"
)

// native calls the shim: it implements engine.Native over a z_native, which stays valid for good.
type native struct {
	n *C.z_native
	// link is the number of the link whose engine calls, or 0 for the job's engine.
	link int32
}

func bool32(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

func cellAt(c *engine.Cell) C.uintptr_t { return C.uintptr_t(uintptr(unsafe.Pointer(c))) }

// code converts a callback's result, which is 0 or an error of enum z_error, possibly negative, to
// an error.
func code(what string, rc C.int) error {
	if rc == 0 {
		return nil
	}
	return &engine.Error{Code: engine.Code(max(rc, -rc)), Reason: fmt.Sprintf("native MPI: %s failed", what)}
}

func probe(what string, r C.zn_probe) (engine.Probe, bool, error) {
	if r.found <= 0 {
		return engine.Probe{}, false, code(what, C.int(r.found))
	}
	return engine.Probe{Message: uint64(r.probe.message), Source: int(r.probe.source), Tag: int(r.probe.tag),
		Bytes: int64(r.probe.bytes)}, true, nil
}

func (n native) Improbe(c *engine.Comm, source, tag int) (engine.Probe, bool, error) {
	return probe("improbe", C.zn_improbe(n.n, C.uintptr_t(c.User), C.int32_t(source), C.int32_t(tag)))
}

func (n native) Iprobe(c *engine.Comm, source, tag int) (engine.Probe, bool, error) {
	return probe("iprobe", C.zn_iprobe(n.n, C.uintptr_t(c.User), C.int32_t(source), C.int32_t(tag)))
}

func (n native) Imrecv(r *engine.Request, message uint64) error {
	return code("imrecv", C.zn_imrecv(n.n, cellAt(r.Cell()), C.uint64_t(message)))
}

func (n native) Irecv(r *engine.Request) error {
	return code("irecv", C.zn_irecv(n.n, cellAt(r.Cell())))
}

func (n native) Test(r *engine.Request) (bool, error) {
	rc := C.zn_test(n.n, cellAt(r.Cell()))
	if rc < 0 {
		return true, code("test", rc)
	}
	return rc > 0, nil
}

func (n native) Cancel(r *engine.Request) error {
	return code("cancel", C.zn_cancel(n.n, cellAt(r.Cell())))
}

func (n native) CollTest(token uint64) (bool, error) {
	rc := C.zn_coll_test(n.n, C.uint64_t(token))
	if rc < 0 {
		return true, code("collective", rc)
	}
	return rc > 0, nil
}

func (n native) ReduceLocal(in, inout []byte, count int, typ, op uint64) error {
	return code("reduce_local", C.zn_reduce_local(n.n, address(in), address(inout), C.int64_t(count), C.uint64_t(typ),
		C.uint64_t(op)))
}

// Recode converts elements of a type: from memory's format to that between clusters, or back with
// in.
func (n native) Recode(b []byte, count int, typ uint64, in bool) error {
	return code("recode", C.zn_recode(n.n, C.uint64_t(typ), address(b), C.int64_t(count), C.int32_t(bool32(in))))
}

// RecodeNumbers converts numbers of a kind (enum z_number), as Recode converts elements.
func (n native) RecodeNumbers(kind uint8, b []byte, in bool) {
	C.zn_recode_numbers(n.n, C.int32_t(kind), address(b), C.int64_t(len(b)), C.int32_t(bool32(in)))
}

func (n native) Compute(fn, kind uint8, inout, in []byte) error {
	if len(in) < len(inout) || C.zn_compute(C.int32_t(fn), C.int32_t(kind), address(inout), address(in),
		C.int64_t(len(inout))) != 0 {
		return fmt.Errorf("no function %d on numbers of type %d over %d bytes", fn, kind, len(inout))
	}
	return nil
}

// copyDevice copies between memory of which one side is that of a device.
func copyDevice(to, from []byte) error {
	r := C.zn_copy(links.native, address(to), address(from), C.int64_t(len(from)))
	if r.error == C.Z_OK {
		return nil
	}
	return &engine.Error{Code: engine.ErrDevice, Reason: C.GoString(&r.why[0])}
}

func (n native) SetActivity(a engine.Activity) { links.setActivity(n.n, n.link, a) }

// Access lets the shim access memory of the program.
func (n native) Access(m engine.BadMemory) {
	f := (*C.z_fault)(C.calloc(1, C.sizeof_z_fault)) // not on a Go stack, because the access raises a signal
	fillFault(f, m)
	C.zn_access(n.n, C.uintptr_t(uintptr(unsafe.Pointer(f))))
	C.free(unsafe.Pointer(f))
}

// fillFault fills in *f for memory of the program that could not be accessed.
func fillFault(f *C.z_fault, m engine.BadMemory) {
	f.at, f.bytes, f.writes = unsafe.Pointer(unsafe.SliceData(m.Mem)), C.int64_t(len(m.Mem)), C.int32_t(bool32(m.Writes))
	what := unsafe.Slice((*byte)(unsafe.Pointer(&f.what)), len(f.what))
	what[copy(what[:len(what)-1], m.What)] = 0
}

// Fail ends the process, unless only a link has failed, which is an error of the operations over
// it.
func (n native) Fail(status int, reason string) {
	if n.link != 0 {
		return
	}
	s := C.CString(reason)
	C.zn_fail(n.n, C.int32_t(status), s)
	C.free(unsafe.Pointer(s)) // fail does not return in a program, but may in tests
}

// Coll starts a local collective. Buffers are the program's, or scratch memory that is pinned;
// counts are read during the call only.
func (n native) Coll(c *engine.Comm, a *engine.Coll) (uint64, error) {
	own := len(a.Send)
	switch a.Op {
	case opBcast, opScatterv:
		own = len(a.Recv)
	}
	r := C.zn_coll(n.n, C.uintptr_t(c.User), C.int32_t(a.Op), C.int32_t(a.Root), address(a.Send), address(a.Recv),
		C.int64_t(own),
		ints(a.SendCounts), ints(a.SendDispls), ints(a.RecvCounts), ints(a.RecvDispls),
		C.int64_t(a.Count), C.int64_t(a.Extent), C.uint64_t(a.Type), C.uint64_t(a.Operator),
		C.int32_t(bool32(a.Commutative)))
	return uint64(r.token), code("collective", C.int(r.error))
}

func ints(v []int64) *C.int64_t { return (*C.int64_t)(unsafe.Pointer(unsafe.SliceData(v))) }

// address returns the address of a buffer, or 0 for an empty one.
func address(b []byte) C.uintptr_t {
	if len(b) == 0 {
		return 0
	}
	return C.uintptr_t(uintptr(unsafe.Pointer(&b[0])))
}
