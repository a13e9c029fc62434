package rma

// lockTable has the holders of the lock of a process's window, and the queue of requests in FIFO
// order, so that no request starves.
type lockTable struct {
	holders   map[int]bool
	exclusive bool // the one holder has the lock exclusively
	queue     []lockRequest
}

type lockRequest struct {
	rank      int
	id        uint64 // id of the answer
	exclusive bool
}

// request grants the lock at once and returns true, or queues the request and returns false.
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

// release releases the lock of a rank and returns the requests that get it now. ok is false if the
// rank does not hold it.
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
