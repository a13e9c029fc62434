package failover

// Finished notes that all processes have reached the end of the job. From now on no loss is an
// error.
func (t *Tracker) Finished() { t.finished = true }

// HasFinished reports whether Finished has been called.
func (t *Tracker) HasFinished() bool { return t.finished }

// FinishFailed reports whether the job would have ended with an error since Finished: nothing more
// arrives.
func (t *Tracker) FinishFailed() bool { return t.finishFailed }

// Fails reports whether an error ends the job. After Finished it does not, but is noted for
// FinishFailed.
func (t *Tracker) Fails() bool {
	if t.finished {
		t.finishFailed = true
	}
	return !t.finished
}

// Ignore has further losses ignored, and new links refused but for those that must carry a Bye.
func (t *Tracker) Ignore() { t.ignoring = true }

// Leave reports, once losses are ignored, whether Bye must be sent over a rail without a link as
// soon as it has one, because no other rail reaches some rank that it leads to: the last
// acknowledgements for that rank go there. The caller opens a rail that is Down, and begins a new
// attempt for one that is Dialing.
func (t *Tracker) Leave(r *Rail) bool {
	if !t.ignoring || r.owesBye || !r.dials || r.state > Dialing || !t.reach.needs(r) {
		return false
	}
	r.leave()
	return true
}

// Close ends the use of a rail when the job ends.
func (t *Tracker) Close(r *Rail) {
	t.closed = true
	r.close()
}
