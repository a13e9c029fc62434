package link

import (
	"fmt"
	"slices"
	"time"

	"github.com/leidenzipper/zipper/mmpi/engine/fault"
	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/wire"
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

// Each end of a link tells the other now and then how many bytes it has sent (frame Count): what was
// left out on the way is noticed when nothing follows it, too, and the link is lost, as by any other
// damage.

// counter is a rail's part of that, both ways; all of it is about the link at hand.
type counter struct {
	sent    uint64 // bytes that the link took
	counts  uint64 // Counts of these
	counted uint64 // sent, after the last of them
	at      time.Duration
	due     bool // the next frame is a Count
	came    wire.Counted
}

// tick sees that the other end is told.
func (c *counter) tick(now, every time.Duration) {
	if c.sent > c.counted && now-c.at >= every {
		c.due = true
	}
}

// sayCount queues a Count, if one is due and no frame is half written: it is the next to go.
func sayCount(r *rail) {
	c := &r.count
	if !c.due || r.link == nil || r.seg.active || !r.queue.Empty() && r.queue.First().Of.off > 0 {
		return
	}
	c.due, c.at = false, r.set.Now()
	c.counts++
	f := r.set.newControl(wire.TypeCount, &wire.Count{Number: c.counts, Bytes: c.sent})
	c.counted = c.sent + uint64(wire.HeaderLen+wire.CountLen)
	if r.set.seal != nil {
		c.counted += wire.SealLen
	}
	f.queued = true
	r.queue.PushFirst(&f.out)
}

// take checks a Count that came when at bytes had come.
func (c *counter) take(body []byte, at uint64) error {
	x, err := wire.ParseCount(body)
	if err == nil {
		err = c.came.Take(x, at)
	}
	if err != nil {
		return breach{fmt.Errorf("not what was sent has come: %w", err)}
	}
	return nil
}
