package forwarder

import (
	"errors"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder/bridge"
	"github.com/leidenzipper/zipper/forwarder/job"
	"github.com/leidenzipper/zipper/forwarder/plane"
	"github.com/leidenzipper/zipper/forwarder/role"
	"github.com/leidenzipper/zipper/forwarder/trunk"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/seal"
	"github.com/leidenzipper/zipper/internal/wire"
)

// How a rank joins:
//
//  1. It gets a Challenge when its connection is open (challenge).
//  2. Package relay gives its answer to its peer (control.go, Frame), as every frame of a connection
//     without a route. The peer gives it to beforeJob.
//  3. The exchange (package handshake) checks the answer (exchanged).
//  4. A verified Join goes to its job (enter.go), whose state machine (package job) places it. In a
//     job of several hops other forwarders are told of it.
//  5. The last Join starts the job. Its actions (actions.go) send every rank its Layout and give
//     every connection its route.
//
// A peer that cannot join is refused with the reason, and its connection lingers. Package strangers
// limits what strangers may have. Steps 1 to 4 run on the loop of the peer's connection. The start
// runs on the loop of the event that completes the job.

// lock locks the peer's job, if it has one, and returns the function that unlocks it again. On the
// peer's own loop.
func (p *peer) lock() (unlock func()) {
	if p.run == nil {
		return func() {}
	}
	p.run.mu.Lock()
	return p.run.unlock
}

// challenge begins the join exchange with a peer that has opened a link: it sends the nonce that
// the peer's Join must sign.
func (p *peer) challenge() {
	f := p.f
	if p.role != role.Fresh { // another link has crowded it out
		return
	}
	p.deadline = p.conn.Now().Add(f.cfg.JoinTimeout)
	p.exchange = handshake.NewAcceptor(handshake.Nonce(), f.policy.Load().terms)
	p.to(role.Stranger)
	p.say()
	if f.isStopping() {
		p.refuse(wire.RefuseShutdown, stopReason)
	}
}

// beforeJob handles a frame of a peer that is not a member of a running job. It returns false if
// the peer has become one meanwhile.
func (p *peer) beforeJob(h wire.Header, body []byte) (handled bool) {
	var seen handshake.Examined
	if a := p.examining(); a != nil {
		seen = a.Examine(h, body, passesOf(p.f)) // arithmetic, done without the job's lock
	}
	defer p.lock()()
	switch p.role {
	case role.Stranger, role.Waiting:
		p.exchange.HandleExamined(h, body, &seen)
		p.exchanged()
	case role.Introducing:
		p.introduced(h, body)
	case role.Bridging:
		p.handleFrame(h, body)
	case role.Running:
		return false
	}
	return true
}

// handleFrame gives the job a frame of another forwarder, over a connection that is not in use yet.
// It checks the order of RailStates and Losts, because they are numbered from before the job runs
// until the connection ends.
func (p *peer) handleFrame(h wire.Header, body []byte) {
	room := h.Type == wire.TypeJoin && p.f.memory.Keep(int64(len(body)))
	if h.Type == wire.TypeRailState || h.Type == wire.TypeLost {
		if err := p.states.TakeFrame(h.Type, body); err != nil {
			p.run.handle(job.Spoiled{Conn: p.id, Zipper: p.zipper, Reason: err.Error()})
			return
		}
	}
	p.run.handle(job.ForwarderFrame{Conn: p.id, Zipper: p.zipper, Type: h.Type, Body: body, Room: room,
		Link: trunk.LinkOf(p.conn.Link())})
}

// examining returns the join exchange with the peer that is in progress, or nil if there is none.
func (p *peer) examining() *handshake.Acceptor {
	defer p.lock()()
	return p.exchange
}

// exchanged carries out the events that the join exchange with the peer has returned. If the peer
// joins a job meanwhile, the job sends the rest under its lock, and exchanged returns. The effects
// of a refusal precede its frame.
func (p *peer) exchanged() {
	var frames []byte
	for had := p.run; p.run == had && p.exchange != nil; {
		e, more := p.exchange.NextEvent()
		if !more {
			break
		}
		switch e.Kind {
		case handshake.Send:
			frames = append(frames, e.Frame...)
		case handshake.Ended:
			p.joinFailed(&e)
		default:
			p.sendFrames(&frames)
			p.asked(&e)
		}
	}
	p.sendFrames(&frames)
}

