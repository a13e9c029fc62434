// Package plane has the part of a running job that the event loops use without the job's lock: the
// connection of each rank, the frames that a connection accepts, and the counters.
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

// Plane is the part of a running job that the loops use without its lock. Only the table and the
// counters change.
type Plane struct {
	ID        string
	Clusters  []wire.Cluster
	Hosts     []string // Hosts has the name of each rank's host, by rank in the whole job.
	ClusterOf []int    // ClusterOf has the index of each rank's cluster, by rank in the whole job.
	// Via has, for each rank, the index of the forwarder to which its frames go, or -1 if the rank
	// has a link here; nil in a job of one hop.
	Via []int
	// Table has the connection over which frames for each rank go, by rank in the whole job; nil if
	// the rank has departed or is out of reach.
	Table  []atomic.Pointer[relay.Conn]
	Counts *relay.Counts
	// blocked has, for each cluster, the nanoseconds for which its links had bytes queued.
	blocked []atomic.Int64
	// bridges has, for each bridge by the other end's index, the nanoseconds for which its
	// connections had bytes queued, added up.
	bridges map[int]*atomic.Int64
	Memory  *budget.Budget // Memory is the budget of the job's links.
	// Classic relays a classic job; nil if frames are forwarded as they arrive.
	Classic      *relay.Classic
	SurvivesLoss bool // SurvivesLoss says that the job survives the loss of a link.
	Outlives     bool // Outlives says that the job continues after a cluster is lost.
}

// Member is the place in a running job of a connection, which leads to a rank or to another
// forwarder.
type Member struct {
	*Plane
	Rank    uint32 // Rank is the rank at the other end, in the whole job; wire.Nobody if that is a forwarder.
	Zipper  int    // Zipper is the index of the forwarder at the other end; -1 if that is a rank.
	Address string // Address is the address of the forwarder at the other end; empty for a rank.
	Route   relay.Route
}

// Describe adds the member's identity to a line of the log.
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

// allowed returns an error unless the member's other end may send a frame with header h. It is
// called before the frame is handled: for a rank if the frame does not go from it to another rank,
// for a forwarder always.
func (m *Member) allowed(h wire.Header) error {
	if m.Zipper >= 0 {
		return m.allowedOver(h)
	}
	switch {
	case h.Type == wire.TypeAbort, h.Type == wire.TypeBye, h.Type == wire.TypePing, h.Type == wire.TypePong,
		h.Type == wire.TypeCount, h.Type == wire.TypeAsk, h.Type == wire.TypeMoved:
		return nil
	case h.Type == wire.TypeLost && m.Outlives:
		return nil
	case !h.Type.BetweenRanks():
		return fmt.Errorf("%v frame in a running job", h.Type)
	case h.Src != m.Rank:
		return fmt.Errorf("%v frame with source %d from rank %d", h.Type, h.Src, m.Rank)
	}
	return fmt.Errorf("%v frame for rank %d of %d", h.Type, h.Dst, len(m.Table))
}

// allowedOver returns an error unless another forwarder may send a frame with header h over its
// connection.
func (m *Member) allowedOver(h wire.Header) error {
	if !h.Type.BetweenRanks() {
		switch h.Type {
		// Ready may arrive again over another bridge.
		case wire.TypeAbort, wire.TypeBye, wire.TypePing, wire.TypePong, wire.TypeCount, wire.TypeReady:
			return nil
		case wire.TypeRailState:
			if m.SurvivesLoss || m.Outlives {
				return nil
			}
		case wire.TypeLost:
			if m.Outlives {
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

// ParseState parses the body of a RailState of the other forwarder, and makes its reason printable.
// It returns an error if states expects another number, or if the rank is not behind that
// forwarder.
func (m *Member) ParseState(body []byte, states *wire.Ordered) (wire.RailState, error) {
	s, err := wire.ParseRailState(body)
	if err == nil {
		err = states.Take(s.Number)
	}
	if err == nil && (int64(s.Rank) >= int64(len(m.Via)) || m.Via[s.Rank] != m.Zipper) {
		err = fmt.Errorf("RailState of rank %d, which is not behind that link", s.Rank)
	}
	s.Reason = wire.Printable(s.Reason)
	return s, err
}

// ParseLoss parses the body of a Lost of the member's other end, and makes its reason printable. It
// returns an error if states expects another number, or if the job does not have the cluster.
func (m *Member) ParseLoss(body []byte, states *wire.Ordered) (wire.Lost, error) {
	l, err := wire.ParseLost(body)
	if err == nil {
		err = states.Take(l.Number)
	}
	if err == nil && int(l.Cluster) >= len(m.Clusters) {
		err = fmt.Errorf("%v of cluster %d of %d", wire.TypeLost, l.Cluster, len(m.Clusters))
	}
	l.Reason = wire.Printable(l.Reason)
	return l, err
}

// Make sets Table, Counts and the counters of blocked time, all of them empty, according to Hosts,
// Clusters, ClusterOf and Via. It must be called once, after these are set and before the Plane is
// used: a second call would discard the table and the counts.
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

// rankBytes is the number of bytes for each rank in the tables of a running job: here the entries
// of Hosts, ClusterOf, Via and Table, and in the state machine that of its routes.
const rankBytes = 16 + 8 + 8 + 8 + 8

// Bytes returns the number of bytes of memory of the job's tables, which depends on the layout
// alone: a job may run although most of its ranks are behind other forwarders, or lost.
func (p *Plane) Bytes() int64 { return int64(len(p.Hosts))*rankBytes + p.Counts.Bytes() }

// Join makes a connection a member of the job, and gives it its route. Its other end may stay
// silent for as long as the patience lasts. In a job that outlives clusters, a cut network is
// noticed within the patience, because the survivors must then know of the loss.
func (p *Plane) Join(m *Member, patience time.Duration) {
	m.Plane = p
	m.Route = relay.Route{Rank: m.Rank, Allowed: m.allowed, Patience: patience, Table: p.Table, Counts: p.Counts,
		Classic: p.Classic, Memory: p.Memory}
	if p.Outlives {
		m.Route.Unreachable = patience
	}
	if m.Zipper >= 0 {
		m.Route.Blocked = p.bridges[m.Zipper]
	} else {
		m.Route.Blocked = &p.blocked[p.ClusterOf[m.Rank]]
	}
}

// BlockedIn returns the time for which the links of a cluster's ranks had bytes queued, added up.
func (p *Plane) BlockedIn(cluster int) time.Duration { return time.Duration(p.blocked[cluster].Load()) }

// BlockedTo returns the time for which the connections to the forwarder with index zipper had bytes
// queued, added up.
func (p *Plane) BlockedTo(zipper int) time.Duration {
	if b := p.bridges[zipper]; b != nil {
		return time.Duration(b.Load())
	}
	return 0
}

// Traffic returns the traffic from the ranks of each cluster to those of each cluster. all includes
// the directions between different clusters that have no traffic. The directions inside a cluster
// are included only with traffic.
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
