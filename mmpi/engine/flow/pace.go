package flow

import "time"

// Pace measures how fast payload reaches its receiver, by acknowledgements. Counts are bytes since
// the flow, or the epoch, began.
type Pace struct {
	rate    float64       // bytes per second; 0 if not known
	since   time.Duration // start of the running measurement
	counted uint64        // bytes acknowledged at that time
}

// Rate returns the measured rate in bytes per second, or 0 if it is not known yet.
func (p *Pace) Rate() float64 { return p.rate }

// Begin starts a measurement when there is something to send again. acked is the number of bytes
// acknowledged by then.
func (p *Pace) Begin(acked uint64, now time.Duration) { p.since, p.counted = now, acked }

// Acked handles an acknowledgement that arrived while there was something to send.
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
