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

// Level is the thread level; see the package comment.
type Level int

const (
	Serialized Level = iota // any goroutine; calls take turns
	Funneled                // only the goroutine that called Init
	Multiple                // any goroutine; the MPI library does the locking
)

// Process is this process's place in the job. There is one per OS process.
type Process struct {
	level Level
	mu    sync.Mutex // held during every call if Serialized
	world *Comm
	self  *Comm

	batches sync.Pool // pool of *batch
	// pinners is a pool of *runtime.Pinner. Making one sets a finalizer, which costs more than a
	// small message.
	pinners sync.Pool
}

func (p *Process) pinner() *runtime.Pinner {
	if q, ok := p.pinners.Get().(*runtime.Pinner); ok {
		return q
	}
	return new(runtime.Pinner)
}

// batch is a set of requests that are waited for together.
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

// Init starts MPI, and joins the other clusters if the environment describes a job. It fails if MPI
// is already started, if the library does not grant the level, or if joining fails.
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
		_ = mpi.Finalize() // the error below is the cause
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

// World returns the communicator of all processes of all clusters.
func (p *Process) World() *Comm { return p.world }

// Self returns the communicator of this process alone.
func (p *Process) Self() *Comm { return p.self }

// Finalize ends MPI. Every process must call it, after its last request is done. The Process must
// not be used afterwards. The program should end with Exit.
func (p *Process) Finalize() error {
	unlock := p.lock()
	defer unlock()
	return mpi.Finalize()
}

// Exit ends the process as C's exit does, in place of os.Exit or of returning from main. Since
// version 4.2 MPICH tells its launcher in exit handlers, which Go does not call, that a process has
// ended successfully. Without that the launcher may kill processes that have not quite finished,
// and end the job with status 9. Exit runs no deferred functions.
func Exit(code int) { mpi.Exit(code) }

// Abort ends all processes of all clusters with the exit code. It does not return.
func (p *Process) Abort(code int) { mpi.Abort(code) }

// Library returns a description of the MPI library under this process.
func (p *Process) Library() string { return mpi.LibraryVersion() }

// Wtime returns MPI's clock in seconds. Only differences in one process have a meaning.
func (p *Process) Wtime() float64 { return mpi.Wtime() }

func (p *Process) lock() (unlock func()) {
	if p.level != Serialized {
		return func() {}
	}
	p.mu.Lock()
	return p.mu.Unlock
}

// direct reports whether a blocking MPI call is allowed, because it would block no other goroutine.
func (p *Process) direct() bool { return p.level != Serialized }

// spins is the number of polls of MPI by a waiting call before it starts to yield. At some 100 ns
// each this covers the usual latency of a message.
const spins = 200

// await calls try until it is done, and yields to other goroutines for longer and longer.
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
