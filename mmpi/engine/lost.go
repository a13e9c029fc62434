package engine

// This file has the calls of a program that goes on after the loss of a cluster.

// OnLoss reports whether the job goes on when a cluster is lost.
func (e *Engine) OnLoss() bool { return e.onLoss }

// Failed returns the ranks of a communicator that are in lost clusters: cluster by cluster, in the
// order in which this process has learned of the losses, so that the list only grows at its end.
func (e *Engine) Failed(c *Comm) []int32 {
	e.lock()
	defer e.unlock()
	return c.Failed()
}

// AckFailed acknowledges the losses of the clusters whose ranks are all among the first n of
// Failed, so that receives from any source go on without them. It returns the number of ranks that
// are acknowledged now.
func (e *Engine) AckFailed(c *Comm, n int) int {
	e.lock()
	defer e.unlock()
	return c.AckFailed(n)
}

// Revoke revokes a communicator in all of its processes, in the background. Operations on it that
// no message has matched end with ErrRevoked, also those that are started later.
func (e *Engine) Revoke(c *Comm) error {
	e.lock()
	defer e.unlock()
	if err := e.consent.usable(); err != nil {
		return err
	}
	e.consent.revoke(c.Context(), true)
	e.links.FlushPending()
	return nil
}

// Follow makes the revocation of the communicator `leader` revoke c too, in this process. All
// processes of c must make this call, and may make it after the leader has been revoked.
func Follow(e *Engine, c, leader *Comm) {
	e.lock()
	defer e.unlock()
	e.p2p.Follow(c, leader)
	e.links.FlushPending()
}

// Revoked reports whether a communicator is revoked. It does not lock.
func (e *Engine) Revoked(c *Comm) bool { return c.Revoked() }

// Agree starts an agreement, which all processes of a communicator that are not lost must start,
// with Shrink's in the same order. When the cell is done Tag is the bitwise AND of their flags. It
// ends with ErrProcFailed, in all processes, if one of them has not acknowledged all losses.
func (e *Engine) Agree(c *Comm, flag int32, cell *Cell) error {
	e.lock()
	defer e.unlock()
	return e.consent.start(c, uint32(flag), false, cell)
}

// Shrink starts to agree on the processes of a communicator that are not lost, and on a flag as
// Agree does. When the cell is done Shrunk has the result.
func (e *Engine) Shrink(c *Comm, flag int32, cell *Cell) error {
	e.lock()
	defer e.unlock()
	return e.consent.start(c, uint32(flag), true, cell)
}

// Shrunk returns the result of a Shrink whose cell is done: the context of a communicator of the
// processes that are left, and their ranks in the old communicator, in ascending order.
func (e *Engine) Shrunk(c *Comm, cell *Cell) (context uint64, ranks []int32, err error) {
	e.lock()
	defer e.unlock()
	return e.consent.result(c, cell)
}

// Resume continues a receive whose cell is done with ErrProcFailedPending. Its cell is no longer
// done, unless a message has been received meanwhile or a loss is still not acknowledged.
func (e *Engine) Resume(cell *Cell) error {
	e.lock()
	defer e.unlock()
	return e.p2p.Resume(cell)
}
