package link

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/list"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
)

// A rail that is lost:
//
//  1. What caused it counts as a strike (struckOut): lost again and again without anything new
//     between, the job ends. So it does with the only rail if that is not opened again (lost).
//  2. Else it is taken out of use (railDown) and, unless it is not wanted back, opened again
//     (redial.go). Bytes that are no frame, or are damaged, are no other loss: nothing of them was
//     used.
//  3. What it carried goes over the others (laneDown, resend): segments not known to have landed,
//     sequenced frames not acknowledged. Credit and acknowledgement are said again.
//  4. A forwarder that loses another rank's link says so (forwarderSays): the same for that peer
//     alone.
//  5. Whom no rail reaches for too long is dead, and the job ends (checkReachable). Where one rail
//     leads to a rank its forwarder decides that (checkOnly).
//  6. When everybody has come to the job's end, what would fail it ends the waiting (fail).

// failover is what is known of losses.
type failover struct {
	set              *Set
	lastErr          string                // why the last rail was lost
	noneSince        time.Duration         // tick since which there is no rail; 0: there is one
	unreachableSince map[int]time.Duration // ranks that no rail reaches: since when
	met              bool                  // everybody has come to the end
	gone             bool                  // and the job has failed since
	finishing        bool                  // losses no longer matter
	looked           bool                  // whether all forwarders have come
	toldCut          bool                  // the user knows that ranks are out of reach
}

// lost sees to a rail that has failed: if it cannot be opened again, and there is no other one, or
// if that does not help, the job ends.
func (v *failover) lost(r *rail, err error) {
	s := v.set
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("the %s closed it (killed, or the network went down)", r.end())
	}
	reason := fmt.Sprintf("link rank %d - %s %s lost: %v", s.world.Rank, r.end(), r.link.Remote(), err)
	if why := v.hopeless(r, err, reason); why != "" {
		v.abortJob(s.world.Rank, why)
		if !v.met {
			return
		}
	}
	v.railDown(r, reason)
}

// hopeless says why the job ends with the loss of a rail; empty: it does not. If nothing can be
// said over the rail any more, so that others are not told there either, it fails.
func (v *failover) hopeless(r *rail, err error, reason string) string {
	var b breach
	var k keyless
	switch {
	case errors.Is(err, unix.EBADF) || errors.Is(err, unix.ENOTSOCK):
		r.fail()
		return fault.ClosedByProgram
	case errors.As(err, &k):
		return err.Error()
	case r.peer == nil && !v.set.replays:
		if !errors.As(err, &b) {
			r.fail()
		}
		return reason
	case v.struckOut(r):
		return fmt.Sprintf("%s (%d times in a row, with nothing new between)", reason, r.strikes)
	}
	return ""
}

// struckOut counts the loss of a rail, and reports whether it is one too many.
func (v *failover) struckOut(r *rail) bool {
	s := v.set
	if r.losses++; s.progress != r.had || s.Now()-r.since > strikeTime {
		r.strikes = 0
	}
	r.strikes++
	return r.strikes >= maxStrikes && !v.finishing
}

// railDown takes a lost rail out of use. What it carried goes over the others: sequenced frames not
// acknowledged, segments not known to have landed; receivers drop what they have. A frame whose
// payload was arriving is begun anew by its copy (Peer.delivering).
func (v *failover) railDown(r *rail, reason string) {
	s := v.set
	if r.peer == nil {
		v.lastErr, r.why, r.lostAt = reason, reason, s.Now()
	}
	for !r.queue.Empty() {
		if f := r.pop(); f.seq == 0 {
			s.freeFrame(f)
		}
	}
	if r.seg.active {
		r.dropSegment()
	}
	r.fail()
	r.close()
	r.unreachable, r.blocked = nil, false
	s.zcopy.unpinRail(r)
	if op := &r.in.op; op.ahead != nil {
		op.peer.aheadBytes -= op.n
	}
	r.in = input{buf: r.in.buf}
	for _, p := range s.peers.All() {
		if p != nil && (r.peer == nil || r.peer == p) {
			r.laneDown(p)
		}
	}
	if v.finishing && !r.leaves || r.state == closed {
		return
	}
	if r.peer == nil {
		v.updateReachable()
		v.tellLost(r, reason)
	}
	if !s.ended {
		v.reconnect(r)
	}
	if v.finishing {
		v.leaveLater()
	}
}

