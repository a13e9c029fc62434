package link

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
	"github.com/leidenzipper/zipper/mmpi/engine/link/failover"
)

// What package failover decides about a rail that is lost is carried out here: what it carried goes
// over the others (down), the link is opened again (redial.go), or the job ends (end).

// lost takes a rail out of use whose link has failed, or ends the job.
func (c *core) lost(r *rail, err error) {
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("the %s closed it (killed, or the network went down)", r.End())
	}
	reason := fmt.Sprintf("link rank %d - %s %s lost: %v", c.world.Rank, r.End(), r.link.Remote(), err)
	loss := failover.Loss{Reason: reason, Progress: c.progress}
	var m malformed
	var k keyless
	switch {
	case errors.Is(err, unix.EBADF) || errors.Is(err, unix.ENOTSOCK):
		loss.Kind, loss.Reason = failover.Misused, fault.ClosedByProgram
	case errors.As(err, &k):
		loss.Kind, loss.Reason = failover.NoKeys, err.Error()
	case errors.As(err, &m):
		loss.Kind = failover.Malformed
	}
	if end := c.tracker.Lost(c.Now(), &r.Rail, loss); end != nil {
		if end.Silent {
			r.drop()
		}
		c.end(end)
		if !c.tracker.HasFinished() {
			return
		}
	}
	c.down(r, reason)
}

// down takes a lost rail out of use. What it carried goes over the others: sequenced frames that
// are not acknowledged, and segments that may not have arrived; receivers drop what they have. A
// frame whose payload was arriving begins again with its copy (Peer.delivering).
func (c *core) down(r *rail, reason string) {
	again := c.tracker.Down(c.Now(), &r.Rail, reason)
	r.queue.clear(&c.store)
	if r.seg.active {
		r.endSegment()
	}
	r.in.op.abandon()
	r.detachLink()
	c.zcopy.releaseLink(r.placer)
	for _, p := range c.peers.All() {
		if p != nil && (r.peer == nil || r.peer == p) {
			p.laneLost(r)
		}
	}
	if !again {
		return
	}
	if !c.ended {
		c.reconnect(r)
	}
	c.leaveLater()
}

// reported takes the report of a rail's forwarder about its link to another rank.
func (c *core) reported(r *rail, x wire.RailState) error {
	change, err := c.tracker.Reachable(c.Now(), &r.Rail, x)
	if err != nil {
		return err
	}
	rank := int(x.Rank)
	switch change {
	case failover.Departed, failover.Restored:
		if p := c.peers.Get(rank); p != nil {
			if change == failover.Departed {
				p.depart()
			}
			p.resend(nobody)
		}
	case failover.Cut:
		p := c.Peer(rank)
		r.purge(p)
		p.laneLost(r)
		c.leaveLater()
	}
	return nil
}

// end ends the job.
func (c *core) end(e *failover.End) {
	if c.ended {
		return
	}
	linked := func(r *rail) bool { return r.Linked() }
	if e.Everywhere && !c.tracker.HasFinished() && slices.ContainsFunc(c.rails, linked) {
		c.SendAbort(1, e.Rank, e.Reason)
		for _, r := range c.rails {
			if r.pending() {
				_, _ = r.write() // what the link takes now; forwarders notice anyway that our links close
			}
		}
		c.giveWay(e.Rank)
	}
	c.fail(fault.Link, 1, e.Reason)
}

// fail ends the job in this process. Once all processes have finished it only ends the wait for
// them.
func (c *core) fail(code fault.Code, status int, reason string) {
	if c.tracker.Fails() {
		c.upper.Fatal(code, status, reason)
	}
}

// giveWay lets the cluster's own launcher end this process when a rank of the same cluster is the
// cause of the end, because the launcher knows the exit status. giveWay sleeps for Limits.Grace
// with the lock: nothing else is to happen any more.
func (c *core) giveWay(cause int) {
	if first, end := c.world.Mine(); cause != c.world.Rank && cause >= first && cause < end {
		c.system.Hold(nil, c.limit.Grace)
	}
}

// SendAbort puts an Abort on all rails; rank is the cause.
func (c *core) SendAbort(status, rank int, reason string) {
	a := wire.Abort{Code: int32(status), Rank: uint32(rank), Reason: reason, By: wire.Nobody}
	if c.seal != nil {
		c.seal.Sign(&a)
	}
	for _, r := range c.rails {
		if r.Linked() {
			r.queue.push(c.takeControl(wire.TypeAbort, &a))
		}
	}
}

// leave sends Bye on a rail. An acknowledgement that may be lost with a rail is repeated on the
// others, because this process will not be here to repeat it later.
func (c *core) leave(r *rail) {
	for _, p := range c.peers.All() {
		if p != nil && p.repeats(r) && r.Reaches(p.Rank) {
			f := c.sums(p.NewFrame(wire.TypeAck, 0, 0, 0))
			f.over(r.index)
			r.queue.push(f)
		}
	}
	r.queue.push(c.takeControl(wire.TypeBye, nil))
	r.ByeSent()
	r.live.awaits(c.Now())
}

// leaveLater opens rails over which Bye must still be sent.
func (c *core) leaveLater() {
	for _, r := range c.forwarders {
		if !c.tracker.Leave(&r.Rail) {
			continue
		}
		if r.State() == failover.Down {
			c.reconnect(r)
		} else {
			r.abort() // The next attempt is only to send Bye.
		}
	}
}
