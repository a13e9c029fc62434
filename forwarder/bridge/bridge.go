// Package bridge is the link between two forwarders for one job of several hops, as a state
// machine.
//
// Frames between ranks go over a bridge as over a rank's link. A bridge has one connection while
// the job gathers, and one or more, a trunk, while the job runs. Its parts, each of which uses only
// those below it:
//
//	bridge.go    Handle
//	gather.go    the first connection, while the job gathers; which connections are taken
//	restart.go   another forwarder that was restarted
//	trunk.go     the connections of a running job: which are in use, and what a loss means
//	dial.go      dialling those that are missing
//	bye.go       the end: Bye from both ends over each connection
//	conns.go     the connections
//	core.go      the states, and what all parts share
//
// Handle takes an event and returns actions, in order. Some are for the forwarder (those of package
// action, and Dial, Introduce, Use, Spread and Far here). The job's state machine carries out the
// others. A Bridge does no I/O, reads no clock and takes no lock. It is not safe for concurrent
// use.
package bridge

import (
	"time"

	"github.com/leidenzipper/zipper/forwarder/action"
)

// Bridge is the state machine of the link between this forwarder and one other forwarder of a job.
// The link may consist of several connections.
type Bridge struct {
	*core
	conns   *connections
	parting *parting
	dialler *dialler
	trunk   *trunkLine
	entry   *entry
}

// New returns the bridge that cfg describes, in state Absent: it has no connection.
func New(cfg Config) *Bridge {
	b := &Bridge{core: &core{Config: cfg}, conns: &connections{}}
	b.parting = &parting{b.core, b.conns}
	b.dialler = &dialler{core: b.core, conns: b.conns}
	b.trunk = &trunkLine{b.core, b.conns, b.parting, b.dialler}
	b.entry = &entry{b.core, b.conns, b.trunk}
	return b
}

// State returns the bridge's present state, such as Running or Cut.
func (b *Bridge) State() State { return b.state }

// Linked reports whether the bridge has ever had a connection and has not ended.
func (b *Bridge) Linked() bool { return b.state != Absent && b.state != Over }

// First returns the connection that carries all frames, or all but bulk (wire.Header.Bulk) if
// others are in use. It returns 0 if the bridge has no connection in use.
func (b *Bridge) First() action.Conn {
	if c := b.conns.first(); c != nil {
		return c.id
	}
	return 0
}

// Conns returns the connections in use. The one that First returns comes first.
func (b *Bridge) Conns() (list []action.Conn) {
	for _, c := range b.conns.inUse {
		list = append(list, c.id)
	}
	return list
}

// Lost returns how many connections of the bridge have been lost while they were in use.
func (b *Bridge) Lost() int { return b.conns.lost }

// Tried reports whether a large packet has passed over the first connection and been answered, so
// that the connection may carry frames of the job.
func (b *Bridge) Tried() bool { return b.conns.first().warming.Warm() }

// ByeSent reports whether this forwarder has sent Bye over the bridge, because it has no more
// frames for the other end.
func (b *Bridge) ByeSent() bool { return b.bye.sent }

// ByeReceived reports whether the other end has sent Bye over all connections of the bridge.
func (b *Bridge) ByeReceived() bool { return b.bye.complete }

// Handle advances the bridge by one event and returns actions, in order. The error is an illegal
// transition, which is a defect of this package. The job must end then.
func (b *Bridge) Handle(now time.Time, e Event) ([]action.Action, error) {
	b.now, b.out, b.wrong = now, nil, nil
	e.apply(b)
	return b.out, b.wrong
}

func (Reach) apply(b *Bridge)        { b.dialler.reach() }
func (e Dialled) apply(b *Bridge)    { b.dialler.dialled(e.Conn, e.Number) }
func (e NotDialled) apply(b *Bridge) { b.dialler.dialFailed(e.Number, e.Err) }
func (e Introduced) apply(b *Bridge) { b.entry.introduced(e.Conn, e.Link) }
func (e Refused) apply(b *Bridge)    { b.entry.refused(e.Conn, e.Code, e.Reason) }
func (e Offered) apply(b *Bridge)    { b.entry.offered(e.Conn, e.Number, e.Link) }
func (e Pong) apply(b *Bridge)       { b.entry.answered(e.Conn, e.Link) }
func (e Ready) apply(b *Bridge)      { b.trunk.ready(e.Conn, e.Zipper, e.Link) }
func (e Unexpected) apply(b *Bridge) { b.trunk.unexpected(e.Conn, e.Type) }
func (e Ended) apply(b *Bridge)      { b.trunk.ended(&e) }
func (e Begin) apply(b *Bridge)      { b.trunk.begin(e.DialForPeer) }
func (Finish) apply(b *Bridge)       { b.finish() }
func (e Bye) apply(b *Bridge)        { b.parting.byeArrived(e.Conn) }

// finish sends Bye to the other end over all connections. Without a connection Bye waits for the
// next one, which may never come: the other end may have been restarted, and cannot gather the job
// without this one.
func (b *Bridge) finish() {
	if b.bye.sent || b.conns.first() == nil {
		return
	}
	if !b.SurvivesLoss {
		b.trunk.stopDialling()
	}
	b.parting.sendAll()
}

// apply ends the bridge, because the job ends: nothing more is dialled, and connections that are
// not in use are closed.
func (Stop) apply(b *Bridge) {
	if b.state != Over {
		b.trunk.stopDialling()
		b.to(Over)
	}
}

func (e Expired) apply(b *Bridge) {
	switch e.Timer {
	case action.Large:
		b.entry.unanswered()
	case action.Again:
		b.dialler.again()
	case action.Measure:
		b.trunk.measured(e.Links)
	case action.Cut:
		b.trunk.cutOff()
	}
}
