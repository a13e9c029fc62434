package flow

import "time"

// Pace measures how fast payload reaches its receiver, from what that acknowledges. Counts are
// bytes since the flow, or the epoch, began.
type Pace struct {
	rate    float64       // bytes per second; 0: not known
	since   time.Duration // when the running measurement began,
	counted uint64        // and what was acknowledged then
}

// Rate is the measured speed in bytes per second; 0: not known yet.
func (p *Pace) Rate() float64 { return p.rate }

// Begin starts a measurement, at a time when there is something to send again. acked has been
// acknowledged by then.
func (p *Pace) Begin(acked uint64, now time.Duration) { p.since, p.counted = now, acked }

// Acked takes an acknowledgement that came while there was something to send.
func (p *Pace) Acked(acked uint64, now time.Duration) {
	d := now - p.since
	if d < measureFor {
		return
	}
	r := float64(acked-p.counted) / d.Seconds()
	if p.rate > 0 {
		r = p.rate + measureShare*(r-p.rate)
	}
	p.rate = r
	p.Begin(acked, now)
}
