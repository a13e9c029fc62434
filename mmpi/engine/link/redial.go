package link

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/mmpi/engine/link/demand"
	"github.com/leidenzipper/zipper/mmpi/engine/link/failover"
)

// reconnect starts a goroutine that opens the rail's link again, if this end is the one that does
// so. It tries until an attempt succeeds, package failover gives up the rail, or the links are
// closed.
func (c *core) reconnect(r *rail) {
	pause, ok := r.Redial()
	if !ok {
		return
	}
	c.system.Go(func() {
		if !c.system.Pause(c.ctx, pause) {
			return
		}
		for pause := failover.Backoff(0); ; pause = failover.Backoff(pause) {
			err := c.attempt(r)
			if err == nil || c.ctx.Err() != nil {
				return
			}
			c.lock.Lock()
			over := c.dialFailed(r, err)
			c.lock.Unlock()
			if over {
				return
			}
			if !c.system.Pause(c.ctx, pause) {
				return
			}
		}
	}, false)
}

// attempt tries once to open a rail's link and put it into use, and returns the error of a failure.
// The caller must not hold the lock.
func (c *core) attempt(r *rail) error {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	c.lock.Lock()
	a := Attempt{Leaves: r.OwesBye(), Lost: c.Losses.list()}
	r.cancel = cancel
	r.Attempt(true)
	c.lock.Unlock()
	l, err := r.open(ctx, a)
	if err != nil {
		return err // dialFailed ends the attempt, and records the error.
	}
	if !c.accept(ctx, r, l) {
		l.Close()
	}
	c.lock.Lock()
	r.Attempt(false)
	c.lock.Unlock()
	return nil
}

// dialFailed records the error of an attempt to open a rail's link, and ends the job if package
// failover decides so. over reports that no further attempt is made, because the job ends or only
// because this rail is given up or closed. The caller must hold the lock.
func (c *core) dialFailed(r *rail, err error) (over bool) {
	f := failover.Failure{Err: err, Refused: errors.Is(err, unix.ECONNREFUSED), Cancelled: errors.Is(err, context.Canceled)}
	var refusal interface{ Final() bool }
	if errors.As(err, &refusal) {
		f.Final = refusal.Final()
	}
	var p interface{ Permanent() bool }
	if errors.As(err, &p) {
		f.Permanent = p.Permanent()
	}
	over, end := c.tracker.DialFailed(c.Now(), &r.Rail, f)
	switch {
	case r.peer != nil:
		c.Demands.failed(r, err)
		c.directChanged()
	case end != nil:
		c.end(end)
	case r.State() == failover.Closed:
		c.wake()
	}
	return over
}

// accept puts link l, which has been opened, into use in place of the previous one. ctx is that of
// this end's attempt to open it, or of the Set. It returns false if the rail takes no link any
// more. The caller must not hold the lock.
func (c *core) accept(ctx context.Context, r *rail, l transport.Link) bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	if r.wanted {
		r.StopRedial() // The link is not opened again when it is lost.
		if ctx.Err() != nil || !c.tracker.Wants(&r.Rail) || !c.Demands.admit(r) {
			return false
		}
		r.abort() // The link of the other end, which has the lower rank, replaces an attempt of this end.
	}
	if r.Linked() && c.tracker.Wants(&r.Rail) { // The other end has noticed the loss first.
		c.down(r, "opened again")
	}
	if !c.tracker.Up(c.Now(), &r.Rail, c.progress, l.Remote()) {
		return false
	}
	r.replace(l)
	c.Demands.up(r)
	for _, p := range c.peers.All() {
		if p != nil && (r.peer == nil || r.peer == p) {
			p.resend(nobody)
		}
	}
	switch {
	case r.peer != nil:
		r.peer.schedule()
		c.directChanged()
	case r.OwesBye():
		c.leave(r)
	}
	c.wake()
	return true
}

// onlyAttempt is the error of the only attempt to open a direct link on demand.
type onlyAttempt struct{ error }

// Unwrap returns the error of the attempt.
func (e onlyAttempt) Unwrap() error { return e.error }

// Permanent returns true: the forwarder must be asked again before the next attempt.
func (onlyAttempt) Permanent() bool { return true }

// errNotTaken is the error of an attempt whose link is not taken. It is no failure of the network.
var errNotTaken = errors.New("the other end has opened the link, or all direct links that this process may have are in use")

// admit makes room for a new link of rail r, if necessary by closing the one that was unused for
// longest, and reports whether there is room.
func (d *Demands) admit(r *rail) bool {
	now := d.core.Now()
	n, oldest := 0, (*rail)(nil)
	for _, o := range d.core.rails[len(d.core.forwarders):] {
		if !o.wanted || o == r {
			continue
		}
		n++
		if o.use.Look(now, o.in.frames); o.State() == failover.Up && (oldest == nil || o.use.Idle(now) > oldest.use.Idle(now)) {
			oldest = o
		}
	}
	switch {
	case !d.room(now, r.peer):
		return false
	case n < demand.MaxLinks:
		return true
	case oldest == nil || !demand.MayClose(oldest.use.Idle(now)):
		return false
	}
	d.core.down(oldest, "closed to make room for another one")
	return true
}
