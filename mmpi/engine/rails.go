package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/leidenzipper/zipper/mmpi/engine/flow"
	"github.com/leidenzipper/zipper/wire"
)

// MaxRails bounds the forwarders of a job.
const MaxRails = 16

// waysState is what the rails of a job of several have in common.
type waysState struct {
	ctx    context.Context
	cancel context.CancelFunc
	lanes  []*flow.Lane // scratch

	lastErr   string                // why the last rail was lost
	none      time.Duration         // tick since which there is no rail; 0: there is one
	cut       map[int]time.Duration // ranks that no rail reaches: since when
	finishing bool
}

func (e *Engine) addRails(cfg Config) {
	n := len(cfg.Links)
	e.slots = n
	e.multi, e.turn = n > 1 && (cfg.Ways == nil || len(cfg.Ways[0]) > 1), turnSize
	e.ways.ctx, e.ways.cancel = context.WithCancel(context.Background())
	if e.multi {
		e.turn = 2 * e.limits.Segment
		e.ways.lanes = make([]*flow.Lane, 0, n)
		e.ways.cut = map[int]time.Duration{}
	}
	for i, l := range cfg.Links {
		r := &rail{e: e, index: i, up: l != nil, in: input{buf: make([]byte, inputSize)}}
		r.attach(l)
		if e.multi && cfg.Redial != nil {
			r.redial = func(ctx context.Context) error {
				l, err := cfg.Redial(ctx, r.index)
				if err == nil && !e.railUp(r, l) {
					l.Close()
				}
				return err
			}
		}
		e.rails = append(e.rails, r)
	}
	e.forwarders = e.rails[:n:n]
	if cfg.Ways == nil {
		return
	}
	for i, c := range cfg.World.Clusters {
		var there []*rail
		for _, k := range cfg.Ways[i] {
			there = append(there, e.rails[k])
		}
		for range c.Size {
			e.paths = append(e.paths, there)
		}
	}
}

// toward gives the rails that lead to a rank, up or not; both ends count them alike.
func (e *Engine) toward(rank int) []*rail {
	if e.paths == nil {
		return e.forwarders
	}
	return e.paths[rank]
}

// home gives the place in toward of the rail that a peer's small messages take: pairs are spread evenly, whether processes talk to all of another
// cluster or each to its like, and both directions of a pair take the same rail.
func (e *Engine) home(rank int) int {
	lo, hi := min(rank, e.world.Rank), max(rank, e.world.Rank)
	_, first := e.world.Place(lo)
	_, second := e.world.Place(hi)
	n := len(e.toward(rank))
	return (lo - first + (hi-second)/n) % n
}

// reaches reports whether both sides of the rail are there for a rank.
func (r *rail) reaches(rank int) bool {
	if r.peer != nil {
		return r.up && !r.leaving && r.peer.rank == rank
	}
	if !r.up || r.e.paths != nil && !slices.Contains(r.e.paths[rank], r) {
		return false
	}
	if len(r.down) == 0 {
		return true
	}
	_, down := r.down[rank]
	return !down
}

// way gives the rail for everything but segments; nil: none reaches the peer.
func (e *Engine) way(p *peer) *rail {
	if d := p.direct; d != nil && d.reaches(p.rank) {
		return d
	}
	rails := e.toward(p.rank)
	if !e.multi {
		return rails[p.home]
	}
	for i := range rails {
		if r := rails[(p.home+i)%len(rails)]; r.reaches(p.rank) {
			return r
		}
	}
	return nil
}

func (e *Engine) unsent() (n int) {
	for _, r := range e.rails {
		n += r.unsent
	}
	return n
}

func (e *Engine) pending() bool {
	for _, r := range e.rails {
		if r.pending() {
			return true
		}
	}
	return false
}

func (e *Engine) stepRails() (n int) {
	for _, r := range e.forwarders {
		n += r.step()
	}
	return n + e.stepDirect()
}

// arm prepares the links for sleeping on them; true: there is something to read.
func (e *Engine) arm() (ready bool) {
	for _, r := range e.rails {
		if r.up && r.link.Arm() {
			ready = true
		}
	}
	return ready
}

// sayBye ends the links cleanly. An acknowledgement that may go down with a rail is repeated on the others: nobody is here to do it later.
func (e *Engine) sayBye() {
	e.ways.finishing = true
	for _, r := range e.rails {
		if !r.up || r.leaving {
			continue
		}
		for _, p := range e.peers {
			if p != nil && e.several(p) && r.reaches(p.rank) {
				f := e.newFrame(p, wire.TypeAck, 0, 0, 0)
				f.rail = r
				r.push(f)
			}
		}
		r.push(e.newControl(wire.TypeBye, nil))
		r.bye = byeSent
	}
}

func (e *Engine) byeAcked() bool {
	for _, r := range e.rails {
		if r.up && r.bye != byeAcked && !(r.leaving && r.bye == running) {
			return false
		}
	}
	return true
}

// sendAbort puts an Abort on all rails.
func (e *Engine) sendAbort(status, rank int, reason string) {
	for _, r := range e.rails {
		if r.up {
			r.push(e.newControl(wire.TypeAbort, &wire.Abort{Code: int32(status), Rank: uint32(rank), Reason: reason}))
		}
	}
}

// closeRails ends all links.
func (e *Engine) closeRails() {
	e.ways.cancel()
	for _, r := range e.rails {
		r.up = false
		if r.link != nil {
			r.link.Close()
		}
		r.queue, r.unsent, r.bulk, r.seg = frameQueue{}, 0, nil, segment{}
		r.in.busy, r.in.dst, r.in.land = false, nil, landing{}
	}
}

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
