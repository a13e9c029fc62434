package loop

import "time"

// crowd says whether what a loop waits for comes so fast that a look is better put off: each time
// that the loop wakes costs as much as much of what it wakes for, and thousands may join at once.
// It has no I/O and reads no clock.
type crowd struct {
	last  time.Time // something was found
	dense bool      // that and what was found before it came within maxGap
}

// found: a look at now found something.
func (c *crowd) found(now time.Time) { c.dense, c.last = now.Sub(c.last) < maxGap, now }

// batches reports whether the loop lets more come before it looks: nobody is in a hurry.
func (l *Loop) batches() bool {
	return l.cfg.Poll == Adaptive && l.crowd.dense && l.hurried.Load() <= 0
}
