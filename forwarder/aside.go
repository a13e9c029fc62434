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
