package engine

import (
	"testing"
	"time"
)

// TestQuiet: the progress thread may be idle unless something is left for a tick.
func TestQuiet(t *testing.T) {
	for _, c := range []struct {
		name  string
		leave func(e *Engine)
		quiet bool
	}{
		{"nothing", func(*Engine) {}, true},
		{"an acknowledgement", func(e *Engine) { e.acks = append(e.acks, e.peer(1)) }, false},
		{"a held message", func(e *Engine) { e.hold.some = true }, false},
		{"a ping without an answer", func(e *Engine) { e.rails[0].pinged = 1 }, false},
		{"the end", func(e *Engine) { e.err = failure(ErrArg, "over") }, false},
	} {
		pair, _ := pairOf(t, true)
		e := pair[0]
		e.lock()
		c.leave(e)
		if got := (*driver)(e).Quiet(); got != c.quiet {
			t.Errorf("%s: quiet %v", c.name, got)
		}
		e.hold.some = false
		e.unlock()
	}
}

// TestIdle: the progress thread is idle where there is nothing to do, and a message finds it at once: the sender gets
// its acknowledgement.
func TestIdle(t *testing.T) {
	e, c := pairOf(t, false)
	until := func(what string, over func() bool) {
		for end := time.Now().Add(20 * time.Second); !over(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("never: ", what)
			}
		}
	}
	both := func() bool { return e[0].wait.Idle() && e[1].wait.Idle() }
	until("idle", both)
	var cell Cell
	if err := e[0].Isend(c[0], KindP2P, []byte("x"), 1, 0, false, &cell); err != nil {
		t.Fatal(err)
	}
	until("an acknowledgement", func() bool {
		e[0].lock()
		defer e[0].unlock()
		return e[0].unacked == 0
	})
	until("idle again", both)
}
