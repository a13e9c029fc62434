package loop

import "time"

// crowd reports whether events arrive so fast that the loop should delay the next look: each
// wake-up costs as much as the handling of many events, and thousands of ranks may join at once. It
// has no I/O and reads no clock.
type crowd struct {
	last  time.Time // the time at which the loop has last looked for events and found some
	dense bool      // whether the last two such looks were less than maxGap apart
}

// found records that the loop has looked for events at the time now and has found some. They are
// dense if the last such look was less than maxGap before.
func (c *crowd) found(now time.Time) { c.dense, c.last = now.Sub(c.last) < maxGap, now }

// batches reports whether the loop should let events accumulate before it looks for them, because
// they are dense and no source needs a quick answer (AddSpinning).
func (l *Loop) batches() bool {
	return l.cfg.Poll == Adaptive && l.crowd.dense && l.spinning.Load() <= 0
}
