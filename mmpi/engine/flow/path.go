package flow

import "time"

// Path measures the way to another cluster and back: an echo is sent now and then, and the shortest
// time that one took counts. It has no clock and sends nothing.
type Path struct {
	least time.Duration // 0: not known
	heard int           // echoes that came back
	asked time.Duration // when the last one was sent
	open  bool          // it has not come back
}

// Ask reports whether to send an echo now, and notes that it is sent. Who is on a long path asks
// again and again: a process that was slow to answer looks like one.
func (p *Path) Ask(now, long time.Duration) bool {
	switch {
	case p.open && now-p.asked < echoLost:
		return false
	case p.heard >= firstEchoes && (p.least < long || now-p.asked < echoEvery):
		return false
	}
	p.open, p.asked = true, now
	return true
}

// Back takes an echo that was sent at a time; only the last one counts.
func (p *Path) Back(sent, now time.Duration) {
	if !p.open || sent != p.asked {
		return
	}
	p.open = false
	if d := max(now-sent, 1); p.heard == 0 || d < p.least {
		p.least = d
	}
	p.heard++
}

// RoundTrip is the shortest time there and back; 0: not known yet.
func (p *Path) RoundTrip() time.Duration {
	if p.heard < firstEchoes {
		return 0
	}
	return p.least
}
