package link

import (
	"time"

	"github.com/leidenzipper/zipper/internal/list"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
	"github.com/leidenzipper/zipper/mmpi/engine/flow"
	"github.com/leidenzipper/zipper/mmpi/engine/sealing"
)

// Peer is another process: the flow to it and the flow from it.
type Peer struct {
	Rank  int // virtual
	Ahead int // bytes of payload that its frames may have ahead of their turn, for each rail

	set *Set

	// Frames.
	numbers       flow.Numbers
	retained      list.List[*Frame]  // sequenced ones sent and not acknowledged, in order; for replay
	kept          int                // bytes of these
	order         flow.Order[[]byte] // whole ones ahead of their turn
	aheadBytes    int                // payload of these
	ackDue        bool               // in Set.acks
	delivering    rxOp               // the sequenced one whose payload is coming
	deliveringDst []byte             // where to

	// Bytes of large messages.
	dataOut flow.Budget        // what we may send
	dataIn  flow.Grant         // what it may send
	bulk    list.List[*Source] // that have bytes left, in order of their CTS
	backlog int64              // bytes that these have left
	pace    flow.Pace          // of what they send
	replay  []flow.Segment     // sent over a rail that is lost, perhaps not landed
	lanes   []lane             // by rail

	path *flow.Path
	pair *sealing.Pair // at level sealed, from the first frame on

	left      bool  // it has taken its leave
	direct    *rail // that leads to it alone; nil: there can be none
	preferred int   // the rail for everything but segments, if it reaches the peer: a place in Set.railsTo
}

// lane is a flow's share of a rail, in both directions.
type lane struct {
	out      flow.Lane
	in       flow.Arrivals
	enrolled bool // the peer is in the rail's bulk ring
}

// Peer gives the peer of a virtual rank, which must be in range.
func (s *Set) Peer(rank int) *Peer {
	p := s.peers.Get(rank)
	if p == nil {
		window := uint64(s.limit.DataWindow)
		cluster, _ := s.world.Place(rank)
		p = &Peer{Rank: rank, Ahead: s.limit.EarlyWindow, set: s, preferred: s.preferredRail(rank),
			path: &s.pathTo[cluster], lanes: make([]lane, s.slots), dataOut: flow.NewBudget(window),
			dataIn: flow.NewGrant(window)}
		for i := range p.lanes {
			p.lanes[i].out = flow.NewLane()
		}
		s.peers.Set(rank, p)
	}
	return p
}

// several reports whether more than one rail may lead to the peer: then frames may overtake each
// other, and come twice.
func (p *Peer) several() bool { return p.set.multi || p.direct != nil }

// scattered reports whether what comes from the peer may have been overtaken: as in several, or
// because forwarders on its way have several connections between them (a trunk).
func (p *Peer) scattered() bool { return p.several() || p.set.paths != nil }

// repeats reports whether something may be said to the peer again over a rail: after the loss of a
// link on the way.
func (p *Peer) repeats(r *rail) bool {
	return p.several() || r.reborn || p.set.paths != nil && p.set.replays
}

// sendAck tells the peer what we have taken.
func (p *Peer) sendAck() { p.Send(p.NewFrame(wire.TypeAck, 0, 0, 0)) }

// delivered counts a sequenced frame as handled, and sees that it is acknowledged in time: by the
// next frame to that peer, after ackEvery frames, or by the next tick.
func (p *Peer) delivered() {
	p.set.progress++
	p.order.Take()
	if p.order.Untold() >= ackEvery {
		p.sendAck()
		return
	}
	if !p.ackDue {
		p.ackDue = true
		p.set.acks = append(p.set.acks, p)
	}
}

// FlushAcks acknowledges whatever is not yet.
func (s *Set) FlushAcks() {
	for _, p := range s.acks {
		p.ackDue = false
		if p.order.Untold() > 0 {
			p.sendAck()
		}
	}
	s.acks = s.acks[:0]
}

// acked takes the acknowledgement in a frame from the peer.
func (p *Peer) acked(ack uint64) error {
	news, err := p.numbers.Ack(ack)
	if err != nil || !news {
		return err
	}
	p.set.progress++
	for n := p.retained.First(); n != nil && n.Of.seq <= ack; n = p.retained.First() {
		f := n.Of
		p.retained.Remove(n)
		p.set.unacked--
		p.kept -= len(f.Buf)
		switch {
		case !f.queued:
			p.set.freeFrame(f)
		case f.replayed: // the first copy has come after all
			f.seq = 0 // freed when it is written
		default:
			return fault.New(fault.Link, "acknowledged frame %d before it was sent", f.seq)
		}
	}
	return nil
}

// gone notes that a peer has taken its leave: it has all that it waited for, and says no more.
func (p *Peer) gone() {
	p.left = true
	for n := p.retained.First(); n != nil; n = p.retained.First() {
		f := n.Of
		p.retained.Remove(n)
		p.set.unacked--
		if f.seq = 0; !f.queued { // else it is freed when it is written
			p.set.freeFrame(f)
		}
	}
	p.kept = 0
}

// measure sends an echo to a peer if the path there should be measured.
func (p *Peer) measure() {
	s := p.set
	if s.limit.LongPath < 0 {
		return
	}
	if now := s.Now(); p.path.Ask(now, s.limit.LongPath) {
		p.echo(0, wire.Echo{Sent: uint64(now)})
	}
}

func (p *Peer) echo(flags uint8, e wire.Echo) {
	f := p.NewFrame(wire.TypeEcho, flags, wire.EchoLen, 0)
	f.Buf = e.Append(f.Buf)
	p.Send(f)
}

// echoed handles an Echo frame.
func (p *Peer) echoed(flags uint8, body []byte) error {
	e, err := wire.ParseEcho(body)
	if err != nil {
		return err
	}
	if flags&wire.FlagReply == 0 {
		p.echo(wire.FlagReply, e)
		return nil
	}
	p.path.Back(time.Duration(e.Sent), p.set.Now())
	p.measure()
	return nil
}

// Long reports whether the path to a process is known to be long; then it is measured again now and
// then, since a process that is slow to answer makes it look so.
func (p *Peer) Long() bool {
	if !p.Far() {
		return false
	}
	p.measure()
	return true
}

// Far is Long without measuring.
func (p *Peer) Far() bool {
	trip := p.path.RoundTrip()
	return trip > 0 && trip >= p.set.limit.LongPath
}

// Kept is how many bytes of frames it has not acknowledged: copies that are kept for replay.
func (p *Peer) Kept() int { return p.kept }

// Arriving is how many bytes of payload the frame has that is next in order and has come in part.
func (p *Peer) Arriving() int { return p.delivering.n }

// RoundTrip is how long it takes to a process and back at least; 0: not known yet.
func (p *Peer) RoundTrip() time.Duration { return p.path.RoundTrip() }

// enroll gives a peer a place in the bulk ring if it has something to send; credit is seen to at
// its turn.
func (r *rail) enroll(p *Peer) {
	l := &p.lanes[r.index]
	if (!p.bulk.Empty() || len(p.replay) > 0) && !l.enrolled && r.carries(p) && !(r.seg.active && r.seg.peer == p) {
		l.enrolled = true
		r.bulk = append(r.bulk, p)
	}
}
