package link

import "time"

// A rail whose link is gone gets another one.

// reconnect has a goroutine of its own open the rail's link again, until it is there or the set is
// closed.
func (v *failover) reconnect(r *rail) {
	s := v.set
	redial := r.redial
	if redial == nil {
		return
	}
	r.to(dialling)
	go func() {
		for pause := firstRedial; ; pause = min(2*pause, maxRedial) {
			err := redial(s.ctx)
			if err == nil || s.ctx.Err() != nil {
				return
			}
			if r.peer != nil {
				s.lock.Lock()
				s.direct.news(r, err)
				s.lock.Unlock()
			}
			select {
			case <-s.ctx.Done():
				return
			case <-time.After(pause):
			}
		}
	}()
}

// news tells who waits for direct links that one is there, or could not be opened.
func (d *directState) news(r *rail, err error) {
	r.failed = err
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

// wants reports whether a link that has come is still of use.
func (s *Set) wants(r *rail) bool {
	return !s.ended && !s.failover.finishing && r.state != closed && r.state != leaving
}

// wake has whoever sleeps do so on the new descriptors.
func (s *Set) wake() {
	if s.woken != nil {
		s.woken()
	}
}

// StopRedial has a direct link not opened again by this end when it is lost.
func (s *Set) StopRedial(rank int) { s.peers[rank].direct.redial = nil }
