package failover

// Finished records that all processes have reached the end of the job. From then on the loss of a
// link does not fail the job.
func (t *Tracker) Finished() { t.finished = true }

// HasFinished reports whether all processes have reached the end of the job (Finished has been
// called).
func (t *Tracker) HasFinished() bool { return t.finished }

// FinishFailed reports whether, since Finished, an error has occurred that would otherwise have
// ended the job. If so, the caller must not wait for more frames.
func (t *Tracker) FinishFailed() bool { return t.finishFailed }

// Fails reports whether an error that has occurred ends the job. After Finished it does not: then
// Fails returns false, and records the error for FinishFailed.
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
// rank go over r. Leave records that r owes the Bye, and returns true once for it. The caller
// reconnects a rail that is Down, and begins a new attempt for one that is Dialing.
func (t *Tracker) Leave(r *Rail) bool {
	if !t.ignoring || r.owesBye || !r.dials || r.state > Dialing || !t.reach.needs(r) {
		return false
	}
	r.leave()
	return true
}

// Close takes rail r out of use at the end of the job. No rail of the Tracker takes a new link
// afterwards.
func (t *Tracker) Close(r *Rail) {
	t.closed = true
	r.close()
}
