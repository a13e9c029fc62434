package flow

import "time"

// Path measures the round trip to another cluster: an echo is sent now and then, and the shortest
// time counts. It has no clock and sends nothing.
type Path struct {
	least    time.Duration // shortest round trip; 0 if not known
	returned int           // number of echoes that came back
	asked    time.Duration // time at which the last one was sent
	open     bool          // the last one has not come back
}

// Ask reports whether to send an echo now, and records that it is sent. On a long path echoes
// continue, because a slow process looks like a long path.
func (p *Path) Ask(now, long time.Duration) bool {
	switch {
	case p.open && now-p.asked < echoLost:
		return false
	case p.returned >= firstEchoes && (p.least < long || now-p.asked < echoEvery):
		return false
	}
	p.open, p.asked = true, now
	return true
}

// Back handles an echo that came back. Only the one that was sent last counts.
func (p *Path) Back(sent, now time.Duration) {
	if !p.open || sent != p.asked {
		return
	}
	p.open = false
	if d := max(now-sent, 1); p.returned == 0 || d < p.least {
		p.least = d
	}
	p.returned++
}

// RoundTrip returns the shortest round trip, or 0 if it is not known yet.
func (p *Path) RoundTrip() time.Duration {
	if p.returned < firstEchoes {
		return 0
	}
	return p.least
}
