package bridge

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/trunk"
	"github.com/leidenzipper/zipper/internal/wire"
)

// A bridge of a running job is a trunk of one or more connections:
//
//  1. The forwarder that has dialled the first one determines their number by the round trip (begin;
//     package trunk), and dials the others (dial.go). It shows the same certificate, and the
//     connection's number.
//  2. The other end answers Ready when its job runs and the connection is warm (admit). Only then do
//     both ends send frames of the job over the connection, so no frame arrives before the job runs
//     there.
//  3. The first connection in use carries small frames, and those between forwarders; the others
//     carry bulk (package relay defines which frames may overtake others). Bye is sent over each
//     connection. Once it has arrived over all, no more frames of the job follow.
//  4. While connections wait for room in the kernel's buffers, more are opened. A connection that
//     loses packets is adapted to a long path (measured).
//  5. In place of a lost connection one with a free number is dialled, but never 0: that is for the
//     gathering. Its frames in flight are lost: ranks are told that those behind the bridge are out
//     of reach and back again, and retransmit unacknowledged messages (Repeat). If the first
//     connection is lost, the next one replaces it (Move).
//  6. If all are lost, the ranks behind the bridge are out of reach (Severed) until one is back
//     (Restored), or for good when the job's patience is over (cutOff): the job fails, or its other
//     rows go on.
//  7. The other end may have been restarted and may not know the job (restart.go).
//
// If the ranks of a job cannot retransmit (the classic protocol, or no patience), the job fails
// with the first lost connection.

// trunkLine manages the connections of a bridge whose job runs: it puts them into use, adds more,
// and replaces lost ones.
type trunkLine struct {
	*core
	conns   *connections
	parting *parting
	dialler *dialler
}

// begin starts the trunk of a bridge whose job runs now. bothDial says that both ends may dial when
// the bridge is cut.
func (l *trunkLine) begin(bothDial bool) {
	if !l.to(Running) {
		return
	}
	link := l.conns.first().link // as known at the last Pong
	l.disarm(action.Large)
	for _, c := range slices.Clone(l.conns.coming) { // admit shortens the list
		l.admit(c)
	}
	if link.Long() {
		l.arm(action.Measure, trunk.Measure)
	}
	l.dialler.begin(link, bothDial)
}

// admit tells the other end that its connection is in use, if the job runs and the connection is
// either warm or needed at once.
func (l *trunkLine) admit(c *conn) {
	switch {
	case l.state != Running && l.state != Cut:
		return
	case !l.Wanted(): // both ends have sent Bye over the others, which may be closed
		l.end(c.id, errNotWanted)
		return
	case !c.warming.Warm() && l.conns.first() != nil:
		return
	}
	l.send(c, wire.TypeReady, &wire.Ready{Zipper: uint32(l.Here)})
	l.use(c)
}

// ready handles a Ready that arrived over the connection id. A Ready that names the other end
// itself says that it uses that connection.
func (l *trunkLine) ready(id action.Conn, zipper int, link trunk.Link) {
	c := l.conns.find(id)
	switch {
	case c == nil || !slices.Contains(l.conns.coming, c):
	case c.number == 0 && zipper != l.Zipper: // a Ready relayed for a third forwarder; ignored
	case l.Wanted() && (!c.offered || c.number == 0):
		c.link = link
		l.use(c)
	default:
		l.end(id, errNotWanted)
	}
}

// unexpected ends a connection over which a frame arrives before it is in use. Over a connection
// with number 0, Joins and Notices of the other end's gathering are ignored: this end knows all of
// them. So are RailStates and Losts: after a cut, each end may take the other one for a restarted
// one (restart.go), and sends these again once the connection is in use.
func (l *trunkLine) unexpected(id action.Conn, t wire.Type) {
	c := l.conns.find(id)
	if c == nil {
		return
	}
	switch t {
	case wire.TypeJoin, wire.TypeNotice, wire.TypeRailState, wire.TypeLost:
		if c.number == 0 {
			return
		}
	}
	l.end(id, fmt.Errorf("%v frame before the connection is in use", t))
}

var errOpenedAgain = errors.New("the other forwarder has opened it again")

// use makes a connection carry frames of the running job, and gives the job the bridge again if it
// was cut.
func (l *trunkLine) use(c *conn) {
	t := l.conns
	t.removeComing(c)
	l.dialler.used(c)
	for _, old := range t.inUse {
		if old.number == c.number { // the other end notices first that it is dead
			l.end(old.id, errOpenedAgain)
		}
	}
	if !l.Wanted() {
		l.end(c.id, errNotWanted)
		return
	}
	if c.number >= trunk.Eager && c.link.Long() {
		l.do(Far{Conn: c.id})
	}
	l.do(Use{Conn: c.id, Zipper: l.Zipper})
	t.use(c)
	l.log(zapcore.InfoLevel, "one more connection to another forwarder", zap.Int("connection", c.number),
		zap.Int("in_use", len(t.inUse)))
	if l.state == Cut {
		l.restore(c)
	}
	if l.dialler.long && c.number < trunk.Eager {
		l.dialler.extend()
	}
	l.spread()
	if l.bye.sent {
		l.do(Tell{Conn: c.id})
		l.parting.say(c)
	}
}

// restore tells the job that a bridge that was cut can be used again, over its only connection, c.
func (l *trunkLine) restore(c *conn) {
	l.to(Running)
	l.disarm(action.Cut)
	l.do(Restored{Conn: c.id, AllLeft: l.bye.complete})
	if !l.bye.sent {
		l.do(Tell{Conn: c.id})
	}
	l.log(zapcore.InfoLevel, "the link to another forwarder is back")
	l.dialler.extendIn(trunk.Redial)
}

