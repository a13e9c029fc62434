package engine

// Native is what the engine asks of the cluster's own MPI library. The calls are made only from inside an
// engine call, on the caller's thread. In a process they reach the C shim (package cgo/abi); tests bring a
// simulated cluster.
type Native interface {
	// Improbe looks for a message in the local part of the communicator; source is a native rank there or AnySource.
	Improbe(comm *Comm, source, tag int) (Probe, bool, error)
	// Imrecv starts to receive a message found by Improbe into the request's own buffer.
	Imrecv(r *Request, message uint64) error
	// Irecv posts the request's receive natively after all: nothing shadows it any more.
	Irecv(r *Request) error
	// Test reports whether a receive started by Imrecv or Irecv is over, and fills in the request's result.
	Test(r *Request) (bool, error)
	// Cancel cancels a receive started by Irecv.
	Cancel(r *Request) error
	// SetBusy(false) allows threads to block inside native MPI.
	SetBusy(bool)
	// Fail ends the process; it does not return.
	Fail(code int, reason string)
}

// Probe is a message found in native MPI.
type Probe struct {
	Message uint64
	Source  int // rank in the spanning communicator
	Tag     int
	Bytes   int64
}
