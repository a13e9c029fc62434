package kernel

import "time"

// event is a planned action.
type event struct {
	at  time.Duration // virtual time of the event
	tie uint32        // random number that orders events of the same time
	// seq is the number of the event, which rises; it orders events with the same time and tie.
	seq uint64
	do  action // action that is carried out
	n   uint64 // argument of action.stale
}

// action is the effect of an event. All implementations are pointers or functions, so that an event
// allocates no memory.
type action interface {
	due()
	// stale reports whether the event that was planned with number n has been cancelled.
	stale(n uint64) bool
}

// call is an action that calls a function.
type call func()

func (fn call) due()           { fn() }
func (call) stale(uint64) bool { return false }

// queue is a heap in which each place has four children. It is shallow, because most events are
// planned for soon.
type queue []event

const below = 4

func (a *event) before(b *event) bool {
	switch {
	case a.at != b.at:
		return a.at < b.at
	case a.tie != b.tie:
		return a.tie < b.tie
	default:
		return a.seq < b.seq
	}
}

func (q *queue) push(e event) {
	h := append(*q, e)
	*q = h
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / below
		if !e.before(&h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = e
}

func (q *queue) pop() event {
	h := *q
	first, n := h[0], len(h)-1
	e := h[n]
	h[n] = event{}
	h = h[:n]
	*q = h
	if n == 0 {
		return first
	}
	for i := 0; ; {
		child := below*i + 1
		if child >= n {
			h[i] = e
			return first
		}
		least := child
		for k := child + 1; k < min(child+below, n); k++ {
			if h[k].before(&h[least]) {
				least = k
			}
		}
		if !h[least].before(&e) {
			h[i] = e
			return first
		}
		h[i] = h[least]
		i = least
	}
}
