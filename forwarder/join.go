package forwarder

import (
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/seal"
	"github.com/leidenzipper/zipper/wire"
)

// How a rank joins:
//
//  1. it gets a Challenge when its connection is there (challenge);
//  2. package relay gives what it answers to its peer (control.go, Frame), as every frame of a
//     connection without a route, and that to join;
//  3. join has the exchange (package handshake) look at it, and does what that asks for;
//  4. a Join that is verified goes to its job (gather.go); in a job of several hops other
//     forwarders hear of it (hops.go);
//  5. with the last one the job is complete: layout.go has the kernel open ways between ranks, if
//     it may, then sends every rank its Layout and gives every connection its route.
//
// Whoever cannot be in is refused, with the reason, and its connection lingers. How much strangers
// may have is in package strangers. All with Forwarder.mu, but for signatures, on the loop of the
// connection that the frame came over.

var errCrowded = errors.New("too many links that have not joined")

// mayConnect reports whether a link that has come in is taken; another one may have to go for it.
// With f.mu.
func (f *Forwarder) mayConnect(p *peer) bool {
	link := p.conn.Link()
	g, oldest, err := f.strangers.Connect(link.Remote(), p)
	if err != nil {
		_, _ = link.TryWrite(frame(wire.TypeRefuse, &wire.Refuse{Code: wire.RefuseFull,
			Reason: err.Error()})) // if it takes it
		f.log.Warn("link refused", zap.String("link", link.Remote()), zap.Error(err))
		return false
	}
	p.guest = g
	if oldest != nil {
		oldest.Who.(*peer).crowdOut()
	}
	return true
}

// crowdOut closes a link that has not joined. With f.mu.
func (p *peer) crowdOut() {
	reason := fmt.Sprintf("too many links that have not joined; the oldest from %s is closed", p.guest.Address())
	p.f.log.Warn("link closed", zap.Object("peer", p), zap.String("reason", reason))
	p.joining = nil
	p.conn.Post(func() {
		_ = p.conn.Send(frame(wire.TypeRefuse, &wire.Refuse{Code: wire.RefuseFull, Reason: reason}))
		p.conn.End(errCrowded)
	})
}

// challenge begins the exchange with a new peer. On its loop.
func (p *peer) challenge() {
	f := p.f
	p.deadline = p.conn.Now().Add(f.cfg.JoinTimeout)
	joining := handshake.NewAcceptor(freshBytes(), f.policy.Load().terms)
	f.mu.Lock()
	defer f.mu.Unlock()
	p.joining = joining
	p.say()
	if f.stopping {
		p.refuse(wire.RefuseShutdown, stopReason)
	}
}

// join handles a frame of a peer that has no place in a running job.
func (f *Forwarder) join(p *peer, h wire.Header, body []byte) {
	f.mu.Lock()
	a := p.joining
	f.mu.Unlock()
	var seen handshake.Examined
	if a != nil {
		seen = a.Examine(h, body, passesOf(f)) // arithmetic that others need not wait for
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	a = p.joining
	switch {
	case p.bridger != nil:
		f.introduce(p, h, body)
		return
	case p.bridge != nil:
		f.gatherOver(p, h, body)
		return
	case a == nil:
		return // decided already; the link is about to close
	}
	a.HandleExamined(h, body, &seen)
	_ = handshake.Drive(a, p.sendFrame, func(e handshake.Event) error {
		var refused *handshake.Refused
		switch e.Kind {
		case handshake.Verified:
			p.seal = e.Seal
			refused = f.gather(p, &e)
		case handshake.Bridged:
			p.seal = e.Seal
			refused = f.bridgeIn(p, &e)
		case handshake.Said:
			refused = p.said(e.Half)
		case handshake.Ended:
			p.notIn(&e)
		}
		if refused != nil {
			a.Refuse(refused.Code, refused.Reason)
		}
		return nil
	})
}

// passesOf are the passes that ranks of the jobs here have shown.
func passesOf(f *Forwarder) handshake.Passes {
	return func(j *wire.Join) *seal.Pass {
		f.mu.Lock()
		defer f.mu.Unlock()
		if b := f.jobs.find(j); b != nil && b.guest == j.Guest {
			return b.pass
		}
		return nil
	}
}

// notIn ends the joining of a peer whose exchange has failed. With f.mu.
func (p *peer) notIn(e *handshake.Event) {
	p.refused(e.Err)
	if p.waiting == nil && !e.Err.Remote {
		p.f.noteRefusal(p, e)
	}
	p.f.leave(p)
}

// malformed ends the joining of a peer from which nonsense came. It returns the peer's place if its
// job runs: another loop may just have started it.
func (p *peer) malformed(reason string) *member {
	f := p.f
	f.mu.Lock()
	defer f.mu.Unlock()
	switch br := p.bridge; {
	case p.member.Load() != nil:
		return p.member.Load()
	case p.later:
		p.end(errors.New(reason))
	case br == nil:
		p.refuse(wire.RefuseMalformed, reason)
		f.leave(p)
	case p.bridger != nil:
		f.noForwarder(p, &handshake.Refused{Code: wire.RefuseMalformed, Reason: "bad frame: " + reason})
	default:
		f.giveUp(br.job, wire.RefuseMalformed, fmt.Sprintf("bad frame from the forwarder %s: %s", br.addr, reason))
	}
	return nil
}
