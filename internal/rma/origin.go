package rma

import "fmt"

// Transfer is an operation that is being issued, message by message.
type Transfer struct {
	op                  Operation
	data, there, result cursor
	left                int64
	w                   *waiter
}

// Begin checks an operation; Issue sends it. The token is in Done when the operation is locally
// complete, with its results.
func (n *Node) Begin(op Operation, token any) (*Transfer, error) {
	if err := n.reachable(op.Target); err != nil {
		return nil, err
	}
	t := &Transfer{op: op, data: cursor{Layout: op.Data.Layout}, there: cursor{Layout: op.There},
		result: cursor{Layout: op.Result.Layout}, left: op.There.Size(),
		w: &waiter{1, token}}
	data, result := t.left, t.left
	switch op.Verb {
	case Put, Accumulate:
		result = 0
	case Get:
		data = 0
	case Fetch:
		if op.Fn == NoOp {
			data = 0
		}
	case Swap:
		if data *= 2; data > maxData {
			return nil, fmt.Errorf("%w: %d bytes to be compared", ErrRange, t.left)
		}
	default:
		return nil, fmt.Errorf("rma: verb %d", op.Verb)
	}
	if op.Data.Size() != data || op.Result.Size() != result {
		return nil, fmt.Errorf("%w: %d bytes at the target, %d to send, %d to receive", ErrRange, t.left,
			op.Data.Size(), op.Result.Size())
	}
	return t, nil
}

// reachable returns an error if no access epoch to the target is open. In the epoch of LockAll it
// requests the target's lock with the first operation.
func (n *Node) reachable(target int) error {
	if target < 0 || target >= n.cfg.Size {
		return fmt.Errorf("%w: rank %d of %d", ErrRange, target, n.cfg.Size)
	}
	p := &n.peers[target]
	switch {
	case p.locked || p.started || n.fenced && n.access == nil && !n.lockAll:
	// The lock is requested when it is first needed. The target keeps the following messages until
	// it is granted.
	case n.lockAll:
		if n.asked {
			n.request(target, 0, nil)
		} else {
			p.locked = true
		}
	default:
		return fmt.Errorf("%w: no access epoch to rank %d is open", ErrSync, target)
	}
	return nil
}

// Full reports whether so many bytes are in flight to the target that nothing should be issued
// before it has answered.
func (n *Node) Full(target int) bool { return n.peers[target].flight >= maxFlight }

// Issue sends the next part of an operation. It reports whether that was the last part.
func (n *Node) Issue(t *Transfer) bool {
	op := &t.op
	p := &n.peers[op.Target]
	if t.left > 0 {
		m := message{verb: op.Verb, fn: op.Fn, kind: op.Kind, disp: op.Disp}
		var size int64
		m.runs, size = t.there.take(min(t.left, maxData), maxRuns)
		t.left -= size
		switch op.Verb {
		case Get, Fetch, Swap:
			if op.Verb == Get {
				m.want = size
			}
			runs, _ := t.result.take(size, 0)
			m.id = n.expect(pending{w: t.w, target: op.Target, space: op.Result.Space, runs: runs, kind: op.Kind})
		}
		b := m.appendHead(n.buffer())
		if t.data.Count > 0 {
			sends := size
			if op.Verb == Swap {
				sends *= 2
			}
			runs, _ := t.data.take(sends, 0)
			head := len(b)
			b = gather(b, op.Data.Space, runs)
			n.cfg.recode(op.Kind, b[head:], false)
		}
		n.out = append(n.out, Outgoing{op.Target, b})
		p.sent++
		bytes := int64(len(b))
		if m.id != 0 {
			bytes += headLen + size // of the answer
		}
		p.flight += bytes
		p.fresh += bytes
		if m.id != 0 {
			n.covers(m.id, p)
		} else if p.fresh >= markEvery {
			n.mark(op.Target, nil, flush)
		}
	}
	if t.left == 0 {
		n.finish(t.w)
	}
	return t.left == 0
}

// mark sends a message whose answer means that everything before it is done.
func (n *Node) mark(target int, w *waiter, verb Verb) {
	id := n.expect(pending{w: w, target: target})
	n.covers(id, &n.peers[target])
	n.send(target, &message{verb: verb, id: id})
}

// covers notes that the answer id will mean that everything sent until now is done, because a
// target handles one message after the other.
func (n *Node) covers(id uint64, p *peer) {
	q := n.pending[id]
	q.sent, q.bytes = p.sent, p.fresh
	p.fresh, p.last = 0, id
	n.pending[id] = q
}

