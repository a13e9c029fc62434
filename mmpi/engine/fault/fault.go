// Package fault has the errors of the engine and of its layers, with their codes in cgo/abi/abi.h.
package fault

import (
	"errors"
	"fmt"
)

// Code is the result of an operation. The numbers are those of enum z_error in cgo/abi/abi.h.
type Code int32

// These are the codes.
const (
	OK          Code = iota
	Truncate         // the message was longer than the buffer
	Link             // a link is lost
	Aborted          // the job was aborted
	Unsupported      // the engine cannot do that
	Internal         // a fault of the engine or of the native library
	Arg              // a bad argument
	Op               // a reduction with this operator failed
	RMASync          // a one-sided call outside an epoch that allows it
	RMARange         // memory outside the window

	ProcFailed        // a process that the operation needs is in a lost cluster
	ProcFailedPending // a receive from any source, whose sender may be in a lost cluster, stays posted
	Revoked           // the communicator is revoked

	Device // the driver of a device cannot copy its memory
)

var texts = [...]string{
	OK: "", Truncate: "message is longer than the receive buffer", Link: "link lost", Aborted: "job aborted",
	Unsupported: "not supported", Internal: "internal error", Arg: "bad argument", Op: "reduction failed",
	RMASync: "one-sided call outside an epoch", RMARange: "memory outside the window",
	ProcFailed:        "a process that the operation needs is in a lost cluster",
	ProcFailedPending: "a cluster is lost, and the sender may be in it", Revoked: "the communicator is revoked",
	Device: "the driver of a device failed",
}

func (c Code) String() string {
	if c < 0 || int(c) >= len(texts) {
		return fmt.Sprintf("error %d", int32(c))
	}
	return texts[c]
}

// Error is a failure of an engine call.
type Error struct {
	Code   Code
	Reason string

	// Sent and Room are the sizes in bytes of a truncated message and of its buffer; 0 if not
	// known.
	Sent, Room int64
}

func (e *Error) Error() string { return e.Reason }

// New returns an error with a code and a text.
func New(c Code, format string, args ...any) *Error {
	return &Error{Code: c, Reason: fmt.Sprintf(format, args...)}
}

// CodeOf returns the code of an error: OK for nil, Internal for errors that are not of type Error.
func CodeOf(err error) Code {
	if err == nil {
		return OK
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Internal
}

// ClosedByProgram is the reason for the end of a job whose program has closed descriptors of the
// library.
const ClosedByProgram = "the program has closed descriptors that are not its own (closefrom, or close of a number twice), " +
	"among them some of MMPI's: close only descriptors that the program has opened"
