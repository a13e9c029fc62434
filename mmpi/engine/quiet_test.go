package engine

import (
	"testing"
	"time"
)

// TestQuietUnlessATickHasWork checks that the progress thread may be idle unless a tick has work to
// do.
func TestQuietUnlessATickHasWork(t *testing.T) {
	for _, c := range []struct {
		name  string
		leave func(e *Engine, other func())
		quiet bool
	}{
		{"nothing", func(*Engine, func()) {}, true},
		{"an acknowledgement", func(_ *Engine, other func()) { other() }, false},
		{"a held message", func(e *Engine, _ func()) { e.coalesce.some = true }, false},
		{"a ping without an answer", func(e *Engine, _ func()) { e.links.Tick(0); e.links.Tick(time.Hour) }, false},
		{"the end", func(e *Engine, _ func()) { e.p2p.End(failure(ErrArg, "over")) }, false},
	} {
		pair, comms := pairOf(t, true)
		e := pair[0]
		for e.Progress(0)+pair[1].Progress(0) > 0 { // their first Counts
		}
		e.lock()
		c.leave(e, func() { // a message comes
			if err := pair[1].Isend(comms[1], KindP2P, nil, 0, 1, false, new(Cell)); err != nil {
				t.Fatal(err)
			}
			for e.links.Step() == 0 {
			}
		})
		if got := (*driver)(e).Quiet(); got != c.quiet {
			t.Errorf("%s: quiet %v", c.name, got)
		}
		e.coalesce.some = false
		e.unlock()
	}
}

// TestIdleThreadWakesForMessage checks that the progress thread is idle when there is nothing to
// do, and that a message wakes it at once, so that the sender gets an acknowledgement.
func TestIdleThreadWakesForMessage(t *testing.T) {
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
		return e[0].links.Unacked() == 0
	})
	until("idle again", both)
}
