// Package clock is where a forwarder's time comes from: the system, or a simulation.
package clock

import "time"

// Clock tells the time and calls functions later.
type Clock interface {
	Now() time.Time
	// AfterFunc has fn called on a goroutine of its own when d is over.
	AfterFunc(d time.Duration, fn func()) Timer
}

// Timer is what Clock.AfterFunc returns, as time.Timer does it.
type Timer interface {
	Stop() bool
	Reset(d time.Duration) bool
}

// System is the system's clock.
type System struct{}

// Now is time.Now.
func (System) Now() time.Time { return time.Now() }

// AfterFunc is time.AfterFunc.
func (System) AfterFunc(d time.Duration, fn func()) Timer { return time.AfterFunc(d, fn) }
