package engine

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/leidenzipper/zipper/wire"
)

// condemn ends the job for everybody: one rank, the cause, cannot go on.
func (e *Engine) condemn(rank int, reason string) {
	if e.err != nil {
		return
	}
	if len(e.rails) > 1 {
		e.sendAbort(1, rank, reason)
		for _, r := range e.rails {
			if r.pending() {
				_, _ = r.write() // what the link takes now; the forwarders see our links close anyway
			}
		}
		e.giveWay(rank)
	}
	e.fatal(ErrLink, 1, reason)
}

// lost sees to a rail that has failed: without another one, or if it was the fault of what came over it, the job ends.
func (e *Engine) lost(r *rail, err error) {
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("the %s closed it (killed, or the network went down)", r.end())
	}
	reason := fmt.Sprintf("link rank %d - %s %s lost: %v", e.world.Rank, r.end(), r.link.Remote(), err)
	var b breach
	switch {
	case errors.As(err, &b):
		e.condemn(e.world.Rank, reason)
	case r.peer != nil:
		e.railDown(r, reason)
	case !e.multi:
		r.up = false // nothing can be said there any more
		e.condemn(e.world.Rank, reason)
	default:
		e.railDown(r, reason)
	}
}

// end names what is at the other end of the rail.
func (r *rail) end() string {
	if r.peer != nil {
		return fmt.Sprintf("rank %d", r.peer.rank)
	}
	return "forwarder"
}

// railDown takes a lost rail out of use. What it carried goes over the others: sequenced frames not acknowledged, segments not known to have
// landed; receivers drop what they have. A frame whose payload was arriving is begun anew by its copy (peer.open).
func (e *Engine) railDown(r *rail, reason string) {
	if r.peer == nil {
		e.ways.lastErr = reason
	}
	r.up, r.down, r.blocked = false, nil, false
	r.link.Close()
	for f := r.queue.head; f != nil; f = r.queue.head {
		r.queue.pop()
		f.queued = false
		if f.seq == 0 {
			e.freeFrame(f)
		}
	}
	r.unsent, r.bulk = 0, r.bulk[:0]
	if r.seg.active {
		r.dropSegment()
	}
	r.dropPipe()
	e.unpinRail(r)
	r.in.r, r.in.w, r.in.bulk = 0, 0, false
	if l := r.in.land; r.in.busy && l.early != nil {
		l.peer.earlyBytes -= l.n // its copy brings it
	}
	r.in.busy, r.in.dst, r.in.skip, r.in.land = false, nil, 0, landing{}
	for _, p := range e.peers {
		if p != nil && (r.peer == nil || r.peer == p) {
			e.laneDown(r, p)
		}
	}
	if e.ways.finishing || r.leaving {
		return
	}
	if r.peer == nil {
		e.review()
		if e.paths != nil {
			r.redial = nil // its row goes on without it
		}
		e.tellLost(r, reason)
	}
	if e.err == nil {
		e.reconnect(r)
	}
}

// laneDown replays what a rail carried to a peer; nothing of that peer is queued there any more.
func (e *Engine) laneDown(r *rail, p *peer) {
	l := &p.lanes[r.index]
	l.enrolled = false
	if s := &r.seg; s.active && s.peer == p && s.req != nil {
		// The link lives and must have the whole frame, but the peer will not get it: the replay counts.
		if q := s.req; s.first {
			q.writing--
			e.checkSent(q)
		}
		s.detach()
	}
	p.replay = append(p.replay, l.out.Reset()...)
	e.resend(p, r)
}

// resend gives frames that a rail carried (nil: that found none) to a rail that reaches the peer, and says again what is not repeated: credit
// and acknowledgement.
func (e *Engine) resend(p *peer, from *rail) {
	to := e.way(p)
	for f := p.retained.head; f != nil; f = f.nextKept {
		if f.rail != from || f.queued {
			continue
		}
		f.off, f.rail, f.replayed = 0, to, true
		if to != nil {
			to.push(f)
		}
	}
	if to != nil {
		e.sendCredit(p)
		e.schedule(p)
	}
}

