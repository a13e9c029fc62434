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
