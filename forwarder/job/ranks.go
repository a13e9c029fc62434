package job

import (
	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/bridge"
	"github.com/leidenzipper/zipper/internal/wire"
)

// ranks are the ranks of a running job: which connection each has, which are out of reach, and
// which have left. Changes are told to the ends whose way to the rank leads through here
// (RailState); markLeft says which are told of a departure.
type ranks struct {
	*core
	links *links
	live  int // live is the number of connections that carry frames of the running job.

	// The next four fields are fixed when the job starts.

	// layout is the answer to ranks that join, in which Rank and Namesake differ and are not set.
	layout    wire.Layout
	hosts     []string        // hosts has the name of each rank's host, by rank in the whole job.
	namesakes map[string]bool // namesakes has the names of hosts that are in several clusters.
	clusterOf []int           // clusterOf has the index of each rank's cluster, by rank in the whole job.

	// routes has the connection over which frames for each rank go, by rank in the whole job; 0:
	// out of reach, or departed.
	routes []action.Conn
	// via has, for each rank, the index of the forwarder to which its frames go; -1: the rank has a
	// link here. nil: one hop.
	via []int
	// members are the connections that carry frames of the running job, to ranks and to other
	// forwarders.
	members map[action.Conn]*member
	// absent has the ranks that are out of reach over this forwarder, with the reason.
	absent      map[uint32]absence
	left        map[uint32]bool // left are the ranks that have said Bye.
	reconnected map[uint32]bool // reconnected has the ranks that have lost a link and opened another one.
	// unsure says that frames in flight may have been lost with a link.
	unsure bool
	// statesSent counts the RailStates and Losts that were sent over each connection.
	statesSent sequences
	// remaining is the number of ranks here that have not left; it is used in a job of several hops
	// only.
	remaining int
}

// sequences count the numbered frames that were sent over each connection.
type sequences map[action.Conn]uint32

// next returns the number of the next frame over a connection, and counts that frame.
func (s sequences) next(c action.Conn) uint32 {
	s[c]++
	return s[c]
}

// member is a connection, to a rank or to another forwarder, that carries frames of the running
// job.
type member struct {
	link   string // link is the address of the rank at the other end; empty for a forwarder.
	rank   uint32 // rank is the rank at the other end, in the whole job; wire.Nobody for a forwarder.
	zipper int    // zipper is the index of the forwarder at the other end; -1 for a rank.
}

// absence says why a rank is out of reach, for users.
type absence struct {
	reason string
	// cut says that the reason is a lost link between forwarders, which may be opened again.
	cut bool
}

// fill sets the fields that are fixed once all ranks have joined. layout is the answer that joining
// ranks get.
func (r *ranks) fill(layout wire.Layout) {
	r.layout = layout
	r.hosts, r.namesakes, r.clusterOf = make([]string, r.gather.Ranks()), r.gather.Namesakes(), nil
	for i, c := range r.clusters {
		for range c.Size {
			r.clusterOf = append(r.clusterOf, i)
		}
	}
	for v := range r.hosts {
		r.hosts[v] = r.gather.Host(v)
	}
	r.routes = make([]action.Conn, len(r.hosts))
	if r.links.several() {
		r.via = make([]int, len(r.hosts))
		for v := range r.via {
			r.via[v] = r.links.next(r.links.here, r.clusterOf[v])
		}
	}
}

// behind returns the ranks whose frames this forwarder sends to the neighbouring forwarder with the
// given index, rather than to the ranks themselves.
func (r *ranks) behind(zipper int) (list []uint32) {
	for v := range r.via {
		if r.via[v] == zipper {
			list = append(list, uint32(v))
		}
	}
	return list
}

// here reports whether rank v has its link to this forwarder rather than to another one.
func (r *ranks) here(v uint32) bool { return r.via == nil || r.via[v] < 0 }

// enter makes the connection c, whose other end has address link, that of rank v. It carries frames
// of the job from now on.
func (r *ranks) enter(c action.Conn, link string, v uint32) {
	r.live++
	r.members[c] = &member{link: link, rank: v, zipper: -1}
	r.route(v, c)
}

// remove removes a connection that has ended from the running job and returns its member, or nil if
// it was not part of the job.
func (r *ranks) remove(c action.Conn) *member {
	m := r.members[c]
	if m != nil {
		delete(r.members, c)
		r.live--
	}
	return m
}

// returns records that rank v, which was out of reach, has reconnected. Such a rank is told of
// ranks that leave later.
func (r *ranks) returns(v uint32) {
	delete(r.absent, v)
	r.reconnected[v] = true
}

// route sends frames for rank v over connection c from now on.
func (r *ranks) route(v uint32, c action.Conn) {
	r.routes[v] = c
	r.do(Route{Rank: v, Conn: c})
}

// unroute removes a rank's route if it leads over a connection, and reports whether it did. It does
// not if the rank has departed, or has another connection by now.
func (r *ranks) unroute(v uint32, c action.Conn) bool {
	if c == 0 || r.routes[v] != c {
		return false
	}
	r.routes[v] = 0
	r.do(Unroute{Rank: v})
	return true
}

