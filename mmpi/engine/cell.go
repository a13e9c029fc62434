package engine

import "sync/atomic"

// Wildcards and rank constants, as in cgo/abi/abi.h.
const (
	AnySource = -1
	AnyTag    = -1
	ProcNull  = -2
	Remote    = -1 // Comm.Native: that rank is in another cluster
)

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
	return &Error{Code: Code(c.Error), Reason: Code(c.Error).String()}
}
