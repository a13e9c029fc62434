package engine

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// Wildcards and rank constants, as in cgo/abi/abi.h.
const (
	AnySource = -1
	AnyTag    = -1
	ProcNull  = -2
	Remote    = -1 // Comm.Native: that rank is in another cluster
)

// Code says how an operation ended; the numbers are those of enum z_error in cgo/abi/abi.h.
type Code int32

// The codes.
const (
	OK             Code = iota
	ErrTruncate         // the message was longer than the buffer
	ErrLink             // a link is lost
	ErrAborted          // the job was aborted
	ErrUnsupported      // the engine cannot do that
	ErrInternal         // a fault of the engine or of the native library
	ErrArg              // a bad argument
	ErrOp               // a reduction with this operator failed
	ErrRMASync          // a one-sided call outside an epoch that allows it
	ErrRMARange         // memory outside the window
)

// Error is a failure of an engine call.
type Error struct {
	Code   Code
	Reason string
}

func (e *Error) Error() string { return e.Reason }

func failure(c Code, format string, args ...any) *Error {
	return &Error{c, fmt.Sprintf(format, args...)}
}

// CodeOf gives the code of an error: OK for nil, ErrInternal for errors that are not of type Error.
func CodeOf(err error) Code {
	if err == nil {
		return OK
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ErrInternal
}

// Cell is where an operation's owner sees its end: z_cell of cgo/abi/abi.h, field by field. The owner keeps it in
// place from the start of the operation until Done; the engine writes it then and never again.
type Cell struct {
	done      uint32
	Error     int32 // Code
	Source    int32 // rank in the communicator
	Tag       int32
	Bytes     int64 // received; for a probe: size of the message
	Cancelled int32
	Stage     uint32 // the owner's
	request   uint64 // handle of the engine's request; 0: none
	Owner     uintptr
}

// Done reports whether the operation is over and the other fields are valid. Any thread.
func (c *Cell) Done() bool { return atomic.LoadUint32(&c.done) != 0 }

func (c *Cell) finish() {
	c.request = 0
	atomic.StoreUint32(&c.done, 1)
}

// Err is the result of a done operation.
func (c *Cell) Err() error {
	if c.Error == 0 {
		return nil
	}
	return &Error{Code(c.Error), codeTexts[c.Error]}
}

var codeTexts = map[int32]string{
	int32(ErrTruncate): "message is longer than the receive buffer", int32(ErrLink): "link lost", int32(ErrAborted): "job aborted",
	int32(ErrUnsupported): "not supported", int32(ErrInternal): "internal error", int32(ErrArg): "bad argument", int32(ErrOp): "reduction failed",
}