// reroute sends frames for rank v over connection c if the rank has no connection. It reports
// whether the rank had none.
func (r *ranks) reroute(v uint32, c action.Conn) bool {
	if r.routes[v] != 0 {
		return false
	}
	r.route(v, c)
	return true
}

// markUnreachable records that a rank cannot be reached from here, and tells others. network is the
// one on which the rank is, or on which the way to it begins. All ranks here are told, and the
// forwarders that are not on that network: those on it do not reach the rank through here.
func (r *ranks) markUnreachable(v uint32, why absence, network int) {
	r.absent[v], r.unsure = why, true
	r.tell(wire.RailState{Rank: v, Reason: why.reason, Cut: why.cut}, network)
}

// markReachable records that rank v can be reached from here again, and tells all ranks here, and
// the forwarders that are not on the network with that index (markUnreachable).
func (r *ranks) markReachable(v uint32, network int) {
	delete(r.absent, v)
	r.tell(wire.RailState{Rank: v, Up: true}, network)
}

// openedAgain is the reason in the RailState of a rank that has left, or was within reach all the
// time, if frames or acknowledgements may have been lost with a link between forwarders.
const openedAgain = "a link between forwarders was opened again"

// markLeft records that rank v has left, so messages to it that are still unacknowledged can be
// dropped. network is the one on which the rank is, or on which the way to it begins. In a job of
// one hop those ranks are told that have reopened a link. In a job of several hops the forwarders
// on other networks are told, and the ranks here if frames in flight may have been lost. A rank
// that reconnects later is told then (losses.again).
func (r *ranks) markLeft(v uint32, network int) {
	r.left[v] = true
	delete(r.absent, v)
	gone := wire.RailState{Rank: v, Departed: true}
	if !r.links.several() {
		for to, c := range r.routes {
			if c != 0 && r.reconnected[uint32(to)] {
				r.sendState(c, gone)
			}
		}
		return
	}
	if r.unsure {
		r.notifyRanks(gone)
		gone.Reason = openedAgain // the other end becomes unsure by this reason
	}
	r.notifyBridges(gone, network)
}

// tell sends a RailState (whether a rank can be reached, or has left) to all ends whose way to that
// rank leads through here: the ranks here, and the forwarders that are not on the network with that
// index.
func (r *ranks) tell(s wire.RailState, network int) {
	r.notifyRanks(s)
	r.notifyBridges(s, network)
}

// notifyRanks sends a RailState (whether a rank can be reached) to all ranks here except the one
// that it is about.
func (r *ranks) notifyRanks(s wire.RailState) {
	for v, c := range r.routes {
		if c != 0 && uint32(v) != s.Rank && r.here(uint32(v)) {
			r.sendState(c, s)
		}
	}
}

// notifyBridges sends a RailState to all neighbouring forwarders, except those on the network with
// that index and those that were sent Bye.
func (r *ranks) notifyBridges(s wire.RailState, network int) {
	for _, br := range r.links.list() {
		if c := br.First(); c != 0 && r.links.network(br) != network && !br.ByeSent() {
			r.sendState(c, s)
		}
	}
}

// sendState sends a RailState over a connection. The queue is not checked, because an end that
// reads nothing is found dead soon.
func (r *ranks) sendState(c action.Conn, s wire.RailState) {
	s.Number = r.statesSent.next(c)
	r.do(action.Send{Conn: c, Frame: frame(wire.TypeRailState, &s)})
}

// departs removes the route to a rank that has said Bye. A Bye over a connection that is no longer
// the route is ignored: either the job has ended, or the rank has opened another connection, over
// which it says Bye again.
func (r *ranks) departs(c action.Conn) {
	m := r.members[c]
	if m == nil || m.zipper >= 0 || !r.unroute(m.rank, c) {
		return
	}
	if r.survivesLoss() || r.outlives() {
		r.markLeft(m.rank, r.clusterOf[m.rank])
	}
	r.remaining--
}

// detach records that rank v has lost its link here for good.
func (r *ranks) detach(v uint32, reason string) { r.absent[v] = absence{reason: reason} }

// takeOut removes the route to rank v, whose cluster is lost, and counts the rank as one that has
// left. It returns the rank's connection here, or 0 if it has none.
func (r *ranks) takeOut(v uint32) action.Conn {
	c := r.routes[v]
	_, absent := r.absent[v]
	delete(r.absent, v)
	if routed := r.unroute(v, c); !r.here(v) || !routed && !absent {
		return 0
	}
	r.remaining--
	return c
}

// use makes a bridge's connection carry frames of the job. Its queue gets room for the frames that
// one rank may send to each of the ranks behind the bridge.
func (r *ranks) use(br *bridge.Bridge, c action.Conn) {
	r.live++
	r.members[c] = &member{rank: wire.Nobody, zipper: br.Zipper}
	r.do(bridge.Use{Conn: c, Zipper: br.Zipper})
	r.do(Widen{Conn: c, N: len(r.behind(br.Zipper))})
}
