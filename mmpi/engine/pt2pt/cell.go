package pt2pt

import (
	"sync/atomic"

	"github.com/leidenzipper/zipper/mmpi/engine/fault"
)

// Wildcards and rank constants, as in cgo/abi/abi.h.
const (
	AnySource = -1
	AnyTag    = -1
	ProcNull  = -2
	Remote    = -1 // AddComm: that rank is in another cluster
)

// Cell is where an operation's owner sees its end: z_cell of cgo/abi/abi.h, field by field. The
// owner keeps it in place from the start of the operation until Done; the engine writes it then and
// never again.
type Cell struct {
	done      uint32
	Error     int32 // fault.Code
	Source    int32 // rank in the communicator
	Tag       int32
	Bytes     int64 // received; for a probe: size of the message
	Cancelled int32
	Stage     uint32 // the owner's
	request   uint64 // handle of the engine's request; 0: none
	Owner     uintptr
	Sent      int64 // truncated: bytes of the message, where Bytes were expected; 0: not known
}

// Done reports whether the operation is over and the other fields are valid. Any thread.
func (c *Cell) Done() bool { return atomic.LoadUint32(&c.done) != 0 }

// Begin makes the cell that of an operation that starts and is none of the endpoint's requests.
func (c *Cell) Begin() { c.Error, c.Cancelled, c.Bytes, c.request, c.Sent = 0, 0, 0, 0, 0 }

// Finish makes it done: the other fields are filled in.
func (c *Cell) Finish() {
	c.request = 0
	atomic.StoreUint32(&c.done, 1)
}

// Err is the result of a done operation.
func (c *Cell) Err() error {
	if c.Error == 0 {
		return nil
	}
	e := &fault.Error{Code: fault.Code(c.Error), Reason: fault.Code(c.Error).String()}
	if e.Code == fault.Truncate {
		e.Sent, e.Room = c.Sent, c.Bytes
	}
	return e
}
