// Package abi is the Go side of abi.h: it exports the ze_ functions over package engine. A program
// that links it contains the engine; package lib makes libmmpi-engine.so of it.
//
// The C interface needs one engine for the process's job, and one for each connection to another
// job. These engines and the job are this package's only state.
//
// All exports may be called by any thread of the program that may call MPI; abi.h documents their
// results. After an error code ze_error returns the text of the error, to the thread whose call has
// failed.
package abi

// #include <stdlib.h>
// #include "native.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/leidenzipper/zipper/cgo/unmaps"
	"github.com/leidenzipper/zipper/internal/facts"
	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/mmpi/boot"
	"github.com/leidenzipper/zipper/mmpi/engine"
	"github.com/leidenzipper/zipper/mmpi/ports"
)

// engine.Cell has the layout of z_cell: these constants do not compile if sizes or offsets differ.
const (
	_ = uint(unsafe.Sizeof(engine.Cell{}) - C.sizeof_z_cell)
	_ = uint(C.sizeof_z_cell - unsafe.Sizeof(engine.Cell{}))
	_ = uint(unsafe.Offsetof(engine.Cell{}.Owner) - unsafe.Offsetof(C.z_cell{}.owner))
	_ = uint(unsafe.Offsetof(C.z_cell{}.owner) - unsafe.Offsetof(engine.Cell{}.Owner))
	_ = uint(unsafe.Offsetof(engine.Cell{}.Bytes) - unsafe.Offsetof(C.z_cell{}.bytes))
	_ = uint(unsafe.Offsetof(engine.Cell{}.Stage) - unsafe.Offsetof(C.z_cell{}.stage))
	_ = uint(unsafe.Offsetof(engine.Cell{}.Sent) - unsafe.Offsetof(C.z_cell{}.sent))
	_ = uint(unsafe.Offsetof(engine.Cell{}.Arrived) - unsafe.Offsetof(C.z_cell{}.arrived))
)

// engineCell is the type of a z_cell in the exported functions.
type engineCell C.z_cell

func (c *engineCell) cell() *engine.Cell { return (*engine.Cell)(unsafe.Pointer(c)) }

var (
	running atomic.Pointer[engine.Engine]
	// ended keeps the job's engine after its end, because native MPI may still write to the memory
	// of collectives that a loss has ended.
	ended atomic.Pointer[engine.Engine]

	embedded atomic.Bool
)

// Embedded tells the package that this Go runtime does nothing but run the engine in a program that
// is not written in Go (engine.Config).
func Embedded() { embedded.Store(true) }

// getenv returns a variable of the program's environment, or "" if it is not set. It asks the C
// library, because Go's copy of the environment misses changes that C has made since. ze_start
// calls it on the program's own thread, which therefore changes nothing meanwhile. No other thread
// may call it, because the program may change the environment then.
func getenv(name string) string {
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	return C.GoString(C.getenv(n))
}

// known is the job once it has been read, because its secret is no longer in the environment then.
var known atomic.Pointer[jobenv.Job]

// readJob reads the job from the environment and removes the secret from it, because neither the
// program's children nor readers of its environment need the secret.
func readJob() (jobenv.Job, error) {
	if j := known.Load(); j != nil {
		return *j, nil
	}
	job, err := jobenv.From(getenv)
	if err != nil {
		return job, err
	}
	name := C.CString(jobenv.VarSecret)
	defer C.free(unsafe.Pointer(name))
	C.zn_forget(name)
	_ = os.Unsetenv(jobenv.VarSecret) // Go's own copy; only a bad name fails
	known.Store(&job)
	return job, nil
}

// result converts an error to its code, and keeps its text for ze_error on this thread.
func result(err error) C.int {
	if err == nil {
		return C.Z_OK
	}
	C.zn_set_error(C.CString(err.Error()))
	return C.int(engine.CodeOf(err))
}

var (
	errNotStarted = &engine.Error{Code: engine.ErrArg, Reason: "the engine is not running"}
	errNoComm     = &engine.Error{Code: engine.ErrArg, Reason: "no such communicator in the engine"}
)

// with calls f with the job's engine, and converts its error to an enum z_error. Closures that are
// passed to it stay on the stack.
func with(f func(*engine.Engine) error) C.int {
	e := running.Load()
	if e == nil {
		return result(errNotStarted)
	}
	return result(f(e))
}

// on calls f with a communicator and its engine, which may be that of a link, and converts its
// error to an enum z_error.
func on(comm int32, f func(*engine.Engine, *engine.Comm) error) C.int {
	return over(comm>>linkShift, func(e *engine.Engine) error {
		if c := e.Comm(comm & idMask); c != nil {
			return f(e, c)
		}
		return errNoComm
	})
}

// bytes returns a buffer of C as a slice. The address is passed as a number, because that of an
// empty buffer may have any value.
func bytes(p uintptr, n int64) []byte {
	if n <= 0 || p == 0 {
		return nil
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&p)), n)
}

