package job

import (
	"cmp"
	"maps"
	"slices"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/bridge"
	"github.com/leidenzipper/zipper/internal/wire"
)

// links are the bridges of a job of several hops. A job of one hop has no bridges and no tree.
type links struct {
	*core
	*tree
	bridges map[int]*bridge.Bridge // bridges has the bridges to neighbours, by the index of the other end.
	// of has the index of the forwarder at the other end of each connection to another forwarder.
	of map[action.Conn]int
}

// several reports whether frames of the job may pass through several forwarders.
func (l *links) several() bool { return l.tree != nil }

// list returns the bridges that have had a connection and have not ended, in the order of the other
// ends' indexes.
func (l *links) list() (list []*bridge.Bridge) {
	for _, k := range sorted(l.bridges) {
		if l.linked(k) {
			list = append(list, l.bridges[k])
		}
	}
	return list
}

// ever returns the bridges that have had a connection, in the same order.
func (l *links) ever() (list []*bridge.Bridge) {
	for _, k := range sorted(l.bridges) {
		if l.bridges[k].State() != bridge.Absent {
			list = append(list, l.bridges[k])
		}
	}
	return list
}

// linked reports whether there is a link to the neighbouring forwarder with index k.
func (l *links) linked(k int) bool { return l.bridges[k] != nil && l.bridges[k].Linked() }

// all reports whether there is a link to each neighbouring forwarder.
func (l *links) all() bool {
	for k := range l.zippers {
		if _, ok := l.neighbour(k); ok && !l.linked(k) {
			return false
		}
	}
	return true
}

// add makes a bridge to the forwarder with index k at address addr. dials says that this end opens
// its connections.
func (l *links) add(k int, addr string, dials bool) {
	l.bridges[k] = bridge.New(bridge.Config{Job: l.id, Zipper: k, Here: l.here, Address: addr, Dials: dials,
		Fixed: l.cfg.Trunk, Patience: l.patience(), SurvivesLoss: l.survivesLoss(), Resumes: l.resumes()})
}

// opened records that connection c, which is not in use yet, leads to the forwarder with index
// zipper.
func (l *links) opened(c action.Conn, zipper int) { l.of[c] = zipper }

// closed forgets a connection that has ended and returns the forwarder at its other end, if it was
// one of a bridge.
func (l *links) closed(c action.Conn) (zipper int, ok bool) {
	zipper, ok = l.of[c]
	delete(l.of, c)
	return zipper, ok
}

// network returns the index of the network that both ends of a bridge are on.
func (l *links) network(br *bridge.Bridge) int {
	n, _ := l.neighbour(br.Zipper)
	return n.network
}

// send sends a frame of type t over the first connection of a bridge. It does nothing if the bridge
// has none.
func (l *links) send(br *bridge.Bridge, t wire.Type, body wire.Body) {
	if c := br.First(); c != 0 {
		l.do(action.Send{Conn: c, Frame: frame(t, body)})
	}
}

// cut closes the connections in use to the forwarder with index zipper. cause is the reason for the
// log.
func (l *links) cut(zipper int, cause error) {
	for _, c := range l.bridges[zipper].Conns() {
		l.do(action.End{Conn: c, Cause: cause})
	}
}

// stop ends all bridges, because the job ends.
func (l *links) stop() {
	for _, k := range sorted(l.bridges) {
		l.cross(k, bridge.Stop{})
	}
}

// expected reports whether the running job waits for a new connection to a forwarder to which it
// has lost all.
func (l *links) expected() bool {
	return slices.ContainsFunc(l.list(), func(br *bridge.Bridge) bool { return br.First() == 0 && br.Wanted() })
}

// sorted returns the keys of a map in ascending order.
func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
