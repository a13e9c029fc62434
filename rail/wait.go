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

// state is for the user who sees that nothing happens; empty once the forwarder is reached: it says itself what is missing.
func (w *wait) state() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.in:
		return ""
	case w.last != nil:
		return fmt.Sprintf("forwarder %s is not reached yet: %v; trying for %v in all", w.addr, w.last, w.limit)
	default:
		return fmt.Sprintf("forwarder %s does not answer yet; waiting for %v in all", w.addr, w.limit)
	}
}
