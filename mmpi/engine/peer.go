package engine

import (
	"github.com/leidenzipper/zipper/mmpi/engine/flow"
	"github.com/leidenzipper/zipper/wire"
)

// peer is a process in another cluster: the flow to it and the flow from it.
type peer struct {
	rank int // virtual

	numbers  flow.Numbers
	retained frameQueue  // sequenced frames sent and not acknowledged, in order; for replay
	eagerOut flow.Budget // what we may send
	dataOut  flow.Budget

	order   flow.Order[[]byte] // whole early frames
	eagerIn flow.Grant         // what it may send
	dataIn  flow.Grant
	ackDue  bool // in Engine.acks

	bulkHead, bulkTail *Request       // sends that are clear and have bytes left, in order of their CTS
	backlog            int64          // bytes that these have left
	pace               flow.Pace      // of what they send
	replay             []flow.Segment // sent over a rail that is lost, perhaps not landed
	lanes              []lane         // by rail
	direct             *rail          // that leads to it alone; nil: there can be none
	home               int            // the rail for everything but segments, if it reaches the peer
	open               landing        // sequenced frame whose payload is coming
	openDst            []byte         // where to
	earlyBytes         int            // payload of early frames

	orphans int // envelopes kept for unknown communicators
}

// several reports whether more than one rail may lead to the peer: then frames may overtake each other, and come twice.
func (e *Engine) several(p *peer) bool { return e.multi || p.direct != nil }

// maxEagerWindow bounds how far demand widens one peer's eager window.
const maxEagerWindow = 8 << 20

// peer gives the peer of a virtual rank, which must be in range.
func (e *Engine) peer(rank int) *peer {
	p := e.peers[rank]
	if p == nil {
		l := e.limits
		p = &peer{rank: rank, home: e.home(rank), lanes: newLanes(e.slots),
			eagerOut: flow.NewBudget(uint64(l.EagerWindow)), dataOut: flow.NewBudget(uint64(l.DataWindow)),
			eagerIn: flow.NewGrant(uint64(l.EagerWindow)), dataIn: flow.NewGrant(uint64(l.DataWindow))}
		e.peers[rank] = p
	}
	return p
}

// consumed counts eager payload whose memory is free again.
func (e *Engine) consumed(p *peer, n int) {
	p.eagerIn.Consume(uint64(n))
	if p.eagerIn.Due() {
		e.sendCredit(p)
	}
}

// widen answers a sender that ran out of eager credit, as long as the pool lasts.
func (e *Engine) widen(p *peer) {
	w := int(p.eagerIn.Window())
	if w*2 > maxEagerWindow || w > e.poolLeft {
		return
	}
	e.poolLeft -= w
	p.eagerIn.Grow(uint64(w))
	e.sendCredit(p)
}

func (e *Engine) sendCredit(p *peer) {
	f := e.newFrame(p, wire.TypeCredit, 0, wire.CreditLen, 0)
	c := wire.Credit{Eager: p.eagerIn.Limit(), Data: p.dataIn.Limit()}
	f.buf = c.Append(f.buf)
	e.enqueue(p, f)
}

// sendAck tells the peer what we have taken.
func (e *Engine) sendAck(p *peer) {
	e.enqueue(p, e.newFrame(p, wire.TypeAck, 0, 0, 0))
}

// ackEvery is how many sequenced frames may stay unacknowledged without waiting for something to carry the acknowledgement.
const ackEvery = 64

// taken counts a sequenced frame as handled, and sees that it is acknowledged in time: by the next frame to that peer,
// after ackEvery frames, or by the next tick.
func (e *Engine) taken(p *peer) {
	p.order.Take()
	if p.order.Untold() >= ackEvery {
		e.sendAck(p)
		return
	}
	if !p.ackDue {
		p.ackDue = true
		e.acks = append(e.acks, p)
	}
}

// flushAcks acknowledges whatever is not yet.
func (e *Engine) flushAcks() {
	for _, p := range e.acks {
		p.ackDue = false
		if p.order.Untold() > 0 {
			e.sendAck(p)
		}
	}
	e.acks = e.acks[:0]
}

// acked takes the acknowledgement in a frame from the peer.
func (e *Engine) acked(p *peer, ack uint64) error {
	news, err := p.numbers.Ack(ack)
	if err != nil || !news {
		return err
	}
	for f := p.retained.head; f != nil && f.seq <= ack; f = p.retained.head {
		p.retained.popRetained()
		e.unacked--
		switch {
		case !f.queued:
			e.freeFrame(f)
		case f.replayed: // the first copy has come after all
			f.seq = 0 // freed when it is written
		default:
			return failure(ErrLink, "acknowledged frame %d before it was sent", f.seq)
		}
	}
	return nil
}
