package failover

// Finished records that all processes have reached the end of the job. From then on the loss of a
// link is no error.
func (t *Tracker) Finished() { t.finished = true }

// HasFinished reports whether Finished has been called.
func (t *Tracker) HasFinished() bool { return t.finished }

// FinishFailed reports whether an error since Finished would have ended the job. If so, nothing
// more arrives.
func (t *Tracker) FinishFailed() bool { return t.finishFailed }

// Fails reports whether an error ends the job. After Finished it returns false, and records the
// error for FinishFailed.
func (t *Tracker) Fails() bool {
	if t.finished {
		t.finishFailed = true
	}
	return !t.finished
}

// Ignore makes the Tracker ignore further losses, and refuse new links except those that must carry
// a Bye.
func (t *Tracker) Ignore() { t.ignoring = true }

// Leave reports whether the caller must open rail r, which has no link, to send Bye over it. That
// is so after Ignore if r leads to a rank that no rail reaches: the last acknowledgements for that
// rank go over r. The caller reconnects a rail that is Down, and begins a new attempt for one that
// is Dialing.
func (t *Tracker) Leave(r *Rail) bool {
	if !t.ignoring || r.owesBye || !r.dials || r.state > Dialing || !t.reach.needs(r) {
		return false
	}
	r.leave()
	return true
}

// Close ends the use of a rail at the end of the job. No rail of the Tracker takes a new link
// afterwards.
func (t *Tracker) Close(r *Rail) {
	t.closed = true
	r.close()
}
