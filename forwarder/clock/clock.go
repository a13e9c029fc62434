// Package clock is the source of a forwarder's time: the system or a simulation.
package clock

import "time"

// Clock tells the time and calls functions later.
type Clock interface {
	Now() time.Time
	// AfterFunc calls fn on a goroutine of its own after d.
	AfterFunc(d time.Duration, fn func()) Timer
}

// Timer is a pending call of Clock.AfterFunc, with the methods of time.Timer.
type Timer interface {
	Stop() bool
	Reset(d time.Duration) bool
}

// System is the system's clock.
type System struct{}

// Now returns time.Now().
func (System) Now() time.Time { return time.Now() }

// AfterFunc calls time.AfterFunc.
func (System) AfterFunc(d time.Duration, fn func()) Timer { return time.AfterFunc(d, fn) }