// spread has the frames to the ranks behind the bridge distributed over the connections in use:
// bulk frames over all but the first.
func (l *trunkLine) spread() {
	c := l.conns.first()
	if c == nil {
		return
	}
	bulk := slices.Clone(l.conns.inUse[1:])
	// in the order that trunk.Eager requires
	slices.SortFunc(bulk, func(x, y *conn) int { return x.number - y.number })
	var over []action.Conn
	for _, o := range bulk {
		over = append(over, o.id)
	}
	l.do(Spread{First: c.id, Over: over})
}

// measured decides whether the trunk needs more connections, and adapts those that lose packets. It
// is called every trunk.Measure.
func (l *trunkLine) measured(links map[action.Conn]trunk.Link) {
	if !l.Wanted() {
		return
	}
	t := l.conns
	now := map[int]trunk.Path{}
	for _, c := range t.inUse {
		if c.link = links[c.id]; c.link.Known {
			now[c.number] = c.link.Path
		}
	}
	lossy := t.losses.Look(maps.Clone(now))
	for _, c := range t.inUse {
		if slices.Contains(lossy, c.number) && c.link.Long() {
			l.do(Far{Conn: c.id})
		}
	}
	if c := t.first(); c != nil && l.Dials {
		delete(now, c.number)
		l.dialler.grow(now)
	}
	l.arm(action.Measure, trunk.Measure)
}

// ended handles the end of a connection. Without it the job fails, or goes on over other
// connections of the bridge, or over its other rows of forwarders.
func (l *trunkLine) ended(e *Ended) {
	t, id, cause := l.conns, e.Conn, e.Cause
	if cause == nil {
		cause = errors.New("closed")
	}
	c, first := t.drop(id)
	if c == nil {
		l.dialler.closedEarly(id, cause)
		return
	}
	reason := fmt.Sprintf("the link to the forwarder %s is lost: %v", l.Address, cause)
	switch {
	case l.state == Gathering: // a Join cannot be withdrawn
		l.stopDialling()
		l.to(Over)
		l.do(GiveUp{Code: wire.RefuseShutdown, Reason: reason})
	case l.Wanted() && !(l.bye.sent && c.byeReceived):
		l.log(zapcore.ErrorLevel, "a link between forwarders is lost", zap.Int("connection", c.number),
			zap.Int("left", len(t.inUse)), zap.Error(cause))
		if l.SurvivesLoss {
			l.failOver(c, first, reason, e.Silent)
			return
		}
		if len(t.inUse) > 0 {
			reason = fmt.Sprintf("a connection of the link to the forwarder %s is lost, with the frames in flight on it: %v",
				l.Address, cause)
		}
		l.do(Failed{Conn: id, Reason: reason})
	case l.bye.sent && l.bye.begun: // the connection carries no more frames of the job
		l.bye.complete = l.bye.complete || t.byeComplete()
		l.do(Unused{Conn: id})
	}
}

// failOver continues after the loss of a connection that was in use. first says that it was the
// first one, and silent is Ended.Silent.
func (l *trunkLine) failOver(c *conn, first bool, reason string, silent time.Duration) {
	t := l.conns
	t.lost++
	if now := t.first(); now == nil {
		l.sever(c, reason, silent)
	} else {
		l.do(Move{From: c.id, To: now.id})
		l.spread()
		// after Bye, no frame needs an answer or can be sent
		if !l.bye.sent && !l.bye.complete {
			l.do(Repeat{Reason: reason})
			l.do(Tell{Conn: now.id, Missed: first})
		}
	}
	l.dialler.extendIn(trunk.Soon)
}

// sever takes a bridge that has lost its last connection, c, out of use, and tells the job so.
// reason is for users. silent is the time for which nothing had been heard over c, or 0.
func (l *trunkLine) sever(c *conn, reason string, silent time.Duration) {
	l.to(Cut)
	l.do(Severed{From: c.id, Reason: reason, AllLeft: l.bye.complete})
	l.arm(action.Cut, Remaining(l.Patience, silent))
}

// cutOff gives up the bridge, because it has been without a connection for longer than
// Config.Patience.
func (l *trunkLine) cutOff() {
	if l.state != Cut || !l.Wanted() {
		return
	}
	l.log(zapcore.ErrorLevel, "the link to another forwarder was not restored", zap.Duration("after", l.Patience))
	l.giveUp(fmt.Sprintf("the link to the forwarder %s is lost, and was not restored within %v", l.Address, l.Patience))
}

// giveUp continues without a bridge that is cut, or fails the job if it has no other way. The
// bridge is not needed any more if this end has sent Bye.
func (l *trunkLine) giveUp(reason string) {
	l.stopDialling()
	switch {
	case l.bye.sent:
		l.bye.begun, l.bye.complete = true, true
	case l.Resumes:
		l.do(Failed{Reason: reason})
		return
	default:
		l.to(Over)
		l.do(Abandoned{Reason: reason})
	}
}

// stopDialling ends all attempts to open connections for the bridge, and closes those that are not
// in use.
func (l *trunkLine) stopDialling() {
	for _, k := range []action.Kind{action.Large, action.Again, action.Measure, action.Cut} {
		l.disarm(k)
	}
	for _, c := range l.conns.coming {
		l.end(c.id, errNotWanted)
	}
}
