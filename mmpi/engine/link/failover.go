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

// This file carries out the decisions of package failover about a lost rail: its frames and
// segments are sent again over other rails, or over this one once it has a new link (down); the
// link is opened again (redial.go); or the job ends (end).

// lost handles err, an error of rail r's link: it takes the rail out of use, or ends the job if
// package failover decides so. After Finished the decision to end the job only ends the wait for
// other processes, and the rail is taken out of use as well.
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

// down takes lost rail r out of use, and reconnects it if possible. The frames that are not
// acknowledged, and the segments that may not have arrived, are sent again over other rails, or
// once a rail reaches their receiver; receivers discard duplicates. A frame whose payload was
// arriving over r begins again with its copy (Peer.delivering). reason is shown to the user.
func (c *core) down(r *rail, reason string) {
	again := c.tracker.Down(c.Now(), &r.Rail, reason)
	r.queue.clear(&c.store)
	if r.seg.active {
		r.endSegment()
	}
	r.in.op.abandon()
	r.detachLink()
	c.Demands.down(r)
	c.zcopy.releaseLink(r.placer)
	for _, p := range c.peers.All() {
		if p != nil && (r.peer == nil || r.peer == p) {
			p.resetLane(r)
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

// reported handles a forwarder's report, which arrived over rail r, about its link to another rank.
// An error means that no forwarder may send such a report.
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
		p.resetLane(r)
		c.leaveLater()
	}
	return nil
}

// end ends the job for the reason in e. If e.Everywhere is true and some process may not have
// finished, end first sends an Abort to the other processes, and waits for the launcher if another
// rank of this cluster is the cause (giveWay).
func (c *core) end(e *failover.End) {
	if c.ended {
		return
	}
	linked := func(r *rail) bool { return r.Linked() }
	if e.Everywhere && !c.tracker.HasFinished() && slices.ContainsFunc(c.rails, linked) {
		c.SendAbort(1, e.Rank, e.Reason)
		for _, r := range c.rails {
			if r.pending() {
				_, _ = r.write() // best effort: forwarders also notice that the links close
			}
		}
		c.giveWay(e.Rank)
	}
	c.fail(fault.Link, 1, e.Reason)
}

// fail ends the job in this process with an error code, an exit status and a reason for the user.
// Once all processes have reached the end of the job (Finished), it no longer fails the job: it
// only ends this process's wait for their last acknowledgements and Byes.
func (c *core) fail(code fault.Code, status int, reason string) {
	if c.tracker.Fails() {
		c.upper.Fatal(code, status, reason)
	}
}

// giveWay waits for the cluster's own launcher to end this process if cause, the rank that ends the
// job, is another rank of this cluster: the launcher knows the exit status. It sleeps for
// Limits.Grace with the lock held, since nothing else may happen any more.
func (c *core) giveWay(cause int) {
	if first, end := c.world.Mine(); cause != c.world.Rank && cause >= first && cause < end {
		c.system.Hold(nil, c.limit.Grace)
	}
}

// SendAbort queues an Abort, which tells the other processes that the job ends, on all rails that
// have a link. status is the job's exit status, rank the one in the whole job that is the cause,
// and reason the text for users.
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

// leave sends Bye to the other end of rail r. Before it, leave sends over r the acknowledgements
// that may be lost with another rail, because this process will have exited by the time they would
// have to be repeated.
func (c *core) leave(r *rail) {
	for _, p := range c.peers.All() {
		if p != nil && !p.lost && p.repeats(r) && r.Reaches(p.Rank) {
			f := c.sums(p.NewFrame(wire.TypeAck, 0, 0, 0))
			f.over(r.index)
			r.queue.push(f)
		}
	}
	c.Demands.report()
	r.queue.push(c.takeControl(wire.TypeBye, nil))
	r.ByeSent()
	r.live.awaits(c.Now())
}

// leaveLater opens the links of those rails without a link over which Bye must still be sent to the
// other end.
func (c *core) leaveLater() {
	for _, r := range c.forwarders {
		if !c.tracker.Leave(&r.Rail) {
			continue
		}
		if r.State() == failover.Down {
			c.reconnect(r)
		} else {
			r.abort() // The next attempt opens the link only to send Bye.
		}
	}
}
