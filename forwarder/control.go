package forwarder

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder/relay"
	"github.com/leidenzipper/zipper/wire"
)

// What package relay asks a peer (relay.Control). A frame for the forwarder itself goes
//
//  1. to the join exchange, while the peer has no place in a running job (join.go, hops.go);
//  2. else to fromRank or, over a bridge, to fromForwarder;
//
// and what it says is done by join.go, end.go, rails.go or bridge.go.

var _ relay.Control = (*peer)(nil)

// Frame handles a frame for the forwarder itself.
func (p *peer) Frame(h wire.Header, body []byte) {
	switch m := p.member.Load(); {
	case m == nil:
		p.f.join(p, h, body)
	case m.bridge != nil:
		p.fromForwarder(m.bridge, h, body)
	default:
		p.fromRank(m, h, body)
	}
}

// fromRank handles what a rank of a running job says.
func (p *peer) fromRank(m *member, h wire.Header, body []byte) {
	switch h.Type {
	case wire.TypeBye: // what is queued for the rank goes out first, then the answer
		p.conn.Part()
		p.departs(m)
		p.conn.FinishWith(frame(wire.TypeByeAck, nil))
		p.conn.Linger()
	case wire.TypeAbort:
		a, err := wire.ParseAbort(body)
		if err != nil {
			p.conn.Bad(err.Error())
			return
		}
		said := a // as it is: a word is for that
		a.Reason = wire.Printable(a.Reason)
		p.f.log.Warn("rank aborts the job", zap.Object("peer", p), zap.Int32("code", a.Code),
			zap.String("reason", a.Reason))
		p.f.abort(m.job, a.Code, m.rank, m.abortedBy(&a), &said, nil) // the rank hears it too, as an answer
	}
}

// fromForwarder handles what another forwarder says over the bridge of a running job.
func (p *peer) fromForwarder(br *bridge, h wire.Header, body []byte) {
	switch h.Type {
	case wire.TypeBye:
		p.conn.Part()
		if br.byeHeard(p) {
			p.conn.FinishNow()
		}
	case wire.TypeAbort:
		a, err := wire.ParseAbort(body)
		if err != nil {
			p.conn.Bad(err.Error())
			return
		}
		said := a
		a.Reason = wire.Printable(a.Reason)
		p.f.abort(br.job, a.Code, a.Rank, a.Reason, &said, p)
		p.f.mu.Lock()
		br.end(fmt.Errorf("the job was aborted: %s", a.Reason)) // the other end has said so on all
		p.f.mu.Unlock()
	case wire.TypeRailState:
		s, err := wire.ParseRailState(body)
		if err == nil {
			err = p.came.Take(s.Number)
		}
		if err == nil {
			err = br.mayTell(&s)
		}
		if err != nil {
			p.conn.Bad(err.Error())
			return
		}
		s.Reason = wire.Printable(s.Reason)
		br.unreachable(&s)
	}
}

// Bad ends the connection of a peer that broke the protocol, and what it belongs to. The peer is
// told why.
func (p *peer) Bad(reason string) {
	p.f.log.Warn("link ended: bad frame", zap.String("reason", reason), zap.Object("peer", p))
	if m := p.malformed(reason); m != nil {
		if m.bridge != nil && m.bridge.mayBeBad() {
			p.conn.End(fmt.Errorf("what came over it was damaged: %s", reason)) // it is opened again
			return
		}
		if m.bridge == nil && m.job.goesOn() {
			p.conn.AbortWith(frame(wire.TypeNotice, &wire.Notice{Text: reason})) // it may come back
		} else {
			p.conn.AbortWith(abortFrame(1, m.rank, reason))
		}
		p.breach(m, reason)
	}
}

// Late refuses a peer that has not joined in time.
func (p *peer) Late(now time.Time) bool {
	if p.deadline.IsZero() || !now.After(p.deadline) {
		return false
	}
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	p.refuse(wire.RefuseTimeout, fmt.Sprintf("no Join within %v", p.f.cfg.JoinTimeout))
	return true
}

// Ended does for the job what the end of a connection means.
func (p *peer) Ended(cause error) { p.f.forget(p, cause) }

// Route is the peer's in its job, or that of those who join. The first frames may come while
// another loop is still busy with starting the job: the lock waits for that.
func (p *peer) Route() *relay.Route {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	if m := p.member.Load(); m != nil {
		return &m.route
	}
	return &p.f.joining
}

// mayJoin lets frames through that belong to some join exchange; the exchange knows which of them
// may come.
func mayJoin(h wire.Header) error {
	switch h.Type {
	case wire.TypeJoin, wire.TypeRefuse, wire.TypePong, wire.TypePing, wire.TypeChallenge, wire.TypeBridge,
		wire.TypeReady, wire.TypeProof, wire.TypeHalf, wire.TypeRailState, wire.TypeNotice:
		return nil
	}
	return fmt.Errorf("%v frame before the job is complete", h.Type)
}
