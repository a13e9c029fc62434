package engine

import (
	"github.com/leidenzipper/zipper/mmpi/engine/coll"
	"github.com/leidenzipper/zipper/mmpi/engine/pt2pt"
)

// Native is what the engine asks of the cluster's own MPI library. The calls are made only from
// inside an engine call, on the caller's thread, with the engine locked: they must not call the
// engine. In a process they reach the C shim (package cgo/abi); tests bring a simulated cluster.
// SetActivity, Access and Fail may come from the progress thread.
type Native interface {
	pt2pt.Native
	coll.Native

	// Compute makes inout = inout fn in over numbers of a kind (enum z_fn, enum z_number in
	// cgo/abi/abi.h). It calls no native MPI; any thread.
	Compute(fn, kind uint8, inout, in []byte) error

	// SetActivity tells what the engine has under way, when that changes.
	SetActivity(Activity)
	// Access accesses memory of the program as the program would, which ends the process unless a
	// signal handler repairs the mapping.
	Access(BadMemory)
	// Fail ends the process; it does not return.
	Fail(code int, reason string)
}

// Probe is a message found in native MPI.
type Probe = pt2pt.Probe

// Activity is what an engine has under way.
type Activity int32

const (
	Idle Activity = iota // threads may block inside native MPI
	Busy
	// Staging is nothing but native stages of collectives, which no message from another cluster
	// can end: a wait may test them itself.
	Staging
)