// awaited makes w wait for an answer that covers everything sent. It returns false if no such
// answer is expected.
func (n *Node) awaited(p *peer, w *waiter) bool {
	q, ok := n.pending[p.last]
	if !ok || q.sent != p.sent {
		return false
	}
	if w != nil {
		w.left++
		q.also = append(q.also, w)
		n.pending[p.last] = q
	}
	return true
}

// wait runs f with a waiter whose token is in Done when all events that f registers, perhaps none,
// have happened.
func (n *Node) wait(token any, f func(w *waiter)) {
	w := &waiter{1, token}
	f(w)
	n.finish(w)
}

func (n *Node) flush(target int, w *waiter) {
	if p := &n.peers[target]; p.sent != p.acked && !n.awaited(p, w) {
		n.mark(target, w, flush)
	}
}

// Flush waits until all operations to the target (-1 for all targets) are done there.
func (n *Node) Flush(target int, token any) error {
	if target < -1 || target >= n.cfg.Size {
		return fmt.Errorf("%w: rank %d of %d", ErrRange, target, n.cfg.Size)
	}
	if !n.lockAll && (target >= 0 && !n.peers[target].locked || target < 0 && !n.anyLocked()) {
		return fmt.Errorf("%w: flush without a lock", ErrSync)
	}
	n.wait(token, func(w *waiter) {
		for t := range n.peers {
			if target < 0 || t == target {
				n.flush(t, w)
			}
		}
	})
	return nil
}

func (n *Node) anyLocked() bool {
	for i := range n.peers {
		if n.peers[i].locked {
			return true
		}
	}
	return false
}

// Fence waits until all operations of this process are done; then the processes need a barrier.
// open says that an epoch may follow.
func (n *Node) Fence(open bool, token any) error {
	if n.access != nil || n.posted || n.lockAll || n.anyLocked() {
		return fmt.Errorf("%w: fence inside another epoch", ErrSync)
	}
	n.fenced = open
	n.wait(token, func(w *waiter) {
		for t := range n.peers {
			n.flush(t, w)
		}
	})
	return nil
}

// How has options of a lock, as bits that may be combined.
type How uint8

const (
	Exclusive How = 1 << iota
	Unchecked     // the program promises that no process requests a conflicting lock (MPI_MODE_NOCHECK)
	Awaited       // the token is in Done only when the lock is granted
)

// Lock requests the lock of the target. It waits for an Exclusive lock, because programs use those
// to protect other resources, too, and for the own lock, because the program may then use its
// memory directly. It does not wait for a shared lock of another process unless that is Awaited:
// the target keeps the following messages until the lock is granted. It does not request an
// Unchecked lock, because coarray libraries hold such a lock while they poll their own memory until
// other processes, with exclusive locks, have changed it.
func (n *Node) Lock(target int, how How, token any) error {
	if target < 0 || target >= n.cfg.Size {
		return fmt.Errorf("%w: rank %d of %d", ErrRange, target, n.cfg.Size)
	}
	if n.peers[target].locked || n.lockAll || n.access != nil {
		return fmt.Errorf("%w: lock inside another access epoch", ErrSync)
	}
	n.wait(token, func(w *waiter) {
		switch {
		case how&Unchecked != 0:
			n.peers[target].locked = true
		case how&(Exclusive|Awaited) != 0 || target == n.cfg.Rank:
			n.request(target, how, w)
		default:
			n.request(target, how, nil)
		}
	})
	return nil
}

// request requests the lock; w waits for it.
func (n *Node) request(target int, how How, w *waiter) {
	p := &n.peers[target]
	p.locked, p.asked, p.granted = true, true, false
	m := message{verb: lock, id: n.expect(pending{w: w, target: target, grants: true})}
	if how&Exclusive != 0 {
		m.fn = 1
	}
	n.send(target, &m)
}

// LockAll opens an access epoch to all targets. It waits for the own lock only (the program may use
// its memory directly); others are requested with the first operation. unchecked has the meaning of
// Unchecked in Lock.
func (n *Node) LockAll(unchecked bool, token any) error {
	if n.lockAll || n.access != nil || n.anyLocked() {
		return fmt.Errorf("%w: lock_all inside another access epoch", ErrSync)
	}
	n.lockAll, n.asked = true, !unchecked
	n.wait(token, func(w *waiter) {
		if !unchecked {
			n.request(n.cfg.Rank, 0, w)
		}
	})
	return nil
}

