package relay

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/leidenzipper/zipper/forwarder/loop"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
)

// This file has the functions that the event loop calls (loop.Handler). Reading starts here: fill
// (input.go) splits the input into frames, unless too many bytes of the connection are held already
// (buffer.go). Consecutive frames go to run (run.go), large segments to forward.go, directly or by
// pipe.go, and frames for the forwarder itself to the control.

var _ loop.Handler = (*Conn)(nil)

// Open registers the connection with its loop. It ends the connection, and returns the error, if
// that fails.
func (c *Conn) Open() (err error) {
	c.lastRead = c.worker.Loop.Now()
	if c.watch, err = c.worker.Loop.Add(c.link, c); err != nil {
		c.End(err)
	}
	return err
}

// Readable reads from the link and handles frames while input is available, up to a fair share of
// the loop's turn.
func (c *Conn) Readable() {
	if c.memory.paused.Load() { // only the end of the link is reported then
		c.otherEndClosed()
		return
	}
	for range readTurns {
		if c.full() {
			return
		}
		full, err := c.input.fill(c)
		if c.State() == Ended {
			return
		}
		switch {
		case err == nil && full:
			continue // more input may be available
		case err == nil || err == transport.ErrAgain:
			return
		case errors.Is(err, io.EOF) && c.parting:
			c.End(nil)
		case errors.Is(err, io.EOF):
			c.End(errors.New("its process ended before the job was over"))
		default:
			c.End(err)
		}
		return
	}
}

// Writable writes queued frames to the link, because it accepts bytes again.
func (c *Conn) Writable() { c.out.flush(c.worker.vec) }

// Tick applies the connection's timeouts, and sends pings and Counts that are due.
func (c *Conn) Tick(now time.Time) {
	cfg := &c.shared.cfg
	tickCount(c, now)
	unreachable := unreachableAfter(c)
	switch idle := now.Sub(c.lastRead); {
	case c.State() == Lingering:
		if now.After(c.deadline) {
			c.End(errLinger)
		}
	case c.State() == Joining && c.ctl.EndIfLate(now):
	case c.memory.paused.Load() && c.unheard() < unreachable:
		c.tickPaused(now)
	case c.slow.Look(now.Sub(origin), c.input.read, c.input.begun(), 2*cfg.PingInterval):
		c.Bad("a frame is incomplete: some of its bytes are missing")
	case idle >= c.patience() && c.pinged:
		c.End(&silentError{idle, fmt.Sprintf("no answer for %v", c.patience())})
	case c.pinged && c.unheard() >= unreachable:
		c.End(&silentError{c.unheard(), fmt.Sprintf("its host could not be reached for %v", unreachable)})
	case idle >= pingAfter(c) && !c.pinged:
		c.pinged = true
		// if the queue is full, the timeout will end the connection
		_ = c.Send(frame(wire.TypePing))
		c.counted = now
		sendCount(c)
	}
}

// pingAfter returns how long the peer may send nothing before it is pinged.
func pingAfter(c *Conn) time.Duration {
	every := c.shared.cfg.PingInterval
	if c.State() == Joining {
		return joiningPings * every
	}
	if r := c.route.Load(); r != nil && r.Unreachable > 0 {
		return min(every, r.Unreachable/pingsWithin)
	}
	return every
}

// silentError is the cause of an end that does not prove that the peer is dead.
type silentError struct {
	silence time.Duration // time for which nothing had been heard of the peer, or of its host
	text    string
}

func (e *silentError) Error() string { return e.text }

// Silence returns the time for which nothing had been heard of a peer, or of its host, if that is
// the cause of the end of its connection. Otherwise it returns 0.
func Silence(cause error) time.Duration {
	var e *silentError
	if errors.As(cause, &e) {
		return e.silence
	}
	return 0
}

// patience returns for how long the peer may send nothing, although it has been pinged, while its
// host answers.
func (c *Conn) patience() time.Duration {
	if r := c.route.Load(); r != nil {
		return max(c.shared.cfg.PeerTimeout, r.Patience)
	}
	return c.shared.cfg.PeerTimeout
}

// unreachableAfter returns for how long the network may not reach the other host, although the peer
// has been pinged.
func unreachableAfter(c *Conn) time.Duration {
	if r := c.route.Load(); r != nil && r.Unreachable > 0 {
		return min(c.shared.cfg.Unreachable, r.Unreachable)
	}
	return c.shared.cfg.Unreachable
}

// unheard returns for how long the network has not reached the other host, or 0 if the link cannot
// tell.
func (c *Conn) unheard() time.Duration {
	if l, ok := c.link.(transport.Listening); ok {
		d, _ := l.Unheard()
		return d
	}
	return 0
}
