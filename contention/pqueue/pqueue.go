// Package pqueue is a priority queue, a binary heap in a slice: the first element is at index 0.
package pqueue

// Element is an element of a queue; a.Before(b) reports whether a leaves the queue before b.
// Elements that come before neither of each other leave the queue in an order that depends on its
// history, the same in every run.
type Element[E any] interface{ Before(E) bool }

// Queue is a priority queue; the zero value is empty. Not safe for concurrent use.
type Queue[E Element[E]] []E

// Init makes a priority queue of the elements of q, which may be in any order.
func (q Queue[E]) Init() {
	for i := len(q)/2 - 1; i >= 0; i-- {
		q.down(i)
	}
}

// Add puts an element into the queue.
func (q *Queue[E]) Add(e E) {
	*q = append(*q, e)
	q.up(len(*q) - 1)
}

// Take removes the element that comes before all others from the queue and returns it. The queue
// must not be empty.
func (q *Queue[E]) Take() E {
	all := *q
	last := len(all) - 1
	all[0], all[last] = all[last], all[0]
	*q = all[:last]
	q.down(0)
	e := all[last]
	var zero E
	all[last] = zero // the slice must not keep the element alive
	return e
}

// Changed restores the order of the queue after its first element, q[0], has been changed in place.
func (q Queue[E]) Changed() { q.down(0) }

func (q Queue[E]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !q[i].Before(q[parent]) {
			return
		}
		q[i], q[parent] = q[parent], q[i]
		i = parent
	}
}

func (q Queue[E]) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(q) {
			return
		}
		if right := child + 1; right < len(q) && q[right].Before(q[child]) {
			child = right
		}
		if !q[child].Before(q[i]) {
			return
		}
		q[i], q[child] = q[child], q[i]
		i = child
	}
}
