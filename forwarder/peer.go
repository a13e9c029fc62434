package forwarder

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/plane"
	"github.com/leidenzipper/zipper/forwarder/relay"
	"github.com/leidenzipper/zipper/forwarder/role"
	"github.com/leidenzipper/zipper/forwarder/strangers"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/seal"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
)

// peer is the other end of a connection: a stranger, then a rank or another forwarder. Frames
// that come over the connection are handled in control.go.
type peer struct {
	f    *Forwarder
	id   action.Conn
	conn *relay.Conn

	// guest is the peer's place in the count of strangers; nil: dialled from here.
	guest *strangers.Stranger
	// member is the connection's place in a running job; nil until it carries frames of that job.
	member atomic.Pointer[plane.Member]

	// run is the peer's job. It is set once, on the peer's own loop, with the job's lock. That lock
	// guards the fields after it once run is set. Before that the own loop alone uses them.
	run  *runner
	role role.Role
	// exchange is the join exchange with a peer that has connected, while the role is Stranger or
	// Waiting; else nil.
	exchange *handshake.Acceptor
	// bridger is the exchange with a forwarder that was dialled from here, from the role
	// Introducing on; else nil.
	bridger *handshake.Bridger
	// zipper is the index of the forwarder at the other end in the job; 0 if that is a rank.
	zipper int
	seal   *seal.Channel // seal has the keys of the link, if its job is sealed; otherwise nil.

	// The fields below are used on the peer's own loop only.

	// deadline is the time until which the Join must arrive; zero: it has arrived, or none is
	// needed.
	deadline time.Time
	states   wire.Ordered // states checks that RailStates and Losts from another forwarder arrive in order.
}

// sendFrame sends the peer a frame of an exchange. The error is always nil: bytes that the link
// cannot take now are queued, and an exchange ends before a queue is full.
func (p *peer) sendFrame(frame []byte) error {
	_ = p.conn.Send(frame)
	return nil
}

// say sends the peer the frames that the join exchange has ready. If the exchange has failed, the
// peer leaves.
func (p *peer) say() {
	_ = handshake.Drive(p.exchange, p.sendFrame, func(e handshake.Event) error {
		if e.Kind == handshake.Ended {
			p.refused(e.Err)
		}
		return nil
	})
}

// refuse sends a peer that joins, or that waits in a job, the reason why it cannot join. Its
// connection then waits for the other end to close it. refuse does nothing after the join exchange.
func (p *peer) refuse(code wire.RefuseCode, reason string) {
	if p.exchange != nil {
		p.exchange.Refuse(code, reason)
		p.say()
	}
}

// refused counts and logs that the peer's join exchange has failed with err, and has the peer
// leave.
func (p *peer) refused(err *handshake.Refused) {
	p.f.log.Warn("join refused", zap.Object("peer", p), zap.Stringer("code", err.Code),
		zap.String("reason", err.Reason), zap.Bool("by_peer", err.Remote))
	p.f.mu.Lock()
	p.f.totals.Refuse(err.Code)
	p.f.mu.Unlock()
	p.leave()
}

// leave waits for a peer that belongs to no job to close its connection, and closes it after
// Config.Linger.
func (p *peer) leave() {
	p.to(role.Leaving)
	p.conn.Post(p.conn.Linger)
}

// belong makes the peer a member of the job of runner r. zipper is its index there if it is a
// forwarder, else 0.
func (p *peer) belong(r *runner, zipper int) { p.run, p.zipper, p.deadline = r, zipper, time.Time{} }

// introduce begins the exchange with another forwarder on a connection that was dialled from here.
// cert is the certificate that a rank of the job has shown.
func (p *peer) introduce(cert *handshake.Certificate, number int) {
	p.to(role.Introducing)
	p.bridger = handshake.NewBridger(*cert, p.zipper, number, p.f.policy.Load().terms, handshake.Nonce())
}

// endExchange ends the join exchange with a peer whose connection has ended, or is about to.
func (p *peer) endExchange() {
	if p.role.May(role.Leaving) {
		p.to(role.Leaving)
	}
}

// end closes the peer's connection for the reason cause. The job handles it as lost, with that
// cause. Any thread.
func (p *peer) end(cause error) { p.conn.Post(func() { p.conn.End(cause) }) }

