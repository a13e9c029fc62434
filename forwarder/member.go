package forwarder

import (
	"fmt"

	"github.com/leidenzipper/zipper/forwarder/relay"
	"github.com/leidenzipper/zipper/wire"
)

// member is a peer's place in a running job.
type member struct {
	job    *job
	rank   uint32  // wire.Nobody for a bridge
	bridge *bridge // nil for a rank
	route  relay.Route
}

// run puts the peer into its place in a running job. With f.mu.
func (p *peer) run(m *member) {
	p.f.strangers.Settle(p.guest)
	p.joining, p.waiting = nil, nil
	m.route.Rank, m.route.Allowed = m.rank, m.allowed
	m.route.Patience = m.job.patience()
	m.route.Table, m.route.Counts, m.route.Classic = m.job.table, m.job.counts, m.job.classic
	m.route.Memory = m.job.memory
	if m.bridge != nil {
		m.route.Blocked = &m.bridge.blocked
	} else {
		m.route.Blocked = &m.job.blocked[m.job.clusterOf[m.rank]]
	}
	p.member.Store(m)
	p.conn.Run(&m.route)
}

// allowed says of a header that is not one of a frame from the rank to another whether it may come.
func (m *member) allowed(h wire.Header) error {
	if m.bridge != nil {
		return m.bridge.allowed(h)
	}
	switch {
	case h.Type == wire.TypeAbort, h.Type == wire.TypeBye, h.Type == wire.TypePing, h.Type == wire.TypePong,
		h.Type == wire.TypeCount:
		return nil
	case !h.Type.BetweenRanks():
		return fmt.Errorf("%v frame in a running job", h.Type)
	case h.Src != m.rank:
		return fmt.Errorf("%v frame with source %d from rank %d", h.Type, h.Src, m.rank)
	}
	return fmt.Errorf("%v frame for rank %d of %d", h.Type, h.Dst, len(m.job.table))
}

// lostBy says whose connection is lost and why.
func (m *member) lostBy(p *peer, cause error) string {
	cluster, native := m.job.place(m.rank)
	return fmt.Sprintf("virtual rank %d (rank %d of cluster %s on host %s, link %s) is lost: %v", m.rank,
		native, cluster, m.job.hosts[m.rank], p.conn.Link().Remote(), cause)
}

// abortedBy says which rank asked for the end and why; a rank that reports another's end has said
// all itself.
func (m *member) abortedBy(a *wire.Abort) string {
	if a.Rank != m.rank {
		return a.Reason
	}
	cluster, native := m.job.place(m.rank)
	return fmt.Sprintf("%s, by virtual rank %d (rank %d of cluster %s on host %s) with code %d", a.Reason,
		m.rank, native, cluster, m.job.hosts[m.rank], a.Code)
}
