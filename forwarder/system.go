package forwarder

import (
	"github.com/leidenzipper/zipper/forwarder/clock"
	"github.com/leidenzipper/zipper/forwarder/loop"
)

// aside runs work, which may block, on a goroutine of its own. It then runs done, which must not
// block, on an event loop; done may be nil. Any thread.
func (f *Forwarder) aside(work, done func()) {
	spawn := f.asides.Go
	if f.cfg.spawn != nil {
		spawn = f.cfg.spawn
	}
	spawn(func() {
		work()
		if done != nil && !f.workers[0].Loop.Post(done) {
			done() // the loops have ended, so no other thread interferes
		}
	})
}

// System has the services of the operating system for a Driven forwarder. Its clock calls functions
// between two turns of the forwarder.
type System interface {
	loop.System
	clock.Clock

	// Go runs a function that may block beside the forwarder.
	Go(fn func())
}
