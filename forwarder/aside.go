// Package forwarder relays frames between the ranks of a job that share no network.
//
// Its parts, each of which knows only those below it:
//
//	forwarder   jobs: who is in one, how it gathers (join.go, gather.go, layout.go), what several hops add
//	            (hops.go, bridge.go) and several forwarders (rails.go), how it ends (end.go)
//	relay       bytes from one connection to another
//	loop        the event loops
//	nat         the kernel's table of connections that it passes on
//
// The way of a frame is in package relay. Nothing on an event loop blocks: dialling other
// forwarders and asking the kernel are done aside (aside), and their completion is posted to a
// loop.
//
// Locks: Forwarder.mu (joining and ending, never on a frame's way), then those of package relay.
package forwarder

// aside runs work, which may block, on a goroutine of its own, and then done, which must not, on an
// event loop. done may be nil. Any thread.
func (f *Forwarder) aside(work, done func()) {
	spawn := f.asides.Go
	if f.cfg.spawn != nil {
		spawn = f.cfg.spawn
	}
	spawn(func() {
		work()
		if done != nil && !f.workers[0].Loop.Post(done) {
			done() // the loops have ended: nobody is in its way
		}
	})
}
