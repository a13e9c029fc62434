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

// What the event loop asks of a connection (loop.Handler). It reads from here down: fill (input.go)
// cuts what comes into frames, unless too much is kept already (buffer.go); frames in a row go to
// run (run.go), large segments to forward.go, directly or by pipe.go; frames for the forwarder
// itself to the control.

var _ loop.Handler = (*Conn)(nil)

// Open has the loop wait for the link. If that fails the connection has ended.
func (c *Conn) Open() (err error) {
	c.heard = c.worker.Loop.Now()
	if c.watch, err = c.worker.Loop.Add(c.link, c); err != nil {
		c.End(err)
	}
	return err
}

// Readable reads and handles what there is, within a fair share.
func (c *Conn) Readable() {
	if c.memory.paused.Load() { // then only the end of the link brings us here
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
			continue // more may be there
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

// Writable writes what is queued.
func (c *Conn) Writable() { c.out.flush(c.worker.vec) }

// Tick looks at the clock.
func (c *Conn) Tick(now time.Time) {
	cfg := &c.shared.cfg
	tickCount(c, now)
	switch idle := now.Sub(c.heard); {
	case c.State() == Lingering:
		if now.After(c.deadline) {
			c.End(errLinger)
		}
	case c.State() == Joining && c.ctl.Late(now):
	case c.memory.paused.Load() && c.unheard() < cfg.Unreachable:
		c.tickPaused(now)
	case c.slow.Look(now.Sub(origin), c.input.read, c.input.begun(), 2*cfg.PingInterval):
		c.Bad("a frame does not come to its end: a part of it was left out")
	case idle >= c.patience() && c.pinged:
		c.End(fmt.Errorf("no answer for %v%w", c.patience(), ErrSilent))
	case c.pinged && c.unheard() >= cfg.Unreachable:
		c.End(fmt.Errorf("its host could not be reached for %v%w", cfg.Unreachable, ErrSilent))
	case idle >= pingAfter(c) && !c.pinged:
		c.pinged = true
		_ = c.Send(frame(wire.TypePing)) // too much waits for it already: it will be found dead
		c.counted = now
		sendCount(c)
	}
}

// pingAfter is after how much silence the peer is pinged.
func pingAfter(c *Conn) time.Duration {
	if c.State() == Joining {
		return joiningPings * c.shared.cfg.PingInterval
	}
	return c.shared.cfg.PingInterval
}

// ErrSilent is in the cause of an end that does not show that the other end is dead.
var ErrSilent = silent{}

type silent struct{}

func (silent) Error() string { return "" }

// patience is how long the peer may say nothing, though pinged, while its host answers.
func (c *Conn) patience() time.Duration {
	if r := c.route.Load(); r != nil {
		return max(c.shared.cfg.PeerTimeout, r.Patience)
	}
	return c.shared.cfg.PeerTimeout
}

// unheard is how long the network has not reached the other host, if it can tell.
func (c *Conn) unheard() time.Duration {
	if l, ok := c.link.(transport.Listening); ok {
		d, _ := l.Unheard()
		return d
	}
	return 0
}