//export ze_start
func ze_start(n *C.z_native, loc *C.z_local, out *C.z_world) C.int {
	if n.abi != C.Z_ABI_VERSION {
		return result(&engine.Error{Code: engine.ErrArg,
			Reason: "libmmpi and libmmpi-engine.so are of different releases: install both from one"})
	}
	if running.Load() != nil {
		return result(&engine.Error{Code: engine.ErrArg, Reason: "the engine is running already"})
	}
	l := boot.Local{Rank: int(loc.rank), Size: int(loc.size), TagUB: int(loc.tag_ub),
		Library: C.GoString(loc.library), Facts: facts.Word(loc.facts), Host: C.GoString(loc.host), Embedded: embedded.Load(), Spawned: loc.spawned != 0,
		Getenv: getenv,
		Hosts:  slices.Clone(unsafe.Slice((*int32)(unsafe.Pointer(loc.hosts)), int(loc.size)))}
	*out = C.z_world{size: loc.size, rank: loc.rank, clusters: 1, tag_ub: loc.tag_ub}
	job, err := readJob()
	if errors.Is(err, jobenv.ErrNoJob) {
		return C.Z_OK
	}
	if l.Embedded && loc.threads != 0 {
		runtime.GOMAXPROCS(threadsAtOnce)
	}
	if err != nil && l.Spawned { // a spawned process may have no more of the job's description than this
		job, err = jobenv.Job{ID: getenv(jobenv.VarJob), Cluster: getenv(jobenv.VarCluster)}, nil
	}
	if err != nil {
		return result(&engine.Error{Code: engine.ErrArg, Reason: err.Error()})
	}
	l.Warn = func(s string) {
		fmt.Fprintf(os.Stderr, "MMPI: cluster %s rank %d: warning: %s\n", job.Cluster, l.Rank, s)
	}
	l.Waits = func() engine.Waits { return waitsOf(n.waits) }
	l.Leave = func() bool { return leaves(n) }
	if job.Cache && l.Embedded {
		list, err := unmaps.Find()
		if err != nil {
			return result(&engine.Error{Code: engine.ErrArg, Reason: jobenv.VarCache + "=1: " + err.Error()})
		}
		l.Unmaps = list
	}
	e, w, err := boot.Join(context.Background(), job, l, native{n, 0})
	if err != nil {
		return result(err)
	}
	cluster, first := w.Place(w.Rank)
	*out = C.z_world{size: C.int32_t(w.Size()), rank: C.int32_t(w.Rank), clusters: C.int32_t(len(w.Clusters)),
		cluster: C.int32_t(cluster),
		offset:  C.int32_t(first), tag_ub: C.int32_t(w.TagUB)}
	if e != nil {
		out.runs = 1
		out.recording = C.int32_t(bool32(e.Recording()))
		out.order = kept(w.Order)
		out.libraries = C.int32_t(w.Libraries)
		out.on_loss = C.int32_t(bool32(e.OnLoss()))
		out.mixed = C.int32_t(bool32(w.Mixed))
		if w.Namesake {
			out.namesake = C.CString(w.Clusters[cluster].Name)
		}
		running.Store(e)
		if l.Spawned {
			job.Forwarders = nil // without forwarders links connects to no other job
		}
		links.start(ports.Self{Job: job, Local: l, Rank: w.Rank, Mixed: w.Mixed}, n, int32(w.Size()))
	}
	return C.Z_OK
}

// leaves reports whether the program ends the job as soon as the calls in progress have returned.
func leaves(n *C.z_native) bool { return atomic.LoadInt32((*int32)(unsafe.Pointer(n.leave))) != 0 }

// waitsOf returns the shim's current wait counters and call name, or no counters if a process
// outside of the job may end the wait.
func waitsOf(n *C.z_waits) (w engine.Waits) {
	if atomic.LoadInt32((*int32)(unsafe.Pointer(&n.outside))) != 0 {
		return w
	}
	w.Begun = atomic.LoadUint32((*uint32)(unsafe.Pointer(&n.begun)))
	w.Ended = atomic.LoadUint32((*uint32)(unsafe.Pointer(&n.ended)))
	if w.Begun != w.Ended {
		w.Call = C.GoString((*C.char)(atomic.LoadPointer((*unsafe.Pointer)(unsafe.Pointer(&n.call)))))
	}
	return w
}

// kept returns a copy of a list in memory of C, which Go never frees, or nil for an empty list.
func kept(list []int32) *C.int32_t {
	if len(list) == 0 {
		return nil
	}
	p := (*C.int32_t)(C.malloc(C.size_t(4 * len(list))))
	copy(unsafe.Slice((*int32)(unsafe.Pointer(p)), len(list)), list)
	return p
}

//export ze_finish
func ze_finish() C.int {
	e := running.Load()
	if e == nil {
		return C.Z_OK
	}
	links.finish()
	err := e.Finish()
	if !leaves(links.native) { // otherwise MPI_Abort is called next
		ended.Store(e)
		running.Store(nil)
	}
	return result(err)
}

//export ze_abort
func ze_abort(status int32) {
	e := running.Load()
	switch {
	case e == nil:
	case C.zn_within() > 0:
		e.AbortWithin(int(status), "MPI_Abort")
	default:
		links.abort(int(status))
		e.Abort(int(status), "MPI_Abort")
	}
}

