package job

import (
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/bridge"
	"github.com/leidenzipper/zipper/internal/wire"
)

// The effects of a bridge's events on the ranks behind it, which are reached over its first
// connection.

// severed records that the ranks behind a bridge are out of reach, because the bridge's last
// connection is lost.
func (r *ranks) severed(br *bridge.Bridge, a *bridge.Severed) {
	r.unsure = true
	for _, v := range r.behind(br.Zipper) {
		switch {
		case !r.unroute(v, a.From):
		case r.left[v]:
			r.markLeft(v, r.links.network(br))
		case !a.AllLeft:
			r.markUnreachable(v, absence{a.Reason, r.patience() > 0}, r.links.network(br))
		}
	}
}

// restored records that the ranks behind a bridge can be reached again. The other end will report
// those that it cannot reach itself.
func (r *ranks) restored(br *bridge.Bridge, a *bridge.Restored) {
	for _, v := range r.behind(br.Zipper) {
		if !r.left[v] && r.alive(v) && r.reroute(v, a.Conn) && !a.AllLeft {
			r.markReachable(v, r.links.network(br))
		}
	}
}

// repeat makes the ranks here, and those behind bridges to other networks, retransmit their
// unacknowledged messages to the ranks behind a bridge. reason says why, for users.
func (r *ranks) repeat(br *bridge.Bridge, reason string) {
	for _, v := range r.behind(br.Zipper) {
		switch {
		case r.routes[v] == 0:
		case r.left[v]:
			r.markLeft(v, r.links.network(br))
		default:
			r.markUnreachable(v, absence{reason, true}, r.links.network(br))
			r.markReachable(v, r.links.network(br))
		}
	}
}

// sendStates tells the other end of a bridge, over a connection, which ranks it can reach through
// here, because the latest RailStates may be lost. missed says that it may also have missed that a
// rank was out of reach and is back. Its frames to that rank came no further than here, and must be
// retransmitted.
func (r *ranks) sendStates(br *bridge.Bridge, c action.Conn, missed bool) {
	for v, cluster := range r.clusterOf {
		if r.links.next(br.Zipper, cluster) != r.links.here {
			continue
		}
		rank := uint32(v)
		if !r.alive(rank) {
			continue
		}
		why, absent := r.absent[rank]
		gone := r.left[rank]
		if gone { // the rank's last acknowledgements may have been lost
			why.reason = openedAgain
		}
		if missed && !absent && !gone { // makes the other end retransmit
			r.sendState(c, wire.RailState{Rank: rank, Cut: true, Reason: openedAgain})
		}
		r.sendState(c, wire.RailState{Rank: rank, Up: !absent && !gone, Departed: gone, Cut: why.cut, Reason: why.reason})
	}
}

// allLeft records that the ranks behind a bridge have left, as the other end's Bye says. Their own
// RailStates may have been lost with a connection. In a job of several rows they may go on in
// others.
func (r *ranks) allLeft(br *bridge.Bridge) {
	if r.state != Running || !r.resumes() {
		return
	}
	for _, v := range r.behind(br.Zipper) {
		if !r.left[v] && r.alive(v) {
			r.markLeft(v, r.links.network(br))
		}
	}
}

// abandoned lets the job go on without a bridge that is not reopened: the ranks behind it stay out
// of reach over this forwarder.
func (r *ranks) abandoned(br *bridge.Bridge, reason string) {
	for _, v := range r.behind(br.Zipper) {
		if r.absent[v].cut {
			r.markUnreachable(v, absence{reason: reason}, r.links.network(br))
		}
	}
}

// unused removes the routes of ranks that lead over connection c of a bridge. No end is told,
// because no frame is lost.
func (r *ranks) unused(br *bridge.Bridge, c action.Conn) {
	for _, v := range r.behind(br.Zipper) {
		r.unroute(v, c)
	}
}

// moved sends frames for the ranks behind a bridge over the connection a.To in place of a.From,
// which is lost.
func (r *ranks) moved(br *bridge.Bridge, a *bridge.Move) {
	r.unsure = true
	for _, v := range r.behind(br.Zipper) {
		if r.unroute(v, a.From) {
			r.route(v, a.To)
		}
	}
}

// reported handles the report of the forwarder with index zipper whether it reaches one of the
// ranks behind it.
func (r *ranks) reported(zipper int, s *wire.RailState) {
	br := r.links.bridges[zipper]
	if r.state != Running || br == nil || br.First() == 0 || !r.alive(s.Rank) {
		return
	}
	was, absent := r.absent[s.Rank]
	why := absence{s.Reason, s.Cut}
	switch {
	case s.Departed:
		r.unsure = r.unsure || s.Reason != ""
		if !r.left[s.Rank] || s.Reason != "" { // with a reason, acknowledgements may have been lost
			r.markLeft(s.Rank, r.links.network(br))
		}
	case s.Up:
		if absent && r.reroute(s.Rank, br.First()) {
			r.markReachable(s.Rank, r.links.network(br))
		}
	case r.unroute(s.Rank, br.First()), absent && was.cut != why.cut:
		if s.Reason != openedAgain { // with that reason the rank is reached again at once
			r.log(zapcore.WarnLevel, "another forwarder does not reach a rank", zap.Uint32("virtual_rank", s.Rank),
				zap.String("reason", s.Reason))
		}
		r.markUnreachable(s.Rank, why, r.links.network(br))
	}
}