// MarshalLogObject adds the peer's identity to a line of the log. Any thread.
func (p *peer) MarshalLogObject(e zapcore.ObjectEncoder) error {
	e.AddString("link", p.conn.Link().Remote())
	if m := p.member.Load(); m != nil {
		m.Describe(e)
	}
	return nil
}

// frame returns the bytes of a frame of type t that is for the other end of a link rather than for
// a rank. body may be nil.
func frame(t wire.Type, body wire.Body) []byte {
	return wire.AppendFrame(nil, wire.Control(t), body)
}

// take gives a new link to the next loop, which calls begin for it. admit, if not nil, is called
// with f.mu before the link is used; if it returns false the link is closed. Any thread.
func (f *Forwarder) take(link transport.Link, admit func(p *peer) bool, begin func(p *peer)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := &peer{f: f}
	p.conn = f.relay.Conn(f.workers[f.next%len(f.workers)], link, control{p})
	if f.stopping || admit != nil && !admit(p) {
		link.Close()
		return
	}
	f.next++
	p.id = action.Conn(f.next)
	f.peers[p] = f.next
	f.totals.Links++
	p.conn.Post(func() {
		if err := p.conn.Open(); err != nil {
			f.log.Error("cannot watch a link", zap.Error(err))
			return
		}
		begin(p)
	})
}

// forget removes a peer whose connection has ended from the forwarder's tables. Any thread.
func (f *Forwarder) forget(p *peer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.peers, p)
	f.strangers.Leave(p.guest)
	if f.stopping && len(f.peers) == 0 {
		close(f.empty)
	}
}

var errCrowded = errors.New("too many links that have not joined")

// admitLink reports whether a new link is admitted. If not, it sends the reason. To make room, the
// oldest link that has not joined, of the same address or of the one with most, may be closed
// (package strangers). With f.mu.
func (f *Forwarder) admitLink(p *peer) bool {
	link := p.conn.Link()
	g, oldest, err := f.strangers.Connect(link.Remote(), p)
	if err != nil {
		_, _ = link.TryWrite(frame(wire.TypeRefuse, &wire.Refuse{Code: wire.RefuseFull,
			Reason: err.Error()})) // best effort
		f.log.Warn("link refused", zap.String("link", link.Remote()), zap.Error(err))
		return false
	}
	p.guest = g
	if oldest != nil {
		oldest.Who.(*peer).evict()
	}
	return true
}

// evict closes the link of a peer that has not joined, to make room for a new link. Any thread.
func (p *peer) evict() {
	reason := fmt.Sprintf("too many links that have not joined; the oldest from %s is closed", p.guest.Address())
	p.f.log.Warn("link closed", zap.Object("peer", p), zap.String("reason", reason))
	p.conn.Post(func() {
		if p.run != nil { // the peer has joined meanwhile
			return
		}
		p.endExchange()
		_ = p.conn.Send(frame(wire.TypeRefuse, &wire.Refuse{Code: wire.RefuseFull, Reason: reason}))
		p.conn.End(errCrowded)
	})
}

// settle removes the peer from the count of links that have not joined.
func (p *peer) settle() {
	p.f.mu.Lock()
	p.f.strangers.Settle(p.guest)
	p.f.mu.Unlock()
}

// to gives the peer the role next, and drops the join exchange if that role has none. An illegal
// transition is a defect. It closes the connection, which the peer's job handles as a lost link.
func (p *peer) to(next role.Role) {
	if !p.role.May(next) {
		p.f.defect(fmt.Errorf("a %v connection becomes %v", p.role, next))
		p.end(errDefect)
		return
	}
	p.role = next
	if next != role.Stranger && next != role.Waiting {
		p.exchange = nil
	}
}

var errDefect = errors.New("internal error (please report this, with the forwarder's log)")

// defect counts and logs an internal error, which ends at most one job or connection. A strict
// forwarder panics.
func (f *Forwarder) defect(err error) {
	if f.cfg.strict {
		panic(err)
	}
	f.log.Error("internal error", zap.Error(err), zap.Stack("stack"))
	f.mu.Lock()
	f.totals.Internal++
	f.mu.Unlock()
}