// Unlock waits until all operations to the target are done there, and releases the lock.
func (n *Node) Unlock(target int, token any) error {
	if target < 0 || target >= n.cfg.Size {
		return fmt.Errorf("%w: rank %d of %d", ErrRange, target, n.cfg.Size)
	}
	if n.lockAll || !n.peers[target].locked {
		return fmt.Errorf("%w: unlock without lock", ErrSync)
	}
	n.wait(token, func(w *waiter) { n.unlock(target, w) })
	return nil
}

func (n *Node) unlock(target int, w *waiter) {
	p := &n.peers[target]
	switch {
	case !p.asked:
		n.flush(target, w)
	case p.sent == p.acked && p.granted, p.sent != p.acked && n.replied(p, w):
		n.mark(target, nil, unlock) // an earlier answer covers all operations, so no call waits for this one
	default:
		n.mark(target, w, unlock)
	}
	p.locked, p.asked = false, false
}

// replied makes w wait only for the results of the last operation, because the lock is held when
// they arrive. It returns false if that operation has no results that have yet to arrive.
func (n *Node) replied(p *peer, w *waiter) bool {
	return n.pending[p.last].runs != nil && n.awaited(p, w)
}

// UnlockAll ends the epoch of LockAll.
func (n *Node) UnlockAll(token any) error {
	if !n.lockAll {
		return fmt.Errorf("%w: unlock_all without lock_all", ErrSync)
	}
	n.lockAll = false
	n.wait(token, func(w *waiter) {
		for t := range n.peers {
			if n.peers[t].locked {
				n.unlock(t, w)
			}
		}
	})
	return nil
}

// Start opens an access epoch to a group. It waits until its members have called Post.
func (n *Node) Start(group []int, token any) error {
	if n.access != nil || n.lockAll || n.anyLocked() {
		return fmt.Errorf("%w: start inside another access epoch", ErrSync)
	}
	n.access = append([]int{}, group...)
	n.wait(token, func(w *waiter) {
		n.start = w
		for _, t := range group {
			p := &n.peers[t]
			p.started = true
			if p.posts > 0 {
				p.posts--
			} else {
				p.awaited = true
				w.left++
			}
		}
	})
	return nil
}

// Complete ends the access epoch and waits until its operations are done.
func (n *Node) Complete(token any) error {
	if n.access == nil {
		return fmt.Errorf("%w: complete without start", ErrSync)
	}
	group := n.access
	n.access = nil
	n.wait(token, func(w *waiter) {
		for _, t := range group {
			n.peers[t].started = false
			n.mark(t, w, complete)
		}
	})
	return nil
}

// Post opens an exposure epoch for a group.
func (n *Node) Post(group []int) error {
	if n.posted {
		return fmt.Errorf("%w: post inside an exposure epoch", ErrSync)
	}
	n.posted, n.exposed = true, append([]int{}, group...)
	for _, o := range group {
		n.send(o, &message{verb: post})
	}
	return nil
}

// Wait ends the exposure epoch when all its origins have completed theirs.
func (n *Node) Wait(token any) error {
	if !n.posted {
		return fmt.Errorf("%w: wait without post", ErrSync)
	}
	group := n.exposed
	n.posted, n.exposed = false, nil
	n.wait(token, func(w *waiter) {
		n.closing = w
		for _, o := range group {
			p := &n.peers[o]
			if p.completes > 0 {
				p.completes--
			} else {
				p.expected = true
				w.left++
			}
		}
	})
	return nil
}

// Test is a Wait that does not block. It reports whether the exposure epoch has ended.
func (n *Node) Test() (bool, error) {
	if !n.posted {
		return false, fmt.Errorf("%w: test without post", ErrSync)
	}
	for _, o := range n.exposed {
		if n.peers[o].completes == 0 {
			return false, nil
		}
	}
	return true, n.Wait(nil)
}

// Idle checks that no epoch is open, and waits until all targets have answered. After a barrier the
// window may be freed.
func (n *Node) Idle(token any) error {
	if n.access != nil || n.posted || n.lockAll || n.anyLocked() {
		return fmt.Errorf("%w: an epoch is open", ErrSync)
	}
	n.wait(token, func(w *waiter) {
		for id, p := range n.pending {
			w.left++
			p.also = append(p.also, w)
			n.pending[id] = p
		}
	})
	return nil
}

// Target returns the target's rank.
func (t *Transfer) Target() int { return t.op.Target }
