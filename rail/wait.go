package rail

import (
	"fmt"
	"sync"
	"time"
)

// wait is how far a Dial has come. Safe for concurrent use.
type wait struct {
	addr  string
	limit time.Duration

	mu   sync.Mutex
	last error // of the last attempt to connect; nil: there was none yet
	in   bool  // connected
}

func (w *wait) failed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = err
}

func (w *wait) reached() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.in = true
}

// tell lets the user, who sees that nothing happens, know why, until stop is called. See Dialer.
func (w *wait) tell(notify func(string), patience time.Duration) (stop func()) {
	connecting := time.AfterFunc(patience, func() {
		if in, what := w.state(); !in {
			notify(what)
		}
	})
	joining := time.AfterFunc(5*patience, func() {
		if in, what := w.state(); in {
			notify(what)
		}
	})
	return func() {
		connecting.Stop()
		joining.Stop()
	}
}

func (w *wait) state() (in bool, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.in:
		what = fmt.Sprintf("forwarder %s is reached, but not all ranks of the job have joined there yet; waiting for %v in all", w.addr, w.limit)
	case w.last != nil:
		what = fmt.Sprintf("forwarder %s is not reached yet: %v; trying for %v in all", w.addr, w.last, w.limit)
	default:
		what = fmt.Sprintf("forwarder %s does not answer yet; waiting for %v in all", w.addr, w.limit)
	}
	return w.in, what
}
