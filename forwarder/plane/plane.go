// Package plane is what the event loops use of a running job without its lock: which connection
// leads to each rank, what may come over a connection, and the counts.
package plane

import (
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/forwarder/budget"
	"github.com/leidenzipper/zipper/forwarder/relay"
	"github.com/leidenzipper/zipper/forwarder/report"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Plane is what the loops use of a running job without its lock. Only the table changes.
type Plane struct {
	ID        string
	Clusters  []wire.Cluster
	Hosts     []string                     // Hosts are those of the virtual ranks.
	ClusterOf []int                        // ClusterOf is the cluster of each virtual rank.
	Via       []int                        // Via is the forwarder behind which each rank is; -1: none. nil: one hop.
	Table     []atomic.Pointer[relay.Conn] // Table is the way to each virtual rank; nil: departed or dead.
	Counts    *relay.Counts
	// blocked is, of each cluster, for how many ns its links did not take what there was.
	blocked []atomic.Int64
	bridges map[int]*atomic.Int64 // bridges is the same of each bridge.
	Memory  *budget.Budget        // Memory is what its links may keep.
	Classic *relay.Classic        // Classic is nil if frames go on as they come.
	GoesOn  bool                  // GoesOn says that the job outlives the loss of a link.
}

// Member is a connection's place in a running job.
type Member struct {
	*Plane
	Rank    uint32 // Rank is wire.Nobody for another forwarder.
	Zipper  int    // Zipper is the other forwarder's index; -1 for a rank.
	Address string // Address is the other forwarder's.
	Route   relay.Route
}

// Describe adds who the member is to a line of the log.
func (m *Member) Describe(e zapcore.ObjectEncoder) {
	e.AddString("job", m.ID)
	if m.Zipper >= 0 {
		e.AddString("forwarder", m.Address)
		return
	}
	cluster, native := wire.Place(m.Clusters, m.Rank)
	e.AddUint32("virtual_rank", m.Rank)
	e.AddString("cluster", cluster)
	e.AddInt("rank", native)
	e.AddString("host", m.Hosts[m.Rank])
}

// allowed says of a header that is not one of a frame from the rank to another whether it may come.
func (m *Member) allowed(h wire.Header) error {
	if m.Zipper >= 0 {
		return m.allowedOver(h)
	}
	switch {
	case h.Type == wire.TypeAbort, h.Type == wire.TypeBye, h.Type == wire.TypePing, h.Type == wire.TypePong,
		h.Type == wire.TypeCount:
		return nil
	case !h.Type.BetweenRanks():
		return fmt.Errorf("%v frame in a running job", h.Type)
	case h.Src != m.Rank:
		return fmt.Errorf("%v frame with source %d from rank %d", h.Type, h.Src, m.Rank)
	}
	return fmt.Errorf("%v frame for rank %d of %d", h.Type, h.Dst, len(m.Table))
}

// allowedOver checks a header that comes from another forwarder.
func (m *Member) allowedOver(h wire.Header) error {
	if !h.Type.BetweenRanks() {
		switch h.Type {
		// Ready: the same by another way
		case wire.TypeAbort, wire.TypeBye, wire.TypePing, wire.TypePong, wire.TypeCount, wire.TypeReady:
			return nil
		case wire.TypeRailState:
			if m.GoesOn {
				return nil
			}
		}
		return fmt.Errorf("%v frame over a link between forwarders", h.Type)
	}
	n := uint32(len(m.Table))
	if h.Src >= n || m.Via[h.Src] != m.Zipper {
		return fmt.Errorf("%v frame with source %d, which is not behind that link", h.Type, h.Src)
	}
	if h.Dst >= n || m.Via[h.Dst] == m.Zipper {
		return fmt.Errorf("%v frame for rank %d, which is not here", h.Type, h.Dst)
	}
	return nil
}

// MayTell checks what the other forwarder says of a rank: only whether one behind it can be
// reached.
func (m *Member) MayTell(s *wire.RailState) error {
	if int64(s.Rank) >= int64(len(m.Via)) || m.Via[s.Rank] != m.Zipper {
		return fmt.Errorf("RailState of rank %d, which is not behind that link", s.Rank)
	}
	return nil
}

// Make fills what follows from the other fields of a Plane.
func (p *Plane) Make() {
	p.Table = make([]atomic.Pointer[relay.Conn], len(p.Hosts))
	p.Counts = relay.NewCounts(len(p.Clusters), p.ClusterOf)
	p.blocked, p.bridges = make([]atomic.Int64, len(p.Clusters)), map[int]*atomic.Int64{}
	for _, zipper := range p.Via {
		if zipper >= 0 && p.bridges[zipper] == nil {
			p.bridges[zipper] = &atomic.Int64{}
		}
	}
}

// Join makes a member of the job, whose other end may say nothing for as long as the patience
// lasts.
func (p *Plane) Join(m *Member, patience time.Duration) {
	m.Plane = p
	m.Route = relay.Route{Rank: m.Rank, Allowed: m.allowed, Patience: patience, Table: p.Table, Counts: p.Counts,
		Classic: p.Classic, Memory: p.Memory}
	if m.Zipper >= 0 {
		m.Route.Blocked = p.bridges[m.Zipper]
	} else {
		m.Route.Blocked = &p.blocked[p.ClusterOf[m.Rank]]
	}
}

// BlockedIn is for how long the links of a cluster's ranks did not take what there was.
func (p *Plane) BlockedIn(cluster int) time.Duration { return time.Duration(p.blocked[cluster].Load()) }

// BlockedTo is the same of the link to another forwarder.
func (p *Plane) BlockedTo(zipper int) time.Duration {
	if b := p.bridges[zipper]; b != nil {
		return time.Duration(b.Load())
	}
	return 0
}

// Traffic is what went from the ranks of each cluster to those of each other one. all: also where
// that is nothing.
func (p *Plane) Traffic(all bool) []report.Traffic {
	t := []report.Traffic{}
	for from := range p.Clusters {
		for to := range p.Clusters {
			c := p.Counts.Read(from, to)
			if from != to && all || c.Frames > 0 {
				t = append(t, report.Traffic{From: p.Clusters[from].Name, To: p.Clusters[to].Name, Messages: c.Messages,
					PayloadBytes: c.Payload, HeaderBytes: c.Header, Frames: c.Frames, ResentFrames: c.Again,
					PassedBytes: c.Passed, PlacedBytes: c.Placed})
			}
		}
	}
	return t
}
