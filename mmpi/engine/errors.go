package engine

import "github.com/leidenzipper/zipper/mmpi/engine/fault"

// Code says how an operation ended; Error is a failure of an engine call.
type (
	Code  = fault.Code
	Error = fault.Error
)

// The codes, as in package fault.
const (
	OK             = fault.OK
	ErrTruncate    = fault.Truncate
	ErrLink        = fault.Link
	ErrAborted     = fault.Aborted
	ErrUnsupported = fault.Unsupported
	ErrInternal    = fault.Internal
	ErrArg         = fault.Arg
	ErrOp          = fault.Op
	ErrRMASync     = fault.RMASync
	ErrRMARange    = fault.RMARange

	ErrProcFailed        = fault.ProcFailed
	ErrProcFailedPending = fault.ProcFailedPending
	ErrRevoked           = fault.Revoked
	ErrDevice            = fault.Device
)

// CodeOf returns the code of an error: OK for nil, ErrInternal for errors that are not of type
// Error.
func CodeOf(err error) Code { return fault.CodeOf(err) }

func failure(c Code, format string, args ...any) *Error { return fault.New(c, format, args...) }
