package engine

import (
	"time"

	"github.com/leidenzipper/zipper/transport"
)

// Pauses between attempts to have a rail back.
const (
	firstRedial = 50 * time.Millisecond
	maxRedial   = 2 * time.Second
)

// reconnect has a goroutine of its own open the rail's link again, until it is there or the engine ends.
func (e *Engine) reconnect(r *rail) {
	redial, ctx := r.redial, e.ways.ctx
	if redial == nil {
		return
	}
	go func() {
		for pause := firstRedial; ; pause = min(2*pause, maxRedial) {
			err := redial(ctx)
			if err == nil || ctx.Err() != nil {
				return
			}
			if r.peer != nil {
				e.lock()
				e.directNews(r, err)
				e.unlock()
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
		}
	}()
}

// railUp takes a link into use; false: the engine does not want it any more.
func (e *Engine) railUp(r *rail, l transport.Link) bool {
	e.lock()
	defer e.unlock()
	if e.err != nil || e.ways.finishing || e.stopping {
		return false
	}
	now := e.now()
	r.attach(l)
	r.up, r.down, r.bye, r.blocked = true, nil, running, false
	r.fresh, r.heard, r.pinged = true, now, 0
	e.tellBack(r)
	e.ways.none = 0
	clear(e.ways.cut) // who is out of reach here too is told by the forwarder
	for _, p := range e.peers {
		if p != nil {
			e.resend(p, nil)
		}
	}
	e.review()
	e.wait.WakeAll()
	return true
}
