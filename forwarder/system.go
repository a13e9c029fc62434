package forwarder

import (
	"crypto/rand"
	"time"

	"github.com/leidenzipper/zipper/forwarder/loop"
	"github.com/leidenzipper/zipper/wire"
)

// clock is where a forwarder's time comes from: the system, or a test.
type clock interface {
	Now() time.Time
	AfterFunc(d time.Duration, fn func()) timer // fn on a goroutine of its own
}

// timer is what clock.AfterFunc returns, as time.Timer does it.
type timer = Timer

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) AfterFunc(d time.Duration, fn func()) timer { return time.AfterFunc(d, fn) }

// aside runs work, which may block, on a goroutine of its own, and then done, which must not, on an
// event loop. done may be nil. Any thread.
func (f *Forwarder) aside(work, done func()) {
	spawn := f.asides.Go
	if f.cfg.spawn != nil {
		spawn = f.cfg.spawn
	}
	spawn(func() {
		work()
		if done != nil && !f.workers[0].Loop.Post(done) {
			done() // the loops have ended: nobody is in its way
		}
	})
}

// freshBytes are random.
func freshBytes() (b [wire.NonceLen]byte) {
	_, _ = rand.Read(b[:]) // never fails
	return b
}

// System is what a Driven forwarder has of the operating system.
type System interface {
	loop.System

	Now() time.Time
	// AfterFunc has fn called, between two turns of the forwarder, when d is over.
	AfterFunc(d time.Duration, fn func()) Timer
	// Go runs what may block beside the forwarder.
	Go(fn func())
}

// Timer is what System.AfterFunc returns, as time.Timer does it.
type Timer interface {
	Stop() bool
	Reset(d time.Duration) bool
}

// drivenClock is the clock of a System.
type drivenClock struct{ System }

// AfterFunc is System's.
func (c drivenClock) AfterFunc(d time.Duration, fn func()) timer { return c.System.AfterFunc(d, fn) }
