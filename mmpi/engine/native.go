package engine

// Native is what the engine asks of the cluster's own MPI library. The calls are made only from inside an
// engine call, on the caller's thread, with the engine locked: they must not call the engine. In a process they reach
// the C shim (package cgo/abi); tests bring a simulated cluster. SetActivity and Fail may come from the background thread.
type Native interface {
	// Improbe looks for a message in the local part of the communicator; source is a native rank there or AnySource.
	Improbe(comm *Comm, source, tag int) (Probe, bool, error)
	// Iprobe is Improbe that leaves the message where it is; Probe.Message is 0.
	Iprobe(comm *Comm, source, tag int) (Probe, bool, error)
	// Imrecv starts to receive a message found by Improbe into the request's own buffer.
	Imrecv(r *Request, message uint64) error
	// Irecv posts the request's receive natively after all: nothing shadows it any more.
	Irecv(r *Request) error
	// Test reports whether a receive started by Imrecv or Irecv is over, and fills in the cell but for Done.
	Test(r *Request) (bool, error)
	// Cancel cancels a receive started by Irecv.
	Cancel(r *Request) error

	// Coll starts a native nonblocking collective over the local part of the communicator; ranks and counts are local. c is not kept, its buffers are until the end.
	Coll(comm *Comm, c *Coll) (token uint64, err error)
	// CollTest reports whether it is over; then the token is dead.
	CollTest(token uint64) (bool, error)
	// ReduceLocal computes inout = in op inout over count elements; typ and op are native handles.
	ReduceLocal(in, inout []byte, count int, typ, op uint64) error

	// Compute makes inout = inout fn in over numbers of a kind (enum z_fn, enum z_number in cgo/abi/abi.h). It calls no native MPI; any thread.
	Compute(fn, kind uint8, inout, in []byte) error

	// SetActivity tells what the engine has under way, when that changes.
	SetActivity(Activity)
	// Fail ends the process; it does not return.
	Fail(code int, reason string)
}

// Activity is what an engine has under way.
type Activity int32

const (
	Idle Activity = iota // threads may block inside native MPI
	Busy
	Staging // nothing but native stages of collectives, which no message from another cluster can end: a wait may test them itself
)

// Probe is a message found in native MPI.
type Probe struct {
	Message uint64 // not 0 (except by Iprobe)
	Source  int    // rank in the spanning communicator
	Tag     int
	Bytes   int64
}
