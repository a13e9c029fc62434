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

// Cell tells an operation's owner that it has ended: z_cell of cgo/abi/abi.h, field by field. The
// owner keeps it in place from the start of the operation until Done. The engine does not write it
// after that.
type Cell struct {
	done      uint32
	Error     int32 // the fault.Code of the result
	Source    int32 // the sender's rank in the communicator
	Tag       int32
	Bytes     int64 // the number of bytes received; after a probe, the message's size in bytes
	Cancelled int32
	Stage     uint32  // a value of the owner, which the engine preserves
	request   uint64  // the handle of the engine's request; 0: none
	Owner     uintptr // a pointer of the owner, which the engine preserves
	Sent      int64   // the size of a truncated message in bytes, of which Bytes fit; 0: not known
	Missing   int64   // the number of bytes at the end of a send's buffer that are not there yet; any thread
	Arrived   int64   // the number of bytes at the front of a long receive's buffer that have arrived
}

// Done reports whether the operation is over and the other fields are valid. Any thread.
func (c *Cell) Done() bool { return atomic.LoadUint32(&c.done) != 0 }

// Request returns the handle of the engine's request, for Supply, or 0 if there is none.
func (c *Cell) Request() uint64 { return c.request }

// missing returns the number of bytes at the end of a send's buffer that are not there yet.
func (c *Cell) missing() int64 { return atomic.LoadInt64(&c.Missing) }

// Begin resets the cell for an operation that starts and is none of the endpoint's requests.
func (c *Cell) Begin() { c.Error, c.Cancelled, c.Bytes, c.request, c.Sent = 0, 0, 0, 0, 0 }

// Finish marks the operation as done. The caller has filled in the other fields.
func (c *Cell) Finish() {
	c.request = 0
	atomic.StoreUint32(&c.done, 1)
}

// Err returns the result of an operation that is done.
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
