package engine

import (
	"errors"
	"fmt"
	"time"
)

// Finish ends the engine in step with all other processes:
//
//  1. The first barrier: all processes have reached the end. From then on this process has all that
//     it needs, and a loss is no longer an error (link.Set.Finished).
//  2. The second barrier: all processes know that, or some process has left, which none does before.
//     So a process that still needs something finds all others present, whatever the losses
//     meanwhile: a forwarder that was started again gathers the whole job.
//  3. All messages sent are acknowledged, and the forwarders have been told that the links end in
//     order (linger).
//
// It blocks as long as other processes have work to do; no other call may be under way. Application
// threads only.
func (e *Engine) Finish() error {
	failed := e.links.FinishFailed               // called with the lock
	linger := func(answered func() bool) error { // waits for others to receive or answer the last frames
		return e.ignoreTimeout(e.await(byeTimeout, "answer", func() bool { return answered() || failed() }))
	}
	err := e.meet(phase{up: 0, down: 1, without: func(int) bool { return false },
		over: func() bool { return false }})
	if err == nil {
		e.lock()
		e.links.Finished()
		e.unlock()
		err = e.ignoreTimeout(e.meet(phase{up: 2, down: 3, limit: e.patience + byeTimeout,
			without: func(rank int) bool { return e.links.Departed(rank) || failed() },
			over:    func() bool { return e.links.AnyDeparted() || failed() }}))
	}
	if err == nil {
		err = linger(func() bool { return e.links.Unacked() == 0 })
	}
	if err == nil {
		e.lock()
		e.links.FlushAcks()
		e.links.SendBye()
		e.links.Flush()
		e.unlock()
		err = linger(e.links.ByeAcked)
	}
	if e.leave() { // Abort needs the links.
		return err
	}
	e.close()
	if e.recorder != nil {
		err = errors.Join(err, e.recorder.Close(e.links.Now()))
	}
	return err
}

// ignoreTimeout drops a timeout error once all processes have reached the first barrier, because
// the sender of a missing frame may already have exited. It returns other errors.
func (e *Engine) ignoreTimeout(err error) error {
	if e.Err() == nil && !e.leave() {
		return nil
	}
	return err
}

// close ends the progress thread and the links.
func (e *Engine) close() {
	e.lock()
	e.stopping = true
	e.links.IgnoreLosses()
	e.unlock()
	e.wait.Stop()
	e.lock()
	defer e.unlock()
	e.p2p.End(failure(ErrArg, "the engine has ended"))
	e.links.Close()
	e.wait.Close()
}

// phase is one of the barriers of Finish.
type phase struct {
	up, down int                 // the tags of messages up and down the tree
	without  func(rank int) bool // reports whether the wait for a rank is over; called with the lock
	over     func() bool         // reports whether the wait for all others is over; called with the lock
	limit    time.Duration       // the limit of the wait for one rank; 0: no limit
}

// meet is barrier, or an agreement of all processes in a job that goes on when a cluster is lost:
// the processes that are left wait for each other, even if further clusters are lost meanwhile.
func (e *Engine) meet(p phase) error {
	if !e.onLoss || len(e.world.Clusters) == 1 {
		return e.barrier(p)
	}
	var cell Cell
	if err := e.Agree(e.p2p.Control(), 0, &cell); err != nil {
		return err
	}
	return e.await(p.limit, "word of all processes", func() bool { return cell.Done() || p.over() })
}

// barrier blocks until every process of the job has called it, or the wait for the others is over.
// Messages go between clusters only, up a tree and down again.
func (e *Engine) barrier(p phase) error {
	parent, children := finishTree(&e.world)
	if parent < 0 && len(children) == 0 {
		return nil // one cluster
	}
	if err := e.exchange(children, p.up, false, p); err != nil {
		return fmt.Errorf("waiting for all processes to finish: %w", err)
	}
	if parent >= 0 {
		if err := e.exchange([]int{parent}, p.up, true, p); err != nil {
			return err
		}
		if err := e.exchange([]int{parent}, p.down, false, p); err != nil {
			return fmt.Errorf("waiting for all processes to finish: %w", err)
		}
	}
	return e.exchange(children, p.down, true, p)
}

// finishTree returns a process's place in a tree of all, in which parents and children are of
// different clusters. Let a0 a1 ... be the processes of the first cluster, and b0 b1 ... all
// others. Each a has some of the b for children, and each b some of the a. At least finishFan
// belong to the first parent before the next one has any. So the parents of b0 b1 ... are a0 a0 ...
// a1 a1 ..., and those of a1 a2 ... are b0 b0 .... parent is -1 for a0, the root. In a world of one
// cluster no process has a parent or children.
func finishTree(w *World) (parent int, children []int) {
	size, first := w.Size(), int(w.Clusters[0].Size)
	if first == size {
		return -1, nil
	}
	others := size - first
	fanA := max(finishFan, (others+first-1)/first)    // children of a process of the first cluster
	fanB := max(finishFan, (first-1+others-1)/others) // children of a process of the others
	if b := w.Rank - first; b >= 0 {
		for a := 1 + b*fanB; a <= min((b+1)*fanB, first-1); a++ {
			children = append(children, a)
		}
		return b / fanA, children
	}
	for b := w.Rank * fanA; b < min((w.Rank+1)*fanA, others); b++ {
		children = append(children, first+b)
	}
	if w.Rank == 0 {
		return -1, children
	}
	return first + (w.Rank-1)/fanB, children
}

// exchange sends an empty control message to each rank, or receives one from each, and waits for
// that within the phase's limit.
func (e *Engine) exchange(ranks []int, tag int, send bool, p phase) error {
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
		done := func() bool { return cells[i].Done() || p.without(ranks[i]) }
		if err := e.await(p.limit, "report about all processes", done); err != nil {
			return err
		}
	}
	return nil
}

// Abort ends the job everywhere with an exit status. It returns when the link has taken the
// message, or after abortTime.
func (e *Engine) Abort(status int, reason string) {
	e.lock()
	defer e.unlock()
	e.AbortWithin(status, reason)
}

// AbortWithin ends the job as Abort does, for a thread inside one of Native's methods, which holds
// the lock.
func (e *Engine) AbortWithin(status int, reason string) {
	if e.p2p.Err() != nil {
		return
	}
	e.links.SendAbort(status, e.world.Rank, reason)
	for end := e.links.Now() + abortTime; e.links.Pending() && e.links.Now() < end; {
		if e.links.Drain() {
			e.wait.Pause(time.Millisecond)
		}
	}
}