// railState takes a forwarder's word about another rank's link.
func (e *Engine) railState(r *rail, s wire.RailState) error {
	rank := int(s.Rank)
	if !e.multi || r.peer != nil || rank >= e.size || rank == e.world.Rank {
		return breach{fmt.Errorf("unexpected RailState of rank %d", s.Rank)}
	}
	if e.paths != nil && !slices.Contains(e.paths[rank], r) {
		return nil // others go that way
	}
	if s.Up {
		delete(r.down, rank)
		delete(e.ways.cut, rank)
		if p := e.peers[rank]; p != nil {
			e.resend(p, nil)
		}
		return nil
	}
	if r.down == nil {
		r.down = map[int]string{}
	}
	r.down[rank] = s.Reason
	if p := e.peers[rank]; p != nil {
		e.purge(r, p)
		e.laneDown(r, p)
	}
	e.reviewRank(rank)
	return nil
}

// purge takes a peer's frames and turns from a rail that lives. A frame that is half written goes on as a copy.
func (e *Engine) purge(r *rail, p *peer) {
	old := r.queue
	r.queue, r.unsent = frameQueue{}, 0
	for f := old.head; f != nil; {
		next := f.nextOut
		f.queued = false
		switch {
		case f.peer != p:
			r.push(f)
		case f.off > 0:
			c := e.takeFrame(len(f.buf))
			c.buf, c.off, c.background = append(c.buf, f.buf...), f.off, true
			r.push(c)
			fallthrough
		default:
			if f.seq == 0 {
				e.freeFrame(f)
			}
		}
		f = next
	}
	bulk := r.bulk[:0]
	for _, b := range r.bulk {
		if b != p {
			bulk = append(bulk, b)
		}
	}
	r.bulk = bulk
}

// review notes since when there is no rail, or none to some rank.
func (e *Engine) review() {
	if e.upRails() == 0 {
		if e.ways.none == 0 {
			e.ways.none = e.now()
		}
		return
	}
	for rank := range e.size {
		e.reviewRank(rank)
	}
}

// reviewRank notes since when there is no rail to a rank.
func (e *Engine) reviewRank(rank int) {
	if rank == e.world.Rank {
		return
	}
	for _, r := range e.toward(rank) {
		if r.reaches(rank) {
			delete(e.ways.cut, rank)
			return
		}
	}
	if _, ok := e.ways.cut[rank]; !ok {
		e.ways.cut[rank] = e.now()
	}
}

func (e *Engine) upRails() (n int) {
	for _, r := range e.forwarders {
		if r.up {
			n++
		}
	}
	return n
}

// deadAfter is how long a rank may be without any link while no link that is lost can come back: it is dead, most likely.
const deadAfter = time.Second

// giveUp ends the job when there has been no way for too long.
func (e *Engine) giveUp(now time.Duration) {
	w := &e.ways
	if w.finishing {
		return
	}
	limit := min(e.limits.NoRail, deadAfter)
	for _, r := range e.forwarders {
		if !r.up && (e.paths == nil || r.redial != nil) {
			limit = e.limits.NoRail
		}
	}
	if w.none > 0 && now-w.none > limit {
		e.fatal(ErrLink, 1, fmt.Sprintf("no forwarder could be reached for %v; the last: %s", limit, w.lastErr))
		return
	}
	for rank, since := range w.cut {
		if now-since <= limit {
			continue
		}
		last := w.lastErr
		for _, r := range e.toward(rank) {
			if reason, ok := r.down[rank]; ok {
				last = reason
			}
		}
		e.condemn(rank, fmt.Sprintf("no forwarder could reach rank %d for %v; the last: %s", rank, limit, last))
		return
	}
}
