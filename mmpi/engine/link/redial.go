package link

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/mmpi/engine/fault"
)

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
	strikes := r.strikes
	s.system.Go(func() {
		wait := time.Duration(0)
		if strikes > 1 {
			wait = min(firstRedial<<(strikes-1), maxRedial)
		}
		if !s.system.Pause(s.ctx, wait) {
			return
		}
		for pause := firstRedial; ; pause = min(2*pause, maxRedial) {
			err := v.attempt(r, redial)
			if err == nil || s.ctx.Err() != nil || v.redialFailed(r, err) {
				return
			}
			if !s.system.Pause(s.ctx, pause) {
				return
			}
		}
	}, false)
}

// attempt tries once to open a rail's link.
func (v *failover) attempt(r *rail, redial redialer) error {
	s := v.set
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	s.lock.Lock()
	leaves := r.leaves
	r.retry, r.trying = cancel, true
	s.lock.Unlock()
	err := redial(ctx, leaves)
	if err == nil { // else redialFailed says so, and why
		s.lock.Lock()
		r.trying = false
		s.lock.Unlock()
	}
	return err
}

// redialFailed notes why a link could not be opened, and reports whether that is the end.
func (v *failover) redialFailed(r *rail, err error) (over bool) {
	s := v.set
	s.lock.Lock()
	defer s.lock.Unlock()
	r.trying = false
	var refusal interface{ Final() bool }
	switch isFinal := errors.As(err, &refusal) && refusal.Final(); { // the forwarder admits this process no more
	case r.peer != nil:
		s.direct.news(r, err)
		var p interface{ Permanent() bool } // trying again does not help
		if errors.As(err, &p) && p.Permanent() && r.state == dialling {
			r.redial = nil
			r.to(down)
			return true
		}
	case !s.resumes && !r.leaves:
		r.failed = err
		if s.paths != nil && r.lostAt > 0 && (isFinal || s.Now()-r.lostAt > s.limit.NoRail) {
			r.redial = nil // its row goes on without it
			r.to(down)
			s.failover.tellGivenUp(r)
			return true
		}
	case r.leaves && errors.Is(err, context.Canceled): // it was to come back, and has to leave now
		r.failed = err
	case r.leaves && errors.Is(err, unix.ECONNREFUSED) && s.Now()-r.lostAt < refusedFor: // others may need us there
		r.failed = err
	case r.leaves && (isFinal || errors.Is(err, unix.ECONNREFUSED)): // our job does not run there, or it is gone
		r.to(closed)
		r.leaves = false
		s.wake()
		return true
	case isFinal:
		v.fail(fault.Link, 1, fmt.Sprintf("%s; it was opened again: %v", r.why, err))
		return true
	default:
		r.failed = err
	}
	return false
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
	return !s.ended && (!s.failover.finishing || r.leaves) && r.state != closed && r.state != leaving
}

// wake has whoever sleeps do so on the new descriptors.
func (s *Set) wake() {
	if s.woken != nil {
		s.woken()
	}
}

// StopRedial has a direct link not opened again by this end when it is lost.
func (s *Set) StopRedial(rank int) { s.peers.Get(rank).direct.redial = nil }
