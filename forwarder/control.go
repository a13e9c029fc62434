package forwarder

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder/bridge"
	"github.com/leidenzipper/zipper/forwarder/job"
	"github.com/leidenzipper/zipper/forwarder/plane"
	"github.com/leidenzipper/zipper/forwarder/relay"
	"github.com/leidenzipper/zipper/internal/wire"
)

// This file has the functions of a peer that package relay calls (relay.Control). A frame for the
// forwarder itself goes to the join exchange (join.go) until the peer is a member of a running job,
// then to fromRank or fromForwarder.

// control is a peer that handles the events of its connection, as package relay requires
// (relay.Control).
type control struct{ *peer }

var _ relay.Control = control{}

// Frame handles a frame that the peer has sent to the forwarder itself, rather than to a rank.
func (p control) Frame(h wire.Header, body []byte) {
	if p.member.Load() == nil && p.beforeJob(h, body) {
		return
	}
	switch m := p.member.Load(); {
	case h.Type == wire.TypeLost:
		p.reportsLoss(m, body)
	case m.Zipper >= 0:
		p.fromForwarder(m, h, body)
	default:
		p.fromRank(h, body)
	}
}

// fromRank handles a frame that a rank of a running job has sent to the forwarder itself.
func (p control) fromRank(h wire.Header, body []byte) {
	switch h.Type {
	case wire.TypeBye: // the answer follows the frames that are queued for the rank
		p.conn.Part()
		p.run.take(job.Departed{Conn: p.id})
		p.conn.FinishWith(frame(wire.TypeByeAck, nil))
		p.conn.Linger()
	case wire.TypeAbort:
		p.aborts(body)
	case wire.TypeAsk:
		a, err := wire.ParseAsk(body)
		if err != nil {
			p.conn.Bad(err.Error())
			return
		}
		p.run.take(job.Asked{Conn: p.id, Rank: a.Rank})
	case wire.TypeMoved:
		x, err := wire.ParseMoved(body)
		if err != nil {
			p.conn.Bad(err.Error())
			return
		}
		p.run.take(job.Moved{Conn: p.id, Sent: x})
	}
}

// fromForwarder handles a frame that another forwarder has sent to this one over a connection in
// use.
func (p control) fromForwarder(m *plane.Member, h wire.Header, body []byte) {
	switch h.Type {
	case wire.TypeBye:
		p.conn.Part()
		p.run.take(job.Crossed{Zipper: m.Zipper, Event: bridge.Bye{Conn: p.id}})
	case wire.TypeAbort:
		p.aborts(body)
	case wire.TypeRailState:
		s, err := m.ParseState(body, &p.states)
		if err != nil {
			p.conn.Bad(err.Error())
			return
		}
		p.run.take(job.Reported{Zipper: m.Zipper, State: s})
	}
}

// reportsLoss handles a report that a cluster is lost.
func (p control) reportsLoss(m *plane.Member, body []byte) {
	l, err := m.ParseLoss(body, &p.states)
	if err != nil {
		p.conn.Bad(err.Error())
		return
	}
	p.run.take(job.ReportedLoss{Zipper: m.Zipper, Loss: l})
}

func (p control) aborts(body []byte) {
	a, err := wire.ParseAbort(body)
	if err != nil {
		p.conn.Bad(err.Error())
		return
	}
	p.run.take(job.Aborted{Conn: p.id, Frame: a})
}

// Bad handles a peer that broke the protocol. It tells a rank the reason in a last frame, after
// which the connection lingers. The job decides whether it goes on without the connection, and when
// it closes that of another forwarder.
func (p control) Bad(reason string) {
	p.f.log.Warn("link ended: bad frame", zap.String("reason", reason), zap.Object("peer", p.peer))
	m := p.malformed(reason)
	switch {
	case m == nil:
		return
	case m.Zipper >= 0: // the job decides
	case m.SurvivesLoss:
		p.conn.AbortWith(frame(wire.TypeNotice, &wire.Notice{Text: reason})) // it may come back
	default:
		p.conn.AbortWith(frame(wire.TypeAbort, &wire.Abort{Code: 1, Rank: m.Rank, Reason: reason, By: wire.Nobody}))
	}
	p.run.take(job.Damaged{Conn: p.id, Reason: reason})
}

// EndIfLate refuses a peer that has not joined within Config.JoinTimeout, and reports whether it
// did so.
func (p control) EndIfLate(now time.Time) bool {
	if p.deadline.IsZero() || !now.After(p.deadline) {
		return false
	}
	p.refuse(wire.RefuseTimeout, fmt.Sprintf("no Join within %v", p.f.cfg.JoinTimeout))
	return true
}

// Ended tells the job and the forwarder that the peer's connection has ended. cause is nil after a
// clean end.
func (p control) Ended(cause error) {
	f := p.f
	if p.member.Load() == nil {
		f.log.Debug("link closed before its job began", zap.Object("peer", p.peer), zap.Error(cause))
	}
	f.forget(p.peer) // first: a status after the end of the job has no connection of it
	if p.run != nil {
		p.run.forget(p.peer, cause)
	} else {
		p.endExchange()
	}
}

// Route returns where frames of the peer go: its route in its running job, or that of peers that
// have not joined. The first frames may arrive while another loop is still starting the job. The
// lock waits for that.
func (p control) Route() *relay.Route {
	defer p.lock()()
	if m := p.member.Load(); m != nil {
		return &m.Route
	}
	return &p.f.joining
}
