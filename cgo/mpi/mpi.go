//go:build openmpi || mpich

package mpi

// #include "binding.h"
// #include <stdlib.h>
import "C"

import (
	"errors"
	"strings"
	"unsafe"
)

// Opaque handles of the MPI library.
type (
	Communicator C.uintptr_t
	DataType     C.uintptr_t
	Op           C.uintptr_t
	Request      C.uintptr_t
)

// Status is that of a receive or a probe. Source and Tag are MPI's values; Bytes is the size of the
// message.
type Status struct {
	Source, Tag int
	Bytes       int64
	Cancelled   bool
}

// Error is the error of a failed MPI call.
type Error struct {
	// Call is the name of the function, such as "MPI_Send".
	Call string
	// Code is the library's error code.
	Code int
	// Class is the class of the code, comparable with Truncate.
	Class int
	Text  string
}

func (e *Error) Error() string { return e.Call + ": " + e.Text }

// Truncated reports whether the message was longer than the buffer.
func (e *Error) Truncated() bool { return e.Class == int(C.b_class_truncate()) }

func check(call string, code C.int) error {
	if code == 0 {
		return nil
	}
	var text [512]C.char
	var class C.int
	C.b_error(code, &text[0], C.int(len(text)), &class)
	return &Error{call, int(code), int(class), C.GoString(&text[0])}
}

// RegisterEngine registers the engine (package cgo/abi) of this program with libmmpi, if the
// program is linked with it, so that no second Go runtime is loaded. Call it before Init.
func RegisterEngine() error {
	if name := C.b_register_engine(); name != nil {
		return errors.New("mpi: the engine is not linked into this program: no " + C.GoString(name) + "; build with an external linker (CGO_ENABLED=1)")
	}
	return nil
}

// Thread levels, as requested from and granted by Init.
const (
	Funneled = iota
	Serialized
	Multiple
)

// Init starts MPI at the requested thread level and sets MPI_ERRORS_RETURN on the predefined
// communicators.
func Init(level int) (granted int, err error) {
	var got C.int
	if err := check("MPI_Init_thread", C.b_init(C.int(level), &got)); err != nil {
		return 0, err
	}
	return int(got), nil
}

// Initialized reports whether MPI has been started, by this package or by other code.
func Initialized() bool { return C.b_initialized() != 0 }

// Finalize ends MPI.
func Finalize() error { return check("MPI_Finalize", C.b_finalize()) }

// Exit ends this process as C's exit does.
func Exit(code int) { C.exit(C.int(code)) }

// Abort ends the whole job with an exit code.
func Abort(code int) { C.b_abort(C.int(code)) }

// Wtime is MPI's clock in seconds.
func Wtime() float64 { return float64(C.b_wtime()) }

// LibraryVersion describes the MPI library in one line.
func LibraryVersion() string {
	var b [512]C.char
	if C.b_library_version(&b[0], C.int(len(b))) != 0 {
		return "unknown"
	}
	s, _, _ := strings.Cut(C.GoString(&b[0]), "\n")
	return s
}

// World and Self return the predefined communicators; Null returns the null communicator.
func World() Communicator { return Communicator(C.b_world()) }
func Self() Communicator  { return Communicator(C.b_self()) }
func Null() Communicator  { return Communicator(C.b_comm_null()) }

// Undefined returns the library's value of MPI_UNDEFINED. AnySource, AnyTag and ProcNull return its
// values of MPI_ANY_SOURCE, MPI_ANY_TAG and MPI_PROC_NULL.
func Undefined() int { return int(C.b_undefined()) }
func AnySource() int { return anySource }
func AnyTag() int    { return anyTag }
func ProcNull() int  { return procNull }

// The constants of the library that every message needs are queried once, because a call of C takes
// a good part of the time of a small message.
var (
	anySource, anyTag, procNull = int(C.b_any_source()), int(C.b_any_tag()), int(C.b_proc_null())
	types                       = predefined()
)

func predefined() (all [C.B_TYPES]DataType) {
	for t := range all {
		all[t] = DataType(C.b_datatype(C.int(t)))
	}
	return all
}