// asked carries out an event of the join exchange that is neither a frame to send nor the end of
// the exchange.
func (p *peer) asked(e *handshake.Event) {
	switch p.seal = e.Seal; e.Kind {
	case handshake.Verified:
		p.decided(p.f.joins(p, e))
	case handshake.Bridged:
		p.decided(p.f.bridges(p, e))
	case handshake.HalfReported:
		p.decided(p.report(e.Half))
	}
}

// sendFrames sends the peer the frames of the join exchange, if there are any, and empties frames.
func (p *peer) sendFrames(frames *[]byte) {
	if len(*frames) > 0 {
		_ = p.sendFrame(*frames)
		*frames = nil
	}
}

// decided makes the join exchange refuse the peer for the reason refused. It does nothing if that
// is nil.
func (p *peer) decided(refused *handshake.Refused) {
	if refused != nil {
		p.exchange.Refuse(refused.Code, refused.Reason)
	}
}

// passesOf returns a function that looks up the pass (proof of membership) which the ranks of a
// Join's job have shown here before.
func passesOf(f *Forwarder) handshake.Passes {
	return func(j *wire.Join) *seal.Pass {
		if r := f.find(j); r != nil {
			if s := r.shown.Load(); s != nil && s.guest == j.Guest {
				return s.pass
			}
		}
		return nil
	}
}

// joinFailed handles the failure of a peer's join exchange: its link ends, and it leaves its job if
// it waits in one. If it does not, and this forwarder has refused its Join, the job of the Join is
// told.
func (p *peer) joinFailed(e *handshake.Event) {
	p.refused(e.Err)
	if p.run != nil {
		p.run.handle(job.Withdrawn{Conn: p.id})
	} else if e.Join != nil && !e.Err.Remote {
		p.f.noteRefusal(e.Join, p.conn.Link().Remote(), e.Err)
	}
}

// malformed handles malformed bytes from a peer that is in no running job: it refuses a joining
// rank, and reports another forwarder to the job. If the peer's job runs, which another loop may
// just have started, malformed only returns the peer's place there.
func (p *peer) malformed(reason string) *plane.Member {
	defer p.lock()()
	switch p.role {
	case role.Running:
		return p.member.Load()
	case role.Stranger:
		p.refuse(wire.RefuseMalformed, reason)
	case role.Waiting:
		p.refuse(wire.RefuseMalformed, reason)
		p.run.handle(job.Withdrawn{Conn: p.id})
	case role.Introducing:
		p.introductionRefused(&handshake.Refused{Code: wire.RefuseMalformed, Reason: "bad frame: " + reason})
	case role.Bridging:
		p.run.handle(job.Spoiled{Conn: p.id, Zipper: p.zipper, Reason: reason})
	}
	return nil
}

// introduced handles a frame from another forwarder over a connection that this one has dialled,
// until the other one accepts or refuses the connection.
func (p *peer) introduced(h wire.Header, body []byte) {
	p.bridger.HandleMessage(h, body)
	_ = handshake.Drive(p.bridger, p.sendFrame, func(e handshake.Event) error {
		switch e.Kind {
		case handshake.Bridged:
			p.conn.Seal(e.Seal)
			p.to(role.Bridging)
			p.run.handle(job.Crossed{Zipper: p.zipper, Event: bridge.Introduced{Conn: p.id, Link: trunk.LinkOf(p.conn.Link())}})
		case handshake.Ended:
			p.introductionRefused(e.Err)
		}
		return nil
	})
}

var errNoForwarder = errors.New("the program that answers there is not a forwarder (its log has details)")

// introductionRefused tells the job that another forwarder has refused the connection, or is not
// the one that the job wants. If the other end is not a forwarder, a stranger's job learns only
// that.
func (p *peer) introductionRefused(why *handshake.Refused) {
	p.to(role.Leaving)
	p.f.log.Warn("another forwarder does not agree", zap.String("job", p.run.id),
		zap.String("forwarder", p.run.job.Address(p.zipper)), zap.Error(why))
	code, reason := why.Code, why.Reason
	if p.f.policy.Load().servesStrangers() && !why.Remote && why.Code == wire.RefuseMalformed {
		code, reason = wire.RefuseTimeout, errNoForwarder.Error()
	}
	p.run.handle(job.Crossed{Zipper: p.zipper, Event: bridge.Refused{Conn: p.id, Code: code, Reason: reason}})
}

// report handles a launcher's report about its half of a job, and ends the launcher's link. It
// returns why the report is refused, or nil.
func (p *peer) report(h *wire.Half) *handshake.Refused {
	text, refused := p.f.handleReport(h)
	if refused != nil {
		return refused
	}
	p.exchange.Acknowledge(text)
	p.say()
	p.leave()
	return nil
}
