package link

import (
	"errors"
	"fmt"
	"time"

	"github.com/leidenzipper/zipper/internal/trickle"
	"github.com/leidenzipper/zipper/internal/wire"
)

// A link is watched in three ways. Each end tells the other from time to time how many bytes it has
// sent (frame Count), so that missing bytes are noticed even if nothing follows them; then the link
// is given up as after other damage. A link that is silent is pinged. A frame of which only a few
// bytes arrive now and then has lost a part, and the link is given up (trickles).

// counter counts the bytes and Counts on the current link, in both directions. It also checks the
// order of RailStates and Losts.
type counter struct {
	sent     uint64        // number of bytes that the link took
	counts   uint64        // number of Counts that were sent
	reported uint64        // value of sent after the last Count
	at       time.Duration // time at which the last Count was queued for sending
	due      bool          // The next frame to be sent is a Count.
	arrived  wire.Counted  // compares the Counts from the other end with the bytes that have arrived
	states   wire.Ordered  // checks that no RailState or Lost from the other end is missing or out of order
}

// tick makes the next frame a Count if, at the time now, the last one is older than every and bytes
// have been sent since.
func (c *counter) tick(now, every time.Duration) {
	if c.sent > c.reported && now-c.at >= every {
		c.due = true
	}
}

// report makes the next frame over the link a Count, the number of bytes sent before it.
func (c *counter) report() { c.due = true }

// add counts n more bytes that the link took for sending.
func (c *counter) add(n int) { c.sent += uint64(n) }

// next returns the body of the Count that is due, at the time now. extra is the number of bytes
// that sealing adds to the frame.
func (c *counter) next(now time.Duration, extra int) *wire.Count {
	c.due, c.at = false, now
	c.counts++
	body := &wire.Count{Number: c.counts, Bytes: c.sent}
	c.reported = c.sent + uint64(wire.HeaderLen+wire.CountLen+extra)
	return body
}

// check compares a Count from the other end with before, the number of bytes that arrived before
// it. An error means that bytes, or a Count, are missing, or that bytes were inserted.
func (c *counter) check(body []byte, before uint64) error {
	x, err := wire.ParseCount(body)
	if err == nil {
		err = c.arrived.Take(x, before)
	}
	if err != nil {
		return malformed{fmt.Errorf("the received bytes differ from the sent bytes: %w", err)}
	}
	return nil
}

// malformed is an error in the bytes that arrived over a link, rather than of the link itself.
type malformed struct{ error }

// keyless is an error that means that frames for or from another process cannot be sealed or
// opened, because there are no keys. It ends the job.
type keyless struct{ error }

// liveness measures how long a link has been silent.
type liveness struct {
	trickle     trickle.Detector // detects a frame that stays incomplete
	fresh       bool             // Bytes have arrived since the last tick.
	lastArrival time.Duration    // time of the last tick that found fresh bytes
	pinged      time.Duration    // time at which the unanswered Ping or Bye was sent; 0: no answer is due
}

// reset begins to measure the silence of a new link, which is up at the time now.
func (l *liveness) reset(now time.Duration) { *l = liveness{fresh: true, lastArrival: now} }

// arrived records that bytes have arrived over the link since the last tick.
func (l *liveness) arrived() { l.fresh = true }

// silent returns for how long nothing has arrived over the link at the time now.
func (l *liveness) silent(now time.Duration) time.Duration {
	if l.fresh {
		return 0
	}
	return now - l.lastArrival
}

// awaits records that a Ping or Bye was sent at time now, which the other end must answer.
func (l *liveness) awaits(now time.Duration) { l.pinged = now }

// trickles returns an error if, for longer than limit, only few bytes of an incomplete frame have
// arrived at a time: they belong to later frames, and a part of this one is missing. A frame of
// which nothing more arrives is no error here. read is the number of bytes that have arrived, begun
// the position among them at which the frame begins.
func (l *liveness) trickles(now time.Duration, read, begun uint64, limit time.Duration) error {
	if l.trickle.Look(now, read, begun, limit) {
		return malformed{errors.New("a frame is incomplete: some of its bytes are missing")}
	}
	return nil
}

// tick reports whether the other end must be sent a Ping, because at the time now the link has been
// silent for longer than ping. If a Ping is unanswered, overdue is the time since it was sent.
func (l *liveness) tick(now, ping time.Duration) (mustPing bool, overdue time.Duration) {
	switch {
	case l.fresh:
		l.fresh, l.lastArrival, l.pinged = false, now, 0
	case l.pinged == 0:
		if mustPing = now-l.lastArrival > ping; mustPing {
			l.pinged = now
		}
	default:
		overdue = now - l.pinged
	}
	return mustPing, overdue
}
