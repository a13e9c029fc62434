package engine

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/mmpi/engine/fault"
)

// driver is the engine's interface for waiting threads (wait.Driver), for goroutines that open
// links (sync.Locker), and for windows (rmawin.Host).
type driver Engine

func (d *driver) engine() *Engine { return (*Engine)(d) }

// Lock implements sync.Locker, as does Unlock.
func (d *driver) Lock() { d.engine().lock() }

// TryLock locks the engine if that needs no wait, and reports whether it did.
func (d *driver) TryLock() bool {
	if !d.mu.TryLock() {
		return false
	}
	d.p2p.Completions = 0
	return true
}

// Unlock unlocks the engine and wakes threads that a change concerns.
func (d *driver) Unlock() { d.engine().unlock() }

// Now returns the time since the engine's start.
func (d *driver) Now() time.Duration { return d.links.Now() }

// Step moves bytes once, and serves windows. It returns a number greater than 0 if anything moved.
func (d *driver) Step() int {
	d.coalesce.over()
	n := d.links.Step()
	d.windows.Serve()
	d.consent.serve()
	if bad, ok := d.links.Memory.Take(); ok { // no thread of the program waits for it
		d.native.Access(bad)
		d.links.Memory.Release()
	}
	return n
}

// Tick sends pings, and acknowledgements that no frame has carried, and checks whether the job
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

// Ended reports whether the engine has ended.
func (d *driver) Ended() bool { return d.stopping || d.p2p.Err() != nil }

// Quiet reports whether a tick would at most have to detect silent links, so that ticks may be
// rare.
func (d *driver) Quiet() bool { return !d.coalesce.some && d.p2p.Err() == nil && d.links.Quiet() }

// Pending reports whether there is output that is not held on purpose.
func (d *driver) Pending() bool { return !d.coalesce.some && d.links.Pending() }

// Arm prepares the links for sleeping on them.
func (d *driver) Arm() bool { return d.links.Arm() }

// Poll appends the links' descriptors.
func (d *driver) Poll(set []unix.PollFd) []unix.PollFd { return d.links.Poll(set) }

// EventsClosed fails the engine.
func (d *driver) EventsClosed() { d.engine().fatal(ErrInternal, 1, fault.ClosedByProgram) }

// Await makes progress until cond, called with the lock, returns true. It returns an error if the
// engine has failed.
func (d *driver) Await(cond func() bool) error { return d.engine().await(0, "", cond) }
