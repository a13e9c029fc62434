package engine

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestTickWhileLocked: a thread that has the lock may have given its core away, so the background thread does not wait for it; that thread ticks.
func TestTickWhileLocked(t *testing.T) {
	pair, _ := pairOf(t, true)
	e := pair[0]
	e.rails[0].fresh = true // until a tick sees it
	over := make(chan bool)
	e.mu.Lock()
	go func() { over <- e.backstage() }()
	select {
	case <-over:
	case <-time.After(10 * time.Second):
		t.Fatal("the background thread waits for the lock")
	}
	e.unlock()
	if !e.rails[0].fresh {
		t.Fatal("ticked without the lock")
	}
	e.Progress(0)
	if e.rails[0].fresh {
		t.Error("nobody ticked")
	}

	e.rails[0].fresh = true
	if e.backstage(); e.rails[0].fresh {
		t.Error("no tick though nobody had the lock")
	}
	e.rails[0].fresh = true
	if e.Progress(0); !e.rails[0].fresh {
		t.Error("the program ticks though nothing was left to it")
	}
}

// TestHeldWhileLocked: nor does it wait for the lock with what is held; it comes again.
func TestHeldWhileLocked(t *testing.T) {
	pair, _ := pairOf(t, true)
	e := pair[0]
	over := make(chan bool)
	e.mu.Lock()
	go func() {
		e.timeUp()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(10 * time.Second):
		t.Fatal("the background thread waits for the lock")
	}
	e.unlock()
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(e.sleep.timer), Events: unix.POLLIN}}, 10000); n != 1 {
		t.Errorf("the timer does not fire again: %v", err)
	}
}

// TestTogether: sleeps until multiples end at the same times in all processes.
func TestTogether(t *testing.T) {
	clock := func() time.Duration {
		var at unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &at); err != nil {
			t.Fatal(err)
		}
		return time.Duration(at.Nano())
	}
	for _, d := range []time.Duration{time.Microsecond, tickEvery, 3 * tickEvery, betweenAck} {
		before := clock()
		wait := untilMultiple(d)
		after := clock()
		if wait <= 0 || wait > d {
			t.Fatalf("%v until a multiple of %v", wait, d)
		}
		// The clock was read in between.
		if next := before + d - before%d; before/d == after/d && (before+wait > next || after+wait < next) {
			t.Errorf("between %v and %v: %v until a multiple of %v", before, after, wait, d)
		}
	}
}

// TestRouse: whoever leaves something for a tick, or stops sleeping on the link, ends the background thread's long rest; nobody else does.
func TestRouse(t *testing.T) {
	for _, c := range []struct {
		name   string
		leave  func(e *Engine)
		roused bool
	}{
		{"nothing", func(e *Engine) { e.lock(); e.unlock() }, false},
		{"an acknowledgement", func(e *Engine) { e.lock(); e.acks = append(e.acks, e.peer(1)); e.unlock() }, true},
		{"a held message", func(e *Engine) { e.lock(); e.hold.some = true; e.unlock() }, true},
		{"a ping without an answer", func(e *Engine) { e.lock(); e.rails[0].pinged = 1; e.unlock() }, true},
		{"a look", func(e *Engine) { e.Progress(0) }, false},
		{"a sleep", func(e *Engine) { e.Progress(time.Millisecond) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			pair, _ := pairOf(t, true)
			e := pair[0]
			e.sleep.resting.Store(true)
			c.leave(e)
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(e.sleep.kick), Events: unix.POLLIN}}, 0)
			if err != nil || (n == 1) != c.roused || e.sleep.resting.Load() == c.roused {
				t.Errorf("kicked %v, resting %v (%v), want roused: %v", n == 1, e.sleep.resting.Load(), err, c.roused)
			}
			e.hold.some = false
		})
	}
}

// TestRests: the background thread rests where there is nothing to do, and a message finds it at once: the sender gets its acknowledgement.
func TestRests(t *testing.T) {
	e, c := pairOf(t, false)
	until := func(what string, over func() bool) {
		for end := time.Now().Add(20 * time.Second); !over(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("never: ", what)
			}
		}
	}
	both := func() bool { return e[0].sleep.resting.Load() && e[1].sleep.resting.Load() }
	until("rest", both)
	var cell Cell
	if err := e[0].Isend(c[0], KindP2P, []byte("x"), 1, 0, false, &cell); err != nil {
		t.Fatal(err)
	}
	until("an acknowledgement", func() bool {
		e[0].lock()
		defer e[0].unlock()
		return e[0].unacked == 0
	})
	until("rest again", both)
}

// TestMayRest: while somebody sleeps long on the link, and there is nothing else to do. After a short sleep the background thread would be roused at once.
func TestMayRest(t *testing.T) {
	pair, _ := pairOf(t, true)
	e := pair[0]
	s := &e.sleep
	for _, c := range []struct {
		sleepers int32
		dozes    time.Duration
		owed     bool
		want     bool
	}{
		{1, 5 * betweenAck, false, true},
		{1, time.Millisecond, false, false},
		{0, 5 * betweenAck, false, false},
		{1, 5 * betweenAck, true, false},
	} {
		s.sleepers.Store(c.sleepers)
		s.dozes, e.acks = c.dozes, nil
		if c.owed {
			e.acks = append(e.acks, e.peer(1))
		}
		if e.mayRest(); s.resting.Load() != c.want {
			t.Errorf("%+v: resting %v", c, !c.want)
		}
	}
	s.sleepers.Store(0)
	s.resting.Store(false)
}
