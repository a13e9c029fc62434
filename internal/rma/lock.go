package rma

// lockTable is who has the lock of a process's window, and who waits for it: first come, first
// served, so nobody starves.
type lockTable struct {
	holders   map[int]bool
	exclusive bool // the one holder has it alone
	queue     []lockRequest
}

type lockRequest struct {
	rank      int
	id        uint64 // of the answer
	exclusive bool
}

// request reports whether the lock is granted at once; else it waits.
func (t *lockTable) request(r lockRequest) bool {
	if len(t.queue) > 0 || !t.grant(r) {
		t.queue = append(t.queue, r)
		return false
	}
	return true
}

func (t *lockTable) grant(r lockRequest) bool {
	if len(t.holders) > 0 && (t.exclusive || r.exclusive) {
		return false
	}
	if t.holders == nil {
		t.holders = map[int]bool{}
	}
	t.holders[r.rank], t.exclusive = true, r.exclusive
	return true
}

// release gives a lock back and returns who gets it now; false if the rank has none.
func (t *lockTable) release(rank int) (granted []lockRequest, ok bool) {
	if !t.holders[rank] {
		return nil, false
	}
	delete(t.holders, rank)
	for len(t.queue) > 0 && t.grant(t.queue[0]) {
		granted = append(granted, t.queue[0])
		t.queue = t.queue[1:]
	}
	return granted, true
}

// waits reports whether the rank is in the queue.
func (t *lockTable) waits(rank int) bool {
	for _, r := range t.queue {
		if r.rank == rank {
			return true
		}
	}
	return false
}
