package forwarder

import (
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/forwarder/relay"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/wire"
)

// peer is the other end of a connection: somebody who wants to join, then a rank or another forwarder.
// As the connection's relay.Control (control.go) it decides what becomes of it.
type peer struct {
	f    *Forwarder
	conn *relay.Conn

	member atomic.Pointer[member] // set when the job starts, before the connection runs

	// Guarded by f.mu.
	joining *handshake.Acceptor // nil once the join is decided
	waiting *waiting            // place in a job that gathers
	bridge  *bridge             // the peer is another forwarder
	bridger *handshake.Bridger  // which has not been introduced yet

	deadline time.Time // of the Join; zero: none. Its loop only
}

// waiting is a peer's place in a job that gathers.
type waiting struct {
	job      *job
	rank     int            // virtual
	inside   netip.AddrPort // where it takes connections that the kernel passes on; invalid: nowhere
	instance uint64
}

// member is a peer's place in a running job.
type member struct {
	job    *job
	rank   uint32  // wire.Nobody for a bridge
	bridge *bridge // nil for a rank
	route  relay.Route
}

// peerOf is who is at the other end of a connection; nil for none.
func peerOf(c *relay.Conn) *peer {
	if c == nil {
		return nil
	}
	return c.Control().(*peer)
}

// run puts the peer into its place in a running job. With f.mu.
func (p *peer) run(m *member) {
	p.joining, p.waiting = nil, nil
	m.route.Rank, m.route.Allowed = m.rank, m.allowed
	m.route.Table, m.route.Counts, m.route.Classic = m.job.table, m.job.counts, m.job.classic
	p.member.Store(m)
	p.conn.Run(&m.route)
}

// allowed says of a header that is not one of a frame from the rank to another whether it may come.
func (m *member) allowed(h wire.Header) error {
	if m.bridge != nil {
		return m.bridge.allowed(h)
	}
	switch {
	case h.Type == wire.TypeAbort, h.Type == wire.TypeBye, h.Type == wire.TypePing, h.Type == wire.TypePong:
		return nil
	case !h.Type.BetweenRanks():
		return fmt.Errorf("%v frame in a running job", h.Type)
	case h.Src != m.rank:
		return fmt.Errorf("%v frame with source %d from rank %d", h.Type, h.Src, m.rank)
	}
	return fmt.Errorf("%v frame for rank %d of %d", h.Type, h.Dst, len(m.job.table))
}

// sendFrame gives the peer a frame of an exchange. The error is always nil: what the link cannot take now
// waits, and who lets too much wait does not get that far.
func (p *peer) sendFrame(frame []byte) error {
	_ = p.conn.Send(frame)
	return nil
}

// say sends what the exchange has to say to a peer that goes on waiting, or is let in. With f.mu.
func (p *peer) say() {
	_ = handshake.Drive(p.joining, p.sendFrame, func(handshake.Event) error { return nil })
}

// refuse tells a peer whose join is not decided why it cannot be in; its connection lingers. With f.mu.
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
	p.f.log.Warn("join refused", zap.Object("peer", p), zap.Stringer("code", err.Code), zap.String("reason", err.Reason), zap.Bool("by_peer", err.Remote))
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

// lostBy says whose connection is lost and why.
func (m *member) lostBy(p *peer, cause error) string {
	cluster, native := m.job.place(m.rank)
	return fmt.Sprintf("virtual rank %d (rank %d of cluster %s on host %s, link %s) is lost: %v", m.rank, native, cluster, m.job.hosts[m.rank], p.conn.Link().Remote(), cause)
}

// abortedBy says which rank asked for the end and why; a rank that reports another's end has said all itself.
func (m *member) abortedBy(a *wire.Abort) string {
	if a.Rank != m.rank {
		return a.Reason
	}
	cluster, native := m.job.place(m.rank)
	return fmt.Sprintf("%s, by virtual rank %d (rank %d of cluster %s on host %s) with code %d", a.Reason, m.rank, native, cluster, m.job.hosts[m.rank], a.Code)
}

// frame returns a frame between the two ends of a link; body may be nil.
func frame(t wire.Type, body wire.Body) []byte {
	return wire.AppendFrame(nil, wire.Header{Type: t, Src: wire.Nobody, Dst: wire.Nobody}, body)
}

func abortFrame(code int32, rank uint32, reason string) []byte {
	return frame(wire.TypeAbort, &wire.Abort{Code: code, Rank: rank, Reason: reason})
}