// The predefined types, in the order of Go's kinds that package mmpi supports.
const (
	Int8 = iota
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Float32
	Float64
	Complex64
	Complex128
	Byte
)

// Type returns the handle of a predefined type.
func Type(t int) DataType { return types[t] }

// The predefined operators.
const (
	Sum = iota
	Prod
	Min
	Max
	LAnd
	LOr
	LXor
	BAnd
	BOr
	BXor
)

// PredefinedOp returns the handle of a predefined operator.
func PredefinedOp(o int) Op { return Op(C.b_predefined_op(C.int(o))) }

func (c Communicator) h() C.uintptr_t { return C.uintptr_t(c) }

// Rank is MPI_Comm_rank.
func (c Communicator) Rank() (int, error) {
	var r C.int
	err := check("MPI_Comm_rank", C.b_comm_rank(c.h(), &r))
	return int(r), err
}

// Size is MPI_Comm_size.
func (c Communicator) Size() (int, error) {
	var n C.int
	err := check("MPI_Comm_size", C.b_comm_size(c.h(), &n))
	return int(n), err
}

// TagUB returns the largest tag that is allowed.
func (c Communicator) TagUB() (int, error) {
	var n C.int
	err := check("MPI_Comm_get_attr", C.b_comm_tag_ub(c.h(), &n))
	return int(n), err
}

// PendingComm is a communicator that Idup is making.
type PendingComm struct{ p C.uintptr_t }

// Idup is MPI_Comm_idup; Get returns the communicator once the request has completed.
func (c Communicator) Idup() (PendingComm, Request, error) {
	var out, r C.uintptr_t
	err := check("MPI_Comm_idup", C.b_comm_idup(c.h(), &out, &r))
	return PendingComm{out}, Request(r), err
}

// Get returns the new communicator; call it once.
func (p PendingComm) Get() Communicator { return Communicator(C.b_comm_take(p.p)) }

// Split is MPI_Comm_split. The result is Null for colour Undefined.
func (c Communicator) Split(color, key int) (Communicator, error) {
	var out C.uintptr_t
	err := check("MPI_Comm_split", C.b_comm_split(c.h(), C.int(color), C.int(key), &out))
	return Communicator(out), err
}

// SplitHost is MPI_Comm_split_type with MPI_COMM_TYPE_SHARED.
func (c Communicator) SplitHost(key int) (Communicator, error) {
	var out C.uintptr_t
	err := check("MPI_Comm_split_type", C.b_comm_split_host(c.h(), C.int(key), &out))
	return Communicator(out), err
}

// Create is MPI_Comm_create for the group of the given ranks. The result is Null in a process that
// is not among them.
func (c Communicator) Create(ranks []int) (Communicator, error) {
	var out C.uintptr_t
	r := Ints(ranks)
	err := check("MPI_Comm_create", C.b_comm_create(c.h(), r.ptr(), C.int(len(r)), &out))
	return Communicator(out), err
}

// Free is MPI_Comm_free.
func (c *Communicator) Free() error {
	h := c.h()
	err := check("MPI_Comm_free", C.b_comm_free(&h))
	*c = Communicator(h)
	return err
}

// IntArray is an array of C ints, which the caller keeps until the operation that uses it has
// completed.
type IntArray []C.int

// Ints converts to C ints; the caller has checked the range.
func Ints(v []int) IntArray {
	a := make(IntArray, len(v))
	for i, x := range v {
		a[i] = C.int(x)
	}
	return a
}

func (a IntArray) ptr() *C.int { return (*C.int)(unsafe.Pointer(unsafe.SliceData(a))) }

// Address returns the address of the array, for pinning while an operation runs.
func (a IntArray) Address() any { return unsafe.SliceData(a) }

func status(s *C.b_status) Status {
	return Status{int(s.source), int(s.tag), int64(s.bytes), s.cancelled != 0}
}

// Buffer is n elements of a predefined type at P (nil if n is 0). Pin it while a request uses it.
type Buffer struct {
	P    unsafe.Pointer
	N    int
	Type DataType
}

