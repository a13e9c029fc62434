package link

import (
	"context"
	"fmt"
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
	"github.com/leidenzipper/zipper/mmpi/engine/link/demand"
	"github.com/leidenzipper/zipper/mmpi/engine/link/failover"
)

// A direct link leads to one process of another cluster without a forwarder. One of the two
// processes is on a zipper node, or a zipper node's kernel routes the link. A direct link is a rail
// that only frames of this pair take, and while it is up it carries all of them. When it is lost,
// the frames go through the forwarders, as frames of any lost rail take another rail, and the end
// that dialed reconnects. Both ends know from the start that they can have a direct link, so both
// are ready for frames that overtake each other. Direct links on demand differ in this.

// Direct links on demand are opened and closed while the job runs. A zipper node's kernel forwards
// them:
//
//  1. A forwarder offers them (Offer).
//  2. When this process has sent much to a peer over forwarders (package demand), it asks a forwarder
//     that offers (Ask).
//  3. The forwarder names an address to the rank of the pair that is to dial (Way). That rank makes
//     one attempt (connect). The other rank accepts it (DirectUp). If different forwarders let both
//     ranks dial, the attempt of the lower rank counts: that rank refuses the link of the other one.
//  4. The frames of the pair take the link from then on. When it is lost, they take the forwarders
//     again, as with every direct link, and the next demand leads to another request: the address is
//     valid for a short time only.
//  5. A process has demand.MaxLinks such links at most. Each Ask, and each attempt to open a link,
//     takes a place among them (claims). A new link is taken in place of the one that was unused for
//     longest, but of none in use. A link that is unused for minutes is closed.
//
// The rail of such a link is in core.rails while it has the link. Both ends become ready for frames
// that overtake each other when they take the first link into use, before they read from it.

// Opener opens the direct link (without a forwarder) to a process. A nil Opener means that the
// other process opens the link, and that the caller hands it to DirectUp.
type Opener func(ctx context.Context) (transport.Link, error)

// newDirect returns rails, without links, that lead directly to each rank in openers. An error
// means that one of the ranks is in this process's cluster.
func (s *Set) newDirect(openers map[int]Opener) (rails []*rail, err error) {
	first, end := s.world.Mine()
	for rank := range s.size {
		open, ok := openers[rank]
		if !ok {
			continue
		}
		if rank >= first && rank < end {
			return nil, fault.New(fault.Internal, "direct link to rank %d of the own cluster", rank)
		}
		p := s.Peer(rank)
		r := newRail(&s.core, len(s.forwarders), p,
			func(ctx context.Context, _ Attempt) (transport.Link, error) { return open(ctx) })
		s.tracker.Direct(&r.Rail, rank, open != nil)
		p.direct = r
		rails = append(rails, r)
	}
	return rails, nil
}

// DirectUp puts link l, which leads directly to a rank, into use, in place of the previous one. It
// returns false if the link is no longer wanted. The caller must not hold the lock.
func (s *Set) DirectUp(rank int, l transport.Link) bool {
	s.lock.Lock()
	p := s.Peer(rank)
	r := p.direct
	if (r == nil || r.wanted) && s.Demands.may(p) {
		r = s.Demands.rail(p)
	} else if r != nil && r.wanted {
		r = nil
	}
	s.lock.Unlock()
	return r != nil && s.accept(s.ctx, r, l)
}

// StopRedial stops this end from reconnecting the direct link to a rank after a loss.
func (s *Set) StopRedial(rank int) { s.Peer(rank).direct.StopRedial() }

// stepDirect reads and writes direct links once, and returns how many bytes it moved. If there are
// more than fewDirect, one system call finds those with something to read.
func (s *Set) stepDirect() (n int) {
	direct := s.rails[len(s.forwarders):]
	all := len(direct) <= fewDirect
	if !all {
		for _, r := range direct {
			if r.Linked() {
				s.ready.Add(&r.watched, r.link.FD())
			}
		}
		all = !s.ready.Look()
	}
	for _, r := range direct {
		if all || r.watched.MayRead() || r.pending() {
			n += r.step()
		}
	}
	return n
}

// AwaitDirect waits until this process has a direct link to each process with which it can have
// one, or until ctx ends. It does not wait for a link that this end opens once an attempt has
// failed. It returns an error that names the lowest rank without a direct link, or nil. Links that
// come up later are still put into use. The caller must not hold the lock.
func (s *Set) AwaitDirect(ctx context.Context) error {
	for {
		missing, pending := s.missingDirect()
		if !pending {
			return missing
		}
		select {
		case <-ctx.Done():
			return missing
		case <-s.changed:
		}
	}
}

