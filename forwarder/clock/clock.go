// Package clock is the source of a forwarder's time: the system or a simulation.
package clock

import "time"

// Clock is a source of the time and of timers: the system's clock, or a simulated one.
type Clock interface {
	Now() time.Time
	// AfterFunc calls fn after d: on a goroutine of its own, or in a simulation between two turns
	// of the forwarder.
	AfterFunc(d time.Duration, fn func()) Timer
}

// Timer is a call of a function that Clock.AfterFunc has scheduled. Its methods are those of
// time.Timer.
type Timer interface {
	Stop() bool
	Reset(d time.Duration) bool
}

// System is the Clock that uses the operating system's time.
type System struct{}

// Now returns time.Now().
func (System) Now() time.Time { return time.Now() }

// AfterFunc calls time.AfterFunc.
func (System) AfterFunc(d time.Duration, fn func()) Timer { return time.AfterFunc(d, fn) }
