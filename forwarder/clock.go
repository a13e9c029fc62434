package forwarder

import "time"

// clock is where a forwarder's time comes from: the system, or a test.
type clock interface {
	Now() time.Time
	AfterFunc(d time.Duration, fn func()) timer // fn on a goroutine of its own
}

// timer is what clock.AfterFunc returns, as time.Timer does it.
type timer interface {
	Stop() bool
	Reset(d time.Duration) bool
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) AfterFunc(d time.Duration, fn func()) timer { return time.AfterFunc(d, fn) }