//export ze_error
func ze_error() *C.char { return C.zn_error() }

//export ze_next_context
func ze_next_context(link int32) (id uint64) {
	over(link, func(e *engine.Engine) error {
		id = e.NewContext()
		return nil
	})
	return id
}

//export ze_comm_add
func ze_comm_add(link int32, user uintptr, context uint64, size, rank int32, world, local *int32, localSize int32,
	id *int32) C.int {
	return over(link, func(e *engine.Engine) error {
		if size <= 0 {
			return &engine.Error{Code: engine.ErrArg, Reason: "a communicator without ranks"}
		}
		ranks, err := links.ranks(link, unsafe.Slice(world, size))
		if err != nil {
			return err
		}
		c, err := e.AddComm(user, context, int(rank), ranks, unsafe.Slice(local, size))
		if err == nil && c.ID() > idMask {
			err = errors.Join(&engine.Error{Code: engine.ErrArg, Reason: "too many communicators"}, e.DropComm(c))
		}
		if err == nil {
			*id = link<<linkShift | c.ID()
			links.hold(link)
		}
		return err
	})
}

//export ze_comm_drop
func ze_comm_drop(comm int32) C.int {
	rc := on(comm, func(e *engine.Engine, c *engine.Comm) error { return e.DropComm(c) })
	links.release(comm >> linkShift)
	return rc
}

//export ze_isend
func ze_isend(comm, kind int32, buf uintptr, n int64, dest, tag, mode int32, cell *engineCell) C.int {
	return on(comm, func(e *engine.Engine, c *engine.Comm) error {
		return e.Isend(c, int(kind), bytes(buf, n), int(dest), int(tag), mode == C.Z_SYNCHRONOUS, cell.cell())
	})
}

//export ze_supply
func ze_supply(comm int32, request uint64) C.int {
	return on(comm, func(e *engine.Engine, _ *engine.Comm) error {
		engine.Supply(e, request)
		return nil
	})
}

//export ze_irecv
func ze_irecv(comm, kind int32, buf uintptr, n int64, source, tag int32, cell *engineCell) C.int {
	return on(comm, func(e *engine.Engine, c *engine.Comm) error {
		return e.Irecv(c, int(kind), bytes(buf, n), int(source), int(tag), cell.cell())
	})
}

//export ze_shadowed
func ze_shadowed(comm, source, tag int32) (yes int32) {
	_ = on(comm, func(e *engine.Engine, c *engine.Comm) error { // without an engine no receive is in it
		yes = bool32(e.Shadowed(c, int(source), int(tag)))
		return nil
	})
	return yes
}

//export ze_iprobe
func ze_iprobe(comm, source, tag int32, out *engineCell) C.int {
	return on(comm, func(e *engine.Engine, c *engine.Comm) error {
		return e.Iprobe(c, int(source), int(tag), out.cell())
	})
}

//export ze_improbe
func ze_improbe(comm, source, tag int32, out *engineCell, message *uint64, local *int32) C.int {
	return on(comm, func(e *engine.Engine, c *engine.Comm) error {
		h, nat, err := e.Improbe(c, int(source), int(tag), out.cell())
		*message, *local = h, bool32(nat)
		if !nat {
			*message |= uint64(comm>>linkShift) << messageShift
		}
		return err
	})
}

//export ze_mrecv
func ze_mrecv(message uint64, buf uintptr, n int64, cell *engineCell) C.int {
	return over(int32(message>>messageShift), func(e *engine.Engine) error {
		return e.Mrecv(message&(1<<messageShift-1), bytes(buf, n), cell.cell())
	})
}

//export ze_cancel
func ze_cancel(comm int32, cell *engineCell) C.int {
	return over(comm>>linkShift, func(e *engine.Engine) error { return e.Cancel(cell.cell()) })
}

//export ze_progress
func ze_progress(blockMicroseconds int32) C.int {
	e := running.Load()
	if e == nil {
		return 0
	}
	block := time.Duration(blockMicroseconds) * time.Microsecond
	if blockMicroseconds == C.Z_GIVE_WAY {
		block = engine.GiveWay
	}
	if links.any.Load() {
		return C.int(links.progress(e, block))
	}
	return C.int(e.Progress(block))
}

//export ze_fault
func ze_fault(out *C.z_fault) C.int {
	e := running.Load()
	if e == nil {
		return 0
	}
	if out == nil {
		engine.ReleaseBadMemory(e)
		links.released()
		return 0
	}
	bad, found := engine.TakeBadMemory(e)
	if !found {
		bad, found = links.fault()
	}
	if found {
		fillFault(out, bad)
	}
	return C.int(bool32(found))
}

//export ze_record
func ze_record(rank int32, bytes int64) {
	if e := running.Load(); e != nil {
		e.RecordLocal(int(rank), bytes)
	}
}

//export ze_record_taken
func ze_record_taken(rank int32) {
	if e := running.Load(); e != nil {
		e.RecordTaken(int(rank))
	}
}

//export ze_record_wait
func ze_record_wait(begins int32) {
	if e := running.Load(); e != nil {
		e.RecordWait(begins != 0)
	}
}
