package engine

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/mmpi/engine/fault"
)

// driver is what waiting threads see of the engine (wait.Driver), goroutines that open links
// (sync.Locker), and windows (rmawin.Host).
type driver Engine

func (d *driver) engine() *Engine { return (*Engine)(d) }

// Lock implements sync.Locker, as does Unlock.
func (d *driver) Lock() { d.engine().lock() }

// TryLock is Lock for who has something better to do than to wait.
func (d *driver) TryLock() bool {
	if !d.mu.TryLock() {
		return false
	}
	d.p2p.Completions = 0
	return true
}

// Unlock lets others see what has changed.
func (d *driver) Unlock() { d.engine().unlock() }

// Now is the time since the engine's start.
func (d *driver) Now() time.Duration { return d.links.Now() }

// Step moves bytes once, and serves windows.
func (d *driver) Step() int {
	d.coalesce.over()
	n := d.links.Step()
	d.windows.Serve()
	if bad, ok := d.links.Memory.Take(); ok { // nobody in the program waits for it
		d.native.Access(bad)
		d.links.Memory.Release()
	}
	return n
}

// Tick sends acknowledgements that found no frame to ride on, and pings, and looks whether the job
// stands still.
func (d *driver) Tick(now time.Duration) {
	d.stands.tick(now)
	d.links.Tick(now)
}

// Flush writes out messages that are held.
func (d *driver) Flush() {
	if d.coalesce.some {
		d.coalesce.over()
		d.links.Flush()
	}
}

// Ended reports whether the engine has.
func (d *driver) Ended() bool { return d.stopping || d.p2p.Err() != nil }

// Quiet reports whether a tick would find nothing to do.
func (d *driver) Quiet() bool { return !d.coalesce.some && d.p2p.Err() == nil && d.links.Quiet() }

// Pending reports whether there is output that is not held on purpose.
func (d *driver) Pending() bool { return !d.coalesce.some && d.links.Pending() }

// Arm prepares the links for sleeping on them.
func (d *driver) Arm() bool { return d.links.Arm() }

// Poll appends the links' descriptors.
func (d *driver) Poll(set []unix.PollFd) []unix.PollFd { return d.links.Poll(set) }

// EventsClosed fails the engine.
func (d *driver) EventsClosed() { d.engine().fatal(ErrInternal, 1, fault.ClosedByProgram) }

// Await makes progress until cond, called with the lock, or until the engine has failed.
func (d *driver) Await(cond func() bool) error { return d.engine().await(0, "", cond) }
