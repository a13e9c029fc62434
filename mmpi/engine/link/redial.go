package link

import (
	"time"

	"github.com/leidenzipper/zipper/transport"
)

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

// wants reports whether a link that has come is still of use.
func (s *Set) wants(r *rail) bool {
	return !s.ended && !s.failover.finishing && r.state != closed && r.state != leaving
}

// railUp takes a forwarder's link into use; false: the set does not want it any more.
func (s *Set) railUp(r *rail, l transport.Link) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	if !s.wants(r) {
		return false
	}
	r.takeIntoUse(l)
	s.failover.tellBack(r)
	s.failover.noneSince = 0
	clear(s.failover.unreachableSince) // who is out of reach here too is told by the forwarder
	for _, p := range s.peers {
		if p != nil {
			p.resend(nil)
		}
	}
	s.failover.updateReachable()
	s.wake()
	return true
}

// wake has whoever sleeps do so on the new descriptors.
func (s *Set) wake() {
	if s.woken != nil {
		s.woken()
	}
}

// StopRedial has a direct link not opened again by this end when it is lost.
func (s *Set) StopRedial(rank int) { s.peers[rank].direct.redial = nil }
