package link

import (
	"errors"
	"fmt"
	"time"

	"github.com/leidenzipper/zipper/internal/trickle"
	"github.com/leidenzipper/zipper/internal/wire"
)

// A link is watched in two ways. Each end tells the other from time to time how many bytes it has
// sent (frame Count), so that a loss in the middle is noticed even if nothing follows; then the
// link is lost as by any other damage. A link that is silent is pinged.

// counter counts what passes over the link at hand, in both directions. It also checks the order of
// RailStates.
type counter struct {
	sent     uint64        // bytes that the link took
	counts   uint64        // number of Counts among them
	reported uint64        // sent at the end of the last Count
	at       time.Duration // when that was queued
	due      bool          // The next frame is a Count.
	arrived  wire.Counted
	states   wire.Ordered // RailStates that have arrived
}

// tick makes a Count due if the last one is older than every and something was sent since.
func (c *counter) tick(now, every time.Duration) {
	if c.sent > c.reported && now-c.at >= every {
		c.due = true
	}
}

// report makes a Count due now.
func (c *counter) report() { c.due = true }

// add counts bytes that the link took.
func (c *counter) add(n int) { c.sent += uint64(n) }

// next returns the body of the Count that is due; extra is what sealing adds to the frame, in
// bytes.
func (c *counter) next(now time.Duration, extra int) *wire.Count {
	c.due, c.at = false, now
	c.counts++
	body := &wire.Count{Number: c.counts, Bytes: c.sent}
	c.reported = c.sent + uint64(wire.HeaderLen+wire.CountLen+extra)
	return body
}

// check compares a Count of the other end with the bytes that had arrived before it.
func (c *counter) check(body []byte, before uint64) error {
	x, err := wire.ParseCount(body)
	if err == nil {
		err = c.arrived.Take(x, before)
	}
	if err != nil {
		return malformed{fmt.Errorf("not what was sent has come: %w", err)}
	}
	return nil
}

// malformed is an error in what arrived over a link, rather than of the link itself.
type malformed struct{ error }

// keyless says that there is no way to seal frames for another process, or to open its frames. It
// ends the job.
type keyless struct{ error }

// liveness is how long a link has been silent.
type liveness struct {
	trickle trickle.Detector
	fresh   bool          // Something has arrived since the last tick.
	heard   time.Duration // last tick before which something had arrived
	pinged  time.Duration // when the unanswered ping, or Bye, was sent; 0: there is none
}

// reset begins with a new link.
func (l *liveness) reset(now time.Duration) { *l = liveness{fresh: true, heard: now} }

// arrived notes that something has arrived.
func (l *liveness) arrived() { l.fresh = true }

// awaits notes that a ping or Bye has been sent, which the other end answers.
func (l *liveness) awaits(now time.Duration) { l.pinged = now }

// trickles reports whether a frame has been arriving for so long that its rest must be missing.
// read is the bytes that have arrived, begun is where the frame begins in these.
func (l *liveness) trickles(now time.Duration, read, begun uint64, limit time.Duration) error {
	if l.trickle.Look(now, read, begun, limit) {
		return malformed{errors.New("a frame does not come to its end: a part of it was left out")}
	}
	return nil
}

// tick reports whether the other end must be pinged after ping of silence, and how long an answer
// has been due.
func (l *liveness) tick(now, ping time.Duration) (mustPing bool, overdue time.Duration) {
	switch {
	case l.fresh:
		l.fresh, l.heard, l.pinged = false, now, 0
	case l.pinged == 0:
		if mustPing = now-l.heard > ping; mustPing {
			l.pinged = now
		}
	default:
		overdue = now - l.pinged
	}
	return mustPing, overdue
}
