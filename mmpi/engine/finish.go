package engine

import (
	"errors"
	"fmt"
	"time"
)

// byeTimeout bounds the steps of Finish after its barrier: nobody has anything else left to do.
const byeTimeout = 10 * time.Second

// addControl makes the communicator of the engine's own messages: all processes, no native part.
func (e *Engine) addControl() {
	c := &Comm{context: controlContext, rank: e.world.Rank, world: make([]int32, e.size), native: make([]int32, e.size)}
	for i := range c.world {
		c.world[i] = int32(i)
		c.native[i] = Remote
	}
	e.register(c)
}

// Finish ends the engine in step with all other processes: what was sent is flushed and acknowledged, everybody has come this far, the
// forwarder knows that the end of the link is meant. It blocks as long as other processes have work to do; no other call may be under
// way. Application threads only.
func (e *Engine) Finish() error {
	err := e.barrier()
	if err == nil {
		err = e.await(byeTimeout, "acknowledgements", func() bool { return e.unacked == 0 })
	}
	if err == nil {
		e.lock()
		e.flushAcks()
		e.sayBye()
		e.writeOut()
		e.unlock()
		err = e.await(byeTimeout, "the forwarder's good-bye", e.byeAcked)
	}
	e.close()
	return errors.Join(err, e.closeRecord())
}

// close ends the background thread and the link.
func (e *Engine) close() {
	e.lock()
	e.stopping = true
	e.unlock()
	e.wait.Stop()
	e.lock()
	defer e.unlock()
	if e.err == nil {
		e.err = failure(ErrArg, "the engine has ended")
	}
	e.closeRails()
	e.wait.Close()
}

// await makes progress until cond (called with the lock held) or until the time is over; 0: no limit.
func (e *Engine) await(limit time.Duration, what string, cond func() bool) error {
	begin := time.Now()
	for {
		e.lock()
		ok, err := cond(), e.err
		e.unlock()
		switch {
		case ok:
			return nil
		case err != nil:
			return err
		case limit > 0 && time.Since(begin) > limit:
			return failure(ErrLink, "no %s within %v", what, limit)
		}
		e.Progress(time.Millisecond)
	}
}

// barrier returns when every process of the job has called it. Messages go between clusters only: everybody reports to a collector in
// another cluster (virtual rank 0; for rank 0's own cluster the first rank of the next one), the second collector reports to rank 0, and
// the way back is the same.
func (e *Engine) barrier() error {
	const arrive, leave = 0, 1
	second := int(e.world.Clusters[0].Size) // first rank of cluster 1
	if second >= e.size {
		return nil // one cluster
	}
	me := e.world.Rank
	var group []int // who reports to me
	collector := 0
	switch {
	case me == 0:
		for r := second; r < e.size; r++ {
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
	c := e.comms[0]
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

// Abort ends the job everywhere with an exit status; it returns when the link has taken the message, or after a second.
func (e *Engine) Abort(status int, reason string) {
	e.lock()
	defer e.unlock()
	e.AbortWithin(status, reason)
}

// AbortWithin is Abort for a thread that comes from within a call of Native's, which has the lock.
func (e *Engine) AbortWithin(status int, reason string) {
	if e.err != nil {
		return
	}
	e.sendAbort(status, e.world.Rank, reason)
	for end := e.now() + time.Second; e.pending() && e.now() < end; {
		blocked := true
		for _, r := range e.rails {
			if !r.pending() {
				continue
			}
			if _, err := r.write(); err != nil {
				r.up = false
			}
			blocked = blocked && r.blocked
		}
		if blocked {
			e.wait.Pause(time.Millisecond)
		}
	}
}
