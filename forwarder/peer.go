package forwarder

import (
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/forwarder/relay"
	"github.com/leidenzipper/zipper/forwarder/strangers"
	"github.com/leidenzipper/zipper/forwarder/trunk"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/seal"
	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/wire"
)

// peer is the other end of a connection: somebody who wants to join, then a rank or another
// forwarder. As the connection's relay.Control (control.go) it decides what becomes of it.
type peer struct {
	f    *Forwarder
	conn *relay.Conn

	member atomic.Pointer[member] // set when the job starts, before the connection runs

	// Guarded by f.mu.
	joining *handshake.Acceptor // nil once the join is decided
	waiting *waiting            // place in a job that gathers
	bridge  *bridge             // the peer is another forwarder
	bridger *handshake.Bridger  // which has not been introduced yet
	number  int                 // of the connection in the bridge's trunk
	later   bool                // it comes into a job that runs, or waits for that (trunk.go)
	warming trunk.Warming       // of the connection to another forwarder
	byeCame bool                // over the bridge
	guest   *strangers.Stranger // nil: dialled by us
	seal    *seal.Channel       // for the link, if its job is sealed
	states  uint32              // RailStates that it was sent

	deadline time.Time // of the Join; zero: none. Its loop only

	came wire.Ordered // RailStates. Its loop only
}

// waiting is a peer's place in a job that gathers.
type waiting struct {
	job      *job
	rank     int            // virtual
	inside   netip.AddrPort // where it takes connections that the kernel passes on; invalid: nowhere
	instance uint64
	kept     int64 // bytes of its Join
}

// peerOf is who is at the other end of a connection; nil for none.
func peerOf(c *relay.Conn) *peer {
	if c == nil {
		return nil
	}
	return c.Control().(*peer)
}

// sendFrame gives the peer a frame of an exchange. The error is always nil: what the link cannot
// take now waits, and who lets too much wait does not get that far.
func (p *peer) sendFrame(frame []byte) error {
	_ = p.conn.Send(frame)
	return nil
}

// sendState tells the peer of a rank's link. With f.mu.
func (p *peer) sendState(s wire.RailState) {
	p.states++
	s.Number = p.states
	_ = p.conn.Send(frame(wire.TypeRailState, &s)) // who reads nothing is found dead soon
}

// say sends what the exchange has to say to a peer that goes on waiting, or is let in. With f.mu.
func (p *peer) say() {
	_ = handshake.Drive(p.joining, p.sendFrame, func(handshake.Event) error { return nil })
}

// admit is say for a peer that is let in, and run next. With f.mu.
func (p *peer) admit() {
	_ = handshake.Drive(p.joining, p.conn.SendCounted, func(handshake.Event) error { return nil })
}

// refusal is why somebody cannot be in, for refuse or the exchange.
func refusal(code wire.RefuseCode, format string, args ...any) *handshake.Refused {
	return &handshake.Refused{Code: code, Reason: fmt.Sprintf(format, args...)}
}

// refuse tells a peer whose join is not decided why it cannot be in; its connection lingers. With
// f.mu.
func (p *peer) refuse(code wire.RefuseCode, reason string) {
	if p.joining == nil {
		return
	}
	p.joining.Refuse(code, reason)
	_ = handshake.Drive(p.joining, p.sendFrame, func(e handshake.Event) error {
		p.refused(e.Err)
		return nil
	})
}

// refused notes that the join exchange has failed. With f.mu.
func (p *peer) refused(err *handshake.Refused) {
	p.f.log.Warn("join refused", zap.Object("peer", p), zap.Stringer("code", err.Code),
		zap.String("reason", err.Reason), zap.Bool("by_peer", err.Remote))
	p.f.totals.refuse(err.Code)
	p.joining = nil
	p.conn.Post(p.conn.Linger)
}

// end closes the peer's connection. Any thread.
func (p *peer) end(cause error) { p.conn.Post(func() { p.conn.End(cause) }) }

// abortWith has the peer's connection end with a last frame. Any thread.
func (p *peer) abortWith(frame []byte) { p.conn.Post(func() { p.conn.AbortWith(frame) }) }

// MarshalLogObject describes the peer. Any thread.
func (p *peer) MarshalLogObject(e zapcore.ObjectEncoder) error {
	e.AddString("link", p.conn.Link().Remote())
	if m := p.member.Load(); m != nil && m.bridge != nil {
		e.AddString("job", m.job.id)
		e.AddString("forwarder", m.bridge.addr)
	} else if m != nil {
		cluster, native := m.job.place(m.rank)
		e.AddString("job", m.job.id)
		e.AddUint32("virtual_rank", m.rank)
		e.AddString("cluster", cluster)
		e.AddInt("rank", native)
		e.AddString("host", m.job.hosts[m.rank])
	}
	return nil
}

// frame returns a frame between the two ends of a link; body may be nil.
func frame(t wire.Type, body wire.Body) []byte {
	return wire.AppendFrame(nil, wire.Control(t), body)
}

func abortFrame(code int32, rank uint32, reason string) []byte {
	return frame(wire.TypeAbort, &wire.Abort{Code: code, Rank: rank, Reason: reason, By: wire.Nobody})
}

// take gives a new link to the next loop, which calls begin for it; nil: the other end does.
// prepare, if not nil, is called with f.mu before the link is used; false: it is not wanted any
// more. Any thread.
func (f *Forwarder) take(link transport.Link, prepare func(p *peer) bool, begin func(p *peer)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := &peer{f: f}
	p.conn = f.relay.Conn(f.workers[f.next%len(f.workers)], link, p)
	if f.stopping || prepare != nil && !prepare(p) {
		link.Close()
		return
	}
	f.next++
	f.peers[p] = f.next
	f.totals.Links++
	p.conn.Post(func() {
		if err := p.conn.Open(); err != nil {
			f.log.Error("cannot watch a link", zap.Error(err))
			return
		}
		if begin != nil {
			begin(p)
		}
	})
}
