package link

import (
	"errors"
	"slices"
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
)

// Tick does what has to be done from time to time: acknowledgements that found no frame to ride on,
// pings, and the end of what was silent or out of reach for too long.
func (s *Set) Tick(now time.Duration) {
	if s.ended {
		return
	}
	s.FlushAcks()
	for _, r := range s.rails {
		r.count.tick(now, s.limit.Ping)
		switch {
		case reads(r) && r.slow.Look(now, r.in.read, r.in.begun(), 2*s.limit.Ping):
			s.failover.lost(r, breach{errors.New("a frame does not come to its end: a part of it was left out")})
		case r.state == byeSent: // Bye or its answer may have been damaged
			if limit := s.limit.Silence / 2; now-r.pinged > limit {
				s.failover.lost(r, fault.New(fault.Link, "no good-bye for %v", limit))
			}
		case r.state != up && r.state != leaving:
		case r.fresh:
			r.fresh, r.heard, r.pinged = false, now, 0
		case r.pinged == 0:
			if now-r.heard > s.limit.Ping {
				r.pinged = now
				r.push(s.newControl(wire.TypePing, nil))
				r.count.due = true
			}
		default:
			if limit := r.patience(); now-r.pinged > limit {
				s.failover.lost(r, fault.New(fault.Link, "no answer for %v", limit))
			}
		}
	}
	if s.replays {
		s.failover.checkReachable(now)
		s.failover.tellCut(now)
	}
	if s.multi {
		s.failover.tellMissing(now)
	}
	s.Flush()
}

// patience is how long a ping may go unanswered. The last way out is not given up soon while the
// network still reaches the other host: the process there is stopped, or waits for a core.
func (r *rail) patience() time.Duration {
	s := r.set
	another := (s.multi || r.peer != nil) && slices.ContainsFunc(s.forwarders, func(o *rail) bool { return o != r && o.linked() })
	if l, ok := r.link.(transport.Listening); ok && !another {
		if unheard, known := l.Unheard(); known && unheard < s.limit.Silence {
			return max(s.limit.Silence, s.limit.LastWay)
		}
	}
	return s.limit.Silence
}