// laneDown replays what a rail carried to a peer; nothing of that peer is queued there any more.
func (r *rail) laneDown(p *Peer) {
	l := &p.lanes[r.index]
	l.enrolled = false
	if seg := &r.seg; seg.active && seg.peer == p && seg.src != nil {
		// The link lives and must have the whole frame, but the peer will not get it: the replay
		// counts.
		src, first := seg.src, seg.first
		seg.detach()
		if first {
			r.set.segmentDone(src)
		}
	}
	p.replay = append(p.replay, l.out.Reset()...)
	p.resend(r)
}

// resend gives frames that a rail carried (nil: that found none) to a rail that reaches the peer,
// and says again what is not repeated: credit and acknowledgement.
func (p *Peer) resend(from *rail) {
	to := p.rail()
	for n := p.retained.First(); n != nil; n = n.Next() {
		f := n.Of
		if f.rail != from || f.queued {
			continue
		}
		f.off, f.rail, f.replayed = 0, to, true
		if from != nil {
			wire.MarkAgain(f.Buf)
		}
		if to != nil {
			to.push(f)
		}
	}
	if to != nil {
		p.set.upper.SayCredit(p)
		p.schedule()
	}
}

// forwarderSays takes a forwarder's word about another rank's link.
func (v *failover) forwarderSays(r *rail, x wire.RailState) error {
	s := v.set
	rank := int(x.Rank)
	if !s.replays || r.peer != nil || rank >= s.size || rank == s.world.Rank {
		return breach{fmt.Errorf("unexpected RailState of rank %d", x.Rank)}
	}
	if s.paths != nil && !slices.Contains(s.paths[rank], r) {
		return nil // others go that way
	}
	if x.Gone {
		if p := s.peers.Get(rank); p != nil {
			p.gone()
		}
	}
	if x.Up || x.Gone {
		delete(r.unreachable, rank)
		delete(v.unreachableSince, rank)
		if p := s.peers.Get(rank); p != nil {
			p.resend(nil)
		}
		return nil
	}
	if r.unreachable == nil {
		r.unreachable = map[int]wire.RailState{}
	}
	x.Reason = wire.Printable(x.Reason)
	r.unreachable[rank] = x
	p := s.Peer(rank)
	r.purge(p)
	r.laneDown(p)
	v.updateRank(rank)
	if v.finishing {
		v.leaveLater()
	}
	return nil
}

// purge takes a peer's frames and turns from a rail that lives. A frame that is half written goes
// on as a copy.
func (r *rail) purge(p *Peer) {
	old := r.queue
	r.queue, r.unsent = list.List[*Frame]{}, 0
	for n := old.First(); n != nil; {
		f := n.Of
		n = n.Next()
		f.queued = false
		if f.peer == p && f.off == 0 {
			f.unseal(r.set)
		}
		switch {
		case f.peer != p:
			r.push(f)
		case f.off > 0:
			c := r.set.takeFrame(len(f.Buf))
			c.Buf, c.off, c.background = append(c.Buf, f.Buf...), f.off, true
			c.sealed, f.sealed = f.sealed, nil
			r.push(c)
			fallthrough
		default:
			if f.seq == 0 {
				r.set.freeFrame(f)
			}
		}
	}
	r.bulk = slices.DeleteFunc(r.bulk, func(b *Peer) bool { return b == p })
}

// updateReachable notes since when there is no rail, or none to some rank.
func (v *failover) updateReachable() {
	s := v.set
	if v.linkedForwarders() == 0 {
		if v.noneSince == 0 {
			v.noneSince = s.Now()
		}
		return
	}
	for rank := range s.size {
		v.updateRank(rank)
	}
}

