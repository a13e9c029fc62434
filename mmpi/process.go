//go:build openmpi || mpich

package mmpi

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	_ "github.com/leidenzipper/zipper/cgo/abi" // the engine, for jobs of several clusters
	"github.com/leidenzipper/zipper/cgo/mpi"
)

// Level says who may call MPI; see the package comment.
type Level int

const (
	Serialized Level = iota // any goroutine; calls take turns
	Funneled                // only the goroutine that called Init
	Multiple                // any goroutine, the MPI library locks
)

// Process is this process's place in the job. One per OS process.
type Process struct {
	level Level
	mu    sync.Mutex // taken around every call when Serialized
	world *Comm
	self  *Comm

	batches sync.Pool // of *batch
	pinners sync.Pool // of *runtime.Pinner: making one sets a finalizer, which costs more than a small message
}

func (p *Process) pinner() *runtime.Pinner {
	if q, ok := p.pinners.Get().(*runtime.Pinner); ok {
		return q
	}
	return new(runtime.Pinner)
}

// batch is requests that wait together.
type batch struct {
	mpi.Batch
	open []*Request
}

func (p *Process) batch() *batch {
	if b, ok := p.batches.Get().(*batch); ok {
		return b
	}
	return &batch{open: make([]*Request, 0, mpi.MaxBatch)}
}

// Init starts MPI, and joins the other clusters if the environment says so. It fails if MPI is
// already started, if the library does not grant the level, or if joining fails.
func Init(level Level) (*Process, error) {
	if mpi.Initialized() {
		return nil, errors.New("mmpi: MPI is already initialized in this process")
	}
	want := map[Level]int{Serialized: mpi.Serialized, Funneled: mpi.Funneled, Multiple: mpi.Multiple}
	w, ok := want[level]
	if !ok {
		return nil, fmt.Errorf("mmpi: unknown level %d", level)
	}
	runtime.LockOSThread()
	if level != Funneled {
		defer runtime.UnlockOSThread()
	}
	if err := mpi.RegisterEngine(); err != nil {
		return nil, err
	}
	got, err := mpi.Init(w)
	if err != nil {
		return nil, err
	}
	if got < w {
		_ = mpi.Finalize() // the error that counts follows
		return nil, fmt.Errorf("mmpi: the MPI library (%s) grants only thread level %d of the wanted %d",
			mpi.LibraryVersion(), got, w)
	}
	p := &Process{level: level}
	if p.world, err = p.comm(mpi.World()); err != nil {
		return nil, err
	}
	if p.self, err = p.comm(mpi.Self()); err != nil {
		return nil, err
	}
	return p, nil
}

// World is the communicator of all processes of all clusters.
func (p *Process) World() *Comm { return p.world }

// Self is the communicator of this process alone.
func (p *Process) Self() *Comm { return p.self }

// Finalize ends MPI; every process must call it, after its last request is done. The Process is
// dead afterwards; end with Exit.
func (p *Process) Finalize() error {
	unlock := p.lock()
	defer unlock()
	return mpi.Finalize()
}

// Exit ends the process as C's exit does, in place of os.Exit or of returning from main. Since
// version 4.2 MPICH tells its launcher in exit handlers, which Go does not call, that a process has
// ended well. Without that the launcher may kill processes that are not quite through, and end the
// job with status 9. Nothing deferred is run.
func Exit(code int) { mpi.Exit(code) }

// Abort ends all processes of all clusters with the exit code. It does not return.
func (p *Process) Abort(code int) { mpi.Abort(code) }

// Library describes the MPI library under this process.
func (p *Process) Library() string { return mpi.LibraryVersion() }

// Wtime is MPI's clock in seconds; only differences in one process mean something.
func (p *Process) Wtime() float64 { return mpi.Wtime() }

func (p *Process) lock() (unlock func()) {
	if p.level != Serialized {
		return func() {}
	}
	p.mu.Lock()
	return p.mu.Unlock
}

// direct: a blocking MPI call is allowed, because no other goroutine could be kept out by it.
func (p *Process) direct() bool { return p.level != Serialized }

// spins is how often a waiting call asks MPI before it starts to give way; at some 100 ns each this
// covers the usual latency of a message.
const spins = 200

// await asks again and again until done, giving way to other goroutines, longer and longer.
func (p *Process) await(ctx context.Context, try func() (done bool, err error)) error {
	pause := 20 * time.Microsecond
	for i := 0; ; i++ {
		unlock := p.lock()
		done, err := try()
		unlock()
		if done || err != nil {
			return err
		}
		switch {
		case i < spins:
			if i%16 == 15 {
				runtime.Gosched()
			}
		case ctx.Err() != nil:
			return ctx.Err()
		default:
			time.Sleep(pause)
			if pause < 500*time.Microsecond {
				pause *= 2
			}
		}
	}
}