func (b Buffer) n() C.int       { return C.int(b.N) }
func (b Buffer) t() C.uintptr_t { return C.uintptr_t(b.Type) }

// Send is MPI_Send. It blocks.
func (c Communicator) Send(b Buffer, dest, tag int) error {
	return check("MPI_Send", C.b_send(b.P, b.n(), b.t(), C.int(dest), C.int(tag), c.h()))
}

// Ssend is MPI_Ssend. It blocks.
func (c Communicator) Ssend(b Buffer, dest, tag int) error {
	return check("MPI_Ssend", C.b_ssend(b.P, b.n(), b.t(), C.int(dest), C.int(tag), c.h()))
}

// Recv is MPI_Recv. It blocks.
func (c Communicator) Recv(b Buffer, src, tag int) (Status, error) {
	o := C.b_recv(b.P, b.n(), b.t(), C.int(src), C.int(tag), c.h())
	return status(&o.status), check("MPI_Recv", o.error)
}

func started(call string, r C.b_request) (Request, error) {
	return Request(r.request), check(call, r.error)
}

// Isend is MPI_Isend.
func (c Communicator) Isend(b Buffer, dest, tag int) (Request, error) {
	return started("MPI_Isend", C.b_isend(b.P, b.n(), b.t(), C.int(dest), C.int(tag), c.h()))
}

// Issend is MPI_Issend.
func (c Communicator) Issend(b Buffer, dest, tag int) (Request, error) {
	return started("MPI_Issend", C.b_issend(b.P, b.n(), b.t(), C.int(dest), C.int(tag), c.h()))
}

// Irecv is MPI_Irecv.
func (c Communicator) Irecv(b Buffer, src, tag int) (Request, error) {
	return started("MPI_Irecv", C.b_irecv(b.P, b.n(), b.t(), C.int(src), C.int(tag), c.h()))
}

// Iprobe is MPI_Iprobe.
func (c Communicator) Iprobe(src, tag int) (Status, bool, error) {
	var s C.b_status
	var flag C.int
	err := check("MPI_Iprobe", C.b_iprobe(C.int(src), C.int(tag), c.h(), &flag, &s))
	return status(&s), flag != 0, err
}

// Test is MPI_Test; r becomes the null request when it has completed.
func (r *Request) Test() (Status, bool, error) {
	o := C.b_test(C.uintptr_t(*r))
	*r = Request(o.request)
	return status(&o.status), o.done != 0, check("MPI_Test", o.error)
}

// Wait is MPI_Wait. It blocks.
func (r *Request) Wait() (Status, error) {
	o := C.b_wait(C.uintptr_t(*r))
	*r = Request(o.request)
	return status(&o.status), check("MPI_Wait", o.error)
}

// MaxBatch is the number of requests for which a Batch has room.
const MaxBatch = C.B_BATCH

// Batch is a set of requests that are waited for together. It can be reused, by one goroutine at a
// time.
type Batch struct {
	n        int
	requests [C.B_BATCH]C.uintptr_t
	outcomes [C.B_BATCH]C.b_outcome
}

// Add adds a request and reports whether there was room.
func (b *Batch) Add(r Request) bool {
	if b.n == len(b.requests) {
		return false
	}
	b.requests[b.n] = C.uintptr_t(r)
	b.n++
	return true
}

// Wait waits for each request in turn and passes its result to done. It blocks, and leaves the
// batch empty.
func (b *Batch) Wait(done func(i int, s Status, err error)) {
	n := b.n
	b.n = 0
	C.b_wait_each(C.int(n), &b.requests[0], &b.outcomes[0])
	for i := range b.outcomes[:n] {
		o := &b.outcomes[i]
		done(i, status(&o.status), check("MPI_Wait", o.error))
	}
}

// Cancel is MPI_Cancel; complete the request afterwards.
func (r *Request) Cancel() error { return check("MPI_Cancel", C.b_cancel((*C.uintptr_t)(r))) }
