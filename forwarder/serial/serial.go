// Package serial runs functions that may block one after the other.
package serial

import "sync"

// Queue runs functions one after the other, in the order in which they were given. The zero value
// is ready for use. It is safe for concurrent use.
type Queue struct {
	mu    sync.Mutex
	tasks []task // tasks has the tasks that have not finished; the first one runs.
}

// task has the arguments of a call of Do.
type task struct{ work, done func() }

// Do runs work, which may block, after those of earlier calls, and does not wait for it. aside runs
// its first argument on a goroutine of its own, and then the second one, which calls done. done may
// be nil.
func (q *Queue) Do(aside func(work, done func()), work, done func()) {
	q.mu.Lock()
	q.tasks = append(q.tasks, task{work, done})
	first := len(q.tasks) == 1
	q.mu.Unlock()
	if first {
		q.start(aside, task{work, done})
	}
}

// start runs task t, and then the next one.
func (q *Queue) start(aside func(work, done func()), t task) {
	aside(t.work, func() {
		if t.done != nil {
			t.done()
		}
		q.mu.Lock()
		q.tasks = q.tasks[1:]
		left := q.tasks
		q.mu.Unlock()
		if len(left) > 0 {
			q.start(aside, left[0])
		}
	})
}
