package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/leidenzipper/zipper/mmpi/engine/link"
)

// Finish ends the engine in step with all other processes: what was sent is flushed and
// acknowledged, everybody has come this far, the forwarder knows that the end of the link is meant.
// It blocks as long as other processes have work to do; no other call may be under way. Application
// threads only.
func (e *Engine) Finish() error {
	err := e.barrier()
	if err == nil {
		err = e.await(byeTimeout, "acknowledgements", func() bool { return e.links.Unacked() == 0 })
	}
	if err == nil {
		e.lock()
		e.links.FlushAcks()
		e.links.SayBye()
		e.links.Flush()
		e.unlock()
		err = e.await(byeTimeout, "the forwarder's good-bye", e.links.ByeAcked)
		if err != nil && e.byeLost() {
			err = nil // all is done; a forwarder for which the job is over gathers another one for us
		}
	}
	e.close()
	if e.recorder != nil {
		err = errors.Join(err, e.recorder.Close())
	}
	return err
}

// byeLost reports whether all that is missing is the good-bye of forwarders to which the link is
// lost.
func (e *Engine) byeLost() bool {
	e.lock()
	defer e.unlock()
	return e.p2p.Err() == nil && link.ByeLost(e.links)
}

// close ends the progress thread and the links.
func (e *Engine) close() {
	e.lock()
	e.stopping = true
	e.links.Finish()
	e.unlock()
	e.wait.Stop()
	e.lock()
	defer e.unlock()
	e.p2p.End(failure(ErrArg, "the engine has ended"))
	e.links.Close()
	e.wait.Close()
}

// barrier returns when every process of the job has called it. Messages go between clusters only:
// everybody reports to a collector in another cluster (virtual rank 0; for rank 0's own cluster the
// first rank of the next one), the second collector reports to rank 0, and the way back is the
// same.
func (e *Engine) barrier() error {
	const arrive, leave = 0, 1
	second := int(e.world.Clusters[0].Size) // first rank of cluster 1
	if second >= e.world.Size() {
		return nil // one cluster
	}
	me := e.world.Rank
	var group []int // who reports to me
	collector := 0
	switch {
	case me == 0:
		for r := second; r < e.world.Size(); r++ {
			group = append(group, r)
		}
		collector = -1
	case me == second:
		for r := 1; r < second; r++ {
			group = append(group, r)
		}
	case me < second:
		collector = second
	}
	if err := e.exchange(group, arrive, false); err != nil {
		return fmt.Errorf("waiting for all processes to finish: %w", err)
	}
	if collector >= 0 {
		if err := e.exchange([]int{collector}, arrive, true); err != nil {
			return err
		}
		if err := e.exchange([]int{collector}, leave, false); err != nil {
			return fmt.Errorf("waiting for all processes to finish: %w", err)
		}
	}
	return e.exchange(group, leave, true)
}

// exchange sends an empty control message to each rank, or receives one from each.
func (e *Engine) exchange(ranks []int, tag int, send bool) error {
	c := e.p2p.Control()
	cells := make([]Cell, len(ranks))
	for i, r := range ranks {
		var err error
		if send {
			err = e.Isend(c, KindInternal, nil, r, tag, false, &cells[i])
		} else {
			err = e.Irecv(c, KindInternal, nil, r, tag, &cells[i])
		}
		if err != nil {
			return err
		}
	}
	for i := range cells {
		if err := e.await(0, "", cells[i].Done); err != nil {
			return err
		}
	}
	return nil
}

// Abort ends the job everywhere with an exit status; it returns when the link has taken the
// message, or after a second.
func (e *Engine) Abort(status int, reason string) {
	e.lock()
	defer e.unlock()
	e.AbortWithin(status, reason)
}

// AbortWithin is Abort for a thread that comes from within a call of Native's, which has the lock.
func (e *Engine) AbortWithin(status int, reason string) {
	if e.p2p.Err() != nil {
		return
	}
	e.links.SayAbort(status, e.world.Rank, reason)
	for end := e.links.Now() + abortTime; e.links.Pending() && e.links.Now() < end; {
		if e.links.Drain() {
			e.wait.Pause(time.Millisecond)
		}
	}
}