// missingDirect returns an error that names the lowest rank without a direct link, or nil if each
// rank has one. pending reports whether AwaitDirect must go on waiting: the job has not ended, and
// there is at least one missing link that no attempt of this end has failed to open.
func (s *Set) missingDirect() (err error, pending bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	missing, first := 0, (*rail)(nil)
	for _, r := range s.rails[len(s.forwarders):] {
		if r.Linked() {
			continue
		}
		missing++
		if first == nil || r.peer.Rank < first.peer.Rank {
			first = r
		}
		pending = pending || r.DialError() == nil && !s.ended
	}
	if first == nil {
		return nil, false
	}
	why := "it has not connected"
	if err := first.DialError(); err != nil {
		why = err.Error()
	}
	more := ""
	if missing > 1 {
		more = fmt.Sprintf(" (and with %d more)", missing-1)
	}
	return fmt.Errorf("no direct link with rank %d%s: %s; messages go through the forwarder meanwhile",
		first.peer.Rank, more, why), pending
}

// pending reports whether the next tick has links to ask for or to open.
func (d *Demands) pending() bool { return len(d.due) > 0 || len(d.ways) > 0 }

// tick asks for the direct links that are due, opens those that forwarders have named, and records
// which links are in use.
func (d *Demands) tick(now time.Duration) {
	for _, r := range d.core.rails[len(d.core.forwarders):] {
		r.use.Look(now, r.in.frames)
		if r.wanted && r.State() == failover.Up && demand.Forgotten(r.use.Idle(now)) {
			d.core.down(r, "closed because it was not used")
		}
	}
	if now-d.reportedAt >= reportEvery {
		d.report()
	}
	due, ways := d.due, d.ways
	d.due, d.ways = nil, nil
	for _, p := range due {
		d.ask(now, p)
	}
	for _, w := range ways {
		if p := d.core.Peer(int(w.Rank)); d.may(p) && p.direct.unlinked() && d.room(now, p) {
			d.claims[p] = now + demand.ClaimTime
			d.connect(d.rail(p), w)
		}
	}
}

// ask asks a forwarder that opens ways for one to a peer, preferably the one over which the frames
// to the peer go, if the pair may have a link now. Otherwise the pair must first exchange as much
// again.
func (d *Demands) ask(now time.Duration, p *Peer) {
	r := d.forwarder(p)
	if r == nil || !d.may(p) || !p.direct.unlinked() || !d.room(now, p) {
		p.demand.Skip()
		return
	}
	if p.demand.Request(now, d.core.limit.DirectPause, d.core.world.Rank, p.Rank) {
		d.claims[p] = now + demand.ClaimTime
		r.queue.push(d.core.takeControl(wire.TypeAsk, &wire.Ask{Rank: uint32(p.Rank)}))
	}
}

// forwarder returns the rail to the forwarder that is asked for a way to a peer, or nil.
func (d *Demands) forwarder(p *Peer) *rail {
	for i := range p.rails {
		r := p.rails[(p.preferred+i)%len(p.rails)]
		if d.offers[r.index] && r.State() == failover.Up && r.Reaches(p.Rank) {
			return r
		}
	}
	return nil
}

// may reports whether the pair may have a direct link on demand, or another one in place of it. An
// attempt of this end gives way to the link of a lower rank.
func (d *Demands) may(p *Peer) bool {
	c := d.core
	mine, _ := c.world.Place(c.world.Rank)
	other, _ := c.world.Place(p.Rank)
	if d.open == nil || mine == other || p.lost || p.departed || c.ended || c.tracker.HasFinished() {
		return false
	}
	if p.direct == nil {
		return true
	}
	state := p.direct.State()
	return p.direct.wanted && (state == failover.Down || state == failover.Up ||
		state == failover.Dialing && p.Rank < c.world.Rank)
}

// unlinked reports whether rail r, nil if there is none, has no link and no attempt to open one is
// in progress.
func (r *rail) unlinked() bool { return r == nil || r.State() == failover.Down }

// rail returns the direct rail to a peer, which is made if there is none.
func (d *Demands) rail(p *Peer) *rail {
	if p.direct == nil {
		p.direct = newRail(d.core, len(d.core.forwarders), p, nil)
		p.direct.wanted = true
		d.core.tracker.Direct(&p.direct.Rail, p.Rank, false)
	}
	return p.direct
}

// connect makes one attempt to open the link of rail r at the address that a forwarder has named.
func (d *Demands) connect(r *rail, w wire.Way) {
	c := d.core
	r.StartRedial()
	pause, _ := r.Redial()
	ctx, cancel := context.WithCancel(c.ctx)
	r.attempts++
	number := r.attempts
	r.cancel = cancel
	r.Attempt(true)
	c.system.Go(func() {
		defer cancel()
		var l transport.Link
		err := context.Canceled
		if c.system.Pause(ctx, pause) {
			l, err = d.open(ctx, w)
		}
		if err == nil && !c.accept(ctx, r, l) {
			l.Close()
			err = errNotTaken
		}
		d.attempted(r, number, err)
	}, false)
}

// attempted ends the attempt to open the link of rail r that has this number. It does nothing if
// that attempt was cancelled, and another one has begun since.
func (d *Demands) attempted(r *rail, number int, err error) {
	d.core.lock.Lock()
	defer d.core.lock.Unlock()
	switch {
	case r.attempts != number:
	case err != nil:
		d.core.dialFailed(r, onlyAttempt{err})
	default:
		r.Attempt(false)
	}
}
