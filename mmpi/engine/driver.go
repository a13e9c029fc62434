package engine

import (
	"time"

	"golang.org/x/sys/unix"
)

// driver is what waiting threads see of the engine (wait.Driver).
type driver Engine

func (d *driver) engine() *Engine { return (*Engine)(d) }

// Lock implements sync.Locker, as do TryLock and Unlock.
func (d *driver) Lock() { d.engine().lock() }

// TryLock is lock for who has something better to do than to wait.
func (d *driver) TryLock() bool {
	if !d.mu.TryLock() {
		return false
	}
	d.completions = 0
	return true
}

// Unlock lets others see what has changed.
func (d *driver) Unlock() { d.engine().unlock() }

// Now is the time since the engine's start.
func (d *driver) Now() time.Duration { return d.engine().now() }

// Step moves bytes once, and serves windows.
func (d *driver) Step() int {
	e := d.engine()
	e.hold.over()
	n := e.stepRails()
	e.serveWindows()
	return n
}

// Tick sends acknowledgements that found no frame to ride on, and pings.
func (d *driver) Tick(now time.Duration) { d.engine().tick(now) }

// Flush writes out messages that are held.
func (d *driver) Flush() {
	e := d.engine()
	if e.hold.some {
		e.hold.over()
		e.writeOut()
	}
}

// Ended reports whether the engine has.
func (d *driver) Ended() bool { return d.stopping || d.err != nil }

// Quiet reports whether a tick would find nothing to do.
func (d *driver) Quiet() bool { return d.engine().quiet() }

// Pending reports whether there is output that is not held on purpose.
func (d *driver) Pending() bool { return !d.hold.some && d.engine().pending() }

// Arm prepares the links for sleeping on them.
func (d *driver) Arm() bool { return d.engine().arm() }

// Poll appends the links' descriptors.
func (d *driver) Poll(set []unix.PollFd) []unix.PollFd { return d.engine().pollLinks(set) }

func (e *Engine) now() time.Duration { return time.Since(e.start) }