// updateRank notes since when there is no rail to a rank.
func (v *failover) updateRank(rank int) {
	s := v.set
	if rank == s.world.Rank {
		return
	}
	for _, r := range s.railsTo(rank) {
		if r.reaches(rank) {
			delete(v.unreachableSince, rank)
			return
		}
	}
	if _, ok := v.unreachableSince[rank]; !ok {
		v.unreachableSince[rank] = s.Now()
	}
}

// checkReachable ends the job when there has been no way for too long.
func (v *failover) checkReachable(now time.Duration) {
	s := v.set
	if v.finishing || v.gone {
		return
	}
	if s.resumes {
		v.checkOnly(now)
		return
	}
	limit := min(s.limit.NoRail, deadAfter)
	for _, r := range s.forwarders {
		if !r.linked() && (s.paths == nil || r.redial != nil) {
			limit = s.limit.NoRail
		}
	}
	if v.noneSince > 0 && now-v.noneSince > limit {
		v.fail(fault.Link, 1, fmt.Sprintf("no forwarder could be reached for %v; the last: %s", limit, v.lastErr))
		return
	}
	for _, rank := range v.unreachable() {
		since, last, limit := v.unreachableSince[rank], v.lastErr, limit
		for _, r := range s.railsTo(rank) {
			if x, ok := r.unreachable[rank]; ok {
				last = x.Reason
				if x.Cut {
					limit = s.limit.NoRail // it may live: a link between forwarders is opened again
				}
			}
		}
		if now-since <= limit {
			continue
		}
		v.abortJob(rank, fmt.Sprintf("no forwarder could reach rank %d for %v; the last: %s", rank, limit, last))
		return
	}
}

// checkOnly ends the job when a forwarder over which alone some rank is reached has been out of
// reach for too long. Whom that does not reach, it decides.
func (v *failover) checkOnly(now time.Duration) {
	for _, r := range v.set.forwarders {
		if r.linked() || r.lostAt == 0 {
			continue
		}
		limit, failed := v.set.limit.NoRail, r.failed
		if errors.Is(failed, unix.ECONNREFUSED) {
			switch {
			case r.trying: // that comes at once: this attempt waits there for the others
				failed = nil
			case v.set.paths == nil && !r.stopped:
				limit = min(limit, refusedFor)
			}
		}
		if now-r.lostAt <= limit {
			continue
		}
		reason := fmt.Sprintf("%s, and the forwarder is not reached again for %v", r.why, limit)
		if failed != nil {
			reason += fmt.Sprintf(": %v", failed)
		}
		v.abortJob(v.set.world.Rank, reason)
		return
	}
}

// fail ends the job here. When everybody has come to its end that is no failure.
func (v *failover) fail(code fault.Code, status int, reason string) {
	if v.met {
		v.gone = true
		return
	}
	v.set.upper.Fatal(code, status, reason)
}

// abortJob ends the job for everybody: one rank, the cause, cannot go on. When everybody has come
// to its end, others find out for themselves whether they miss something.
func (v *failover) abortJob(cause int, reason string) {
	s := v.set
	if s.ended {
		return
	}
	if !v.met && slices.ContainsFunc(s.rails, (*rail).linked) {
		s.SayAbort(1, cause, reason)
		for _, r := range s.rails {
			if r.pending() {
				_, _ = r.write() // what the link takes now; the forwarders see our links close anyway
			}
		}
		v.giveWay(cause)
	}
	v.fail(fault.Link, 1, reason)
}

// giveWay lets the cluster's own launcher end this process when the cause is a rank of the same
// cluster: it knows the exit status. It sleeps for Limits.Grace with the lock: nothing else is to
// happen any more.
func (v *failover) giveWay(cause int) {
	s := v.set
	if first, end := s.world.Mine(); cause != s.world.Rank && cause >= first && cause < end {
		s.system.Hold(nil, s.limit.Grace)
	}
}
