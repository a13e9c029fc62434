package engine

import (
	"github.com/leidenzipper/zipper/mmpi/engine/coll"
	"github.com/leidenzipper/zipper/mmpi/engine/pt2pt"
)

// Native is the part of the cluster's own MPI library that the engine uses. The calls are made only
// from inside an engine call, on the caller's thread, with the engine locked: they must not call
// the engine. In a process they reach the C shim (package cgo/abi); tests have a simulated cluster.
// SetActivity, Access and Fail may be called from the progress thread.
type Native interface {
	pt2pt.Native
	coll.Native

	// Compute sets inout = inout fn in over numbers of a kind (enum z_fn, enum z_number in
	// cgo/abi/abi.h). It calls no native MPI; any thread may call it.
	Compute(fn, kind uint8, inout, in []byte) error
	// RecodeNumbers converts numbers of a kind in place, as rma.Config.Recode. It is called only if
	// World.Mixed is set, in any thread.
	RecodeNumbers(kind uint8, b []byte, in bool)

	// SetActivity is called with the engine's activity when that changes.
	SetActivity(Activity)
	// Access accesses memory of the program as the program would, which ends the process unless a
	// signal handler repairs the mapping.
	Access(BadMemory)
	// Fail ends the process; it does not return.
	Fail(code int, reason string)
}

// Probe is a message found in native MPI.
type Probe = pt2pt.Probe

// Activity is the kind of work that an engine has under way.
type Activity int32

const (
	Idle Activity = iota // threads may block inside native MPI
	Busy                 // threads must call Progress
	// Staging says that only native stages of collectives are under way, which no message from
	// another cluster can end: a wait may test them itself.
	Staging
)
