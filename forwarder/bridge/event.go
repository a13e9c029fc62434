package bridge

import (
	"time"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/trunk"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Event is something that has happened to a bridge, which Bridge.Handle handles.
type Event interface{ apply(b *Bridge) }

// Events of connections.
type (
	// Reach makes this end dial the first connection to the other end, for a job that gathers.
	Reach struct{}

	// Dialled reports a connection that a Dial has opened. It is introduced next.
	Dialled struct {
		Conn   action.Conn
		Number int
	}

	// NotDialled reports that a Dial has failed.
	NotDialled struct {
		Number int
		Err    error
	}

	// Introduced reports that the other end has accepted a connection that was dialled.
	Introduced struct {
		Conn action.Conn
		Link trunk.Link
	}

	// Refused reports that the other end has refused a dialled connection, or one that is not in
	// use yet.
	Refused struct {
		Conn   action.Conn
		Code   wire.RefuseCode
		Reason string
	}

	// Offered reports a connection that the other end has opened, and that the job has accepted.
	Offered struct {
		Conn   action.Conn
		Number int
		Link   trunk.Link
	}

	// Pong reports that the other end has answered a Ping over a connection that carries no frames
	// of the running job yet.
	Pong struct {
		Conn action.Conn
		Link trunk.Link
	}

	// Ready reports a Ready frame over a connection that is not in use yet: forwarder Zipper has
	// gathered all ranks. If Zipper is the other end, its job runs, and it uses the connection from
	// now on.
	Ready struct {
		Conn   action.Conn
		Zipper int
		Link   trunk.Link
	}

	// Unexpected reports a frame of a type that may not arrive over a connection before it is in
	// use.
	Unexpected struct {
		Conn action.Conn
		Type wire.Type
	}

	// Ended reports that a connection of the bridge is closed. Cause is nil if it was closed in
	// order. Silent is the time for which nothing had been heard from the other end, if that is the
	// cause; else 0.
	Ended struct {
		Conn   action.Conn
		Cause  error
		Silent time.Duration
	}

	// Bye reports the other end's Bye over a connection in use.
	Bye struct {
		Conn action.Conn
	}
)

// Events of the job.
type (
	// Begin reports that the job runs. DialForPeer says that after a cut this end may dial in place
	// of the other one.
	Begin struct {
		DialForPeer bool
	}

	// Finish reports that this end has no more frames of the job for the other end, so Bye is sent.
	Finish struct{}

	// Stop ends the bridge because its job ends.
	Stop struct{}

	// Expired reports the end of a timer. Links has the connections in use, for the timer Measure.
	Expired struct {
		Timer action.Kind
		Links map[action.Conn]trunk.Link
	}
)

// Actions for the forwarder.
type (
	// Dial opens a connection to the other end, and reports Dialled or NotDialled.
	Dial struct {
		action.Base
		Zipper int
		Number int
		// Carried says that a command opens the connection, which takes longer. Gathers says that
		// the job gathers, so the Dial retries for most of the time that the job has for that.
		Carried, Gathers bool
	}

	// Introduce shows the other end a Join of the job over a connection that this end has dialled,
	// so that the other end can accept or refuse the connection.
	Introduce struct {
		action.Base
		Conn   action.Conn
		Zipper int
		Number int
	}

	// Use makes a connection of the bridge carry frames of the running job.
	Use struct {
		action.Base
		Conn   action.Conn
		Zipper int
	}

	// Spread sends bulk frames to the ranks behind the bridge over the connections in Over, and all
	// other frames over First. If Over is empty, all frames go over First.
	Spread struct {
		action.Base
		First action.Conn
		Over  []action.Conn
	}

	// Far adapts a connection's congestion control to a path with a long round trip that loses
	// packets.
	Far struct {
		action.Base
		Conn action.Conn
	}
)

// Actions for the job's state machine.
type (
	// Linked reports that the job gathers over the bridge now, so that the other end must be told
	// the present state.
	Linked struct{ action.Base }

	// GiveUp gives up the gathering of the job.
	GiveUp struct {
		action.Base
		Code   wire.RefuseCode
		Reason string
	}

	// Move reroutes the ranks behind the bridge to another connection, after a loss.
	Move struct {
		action.Base
		From, To action.Conn
	}

	// Unused reports that a connection is closed after both ends have sent Bye.
	Unused struct {
		action.Base
		Conn action.Conn
	}

	// Repeat makes ranks retransmit unacknowledged messages to the ranks behind the bridge.
	Repeat struct {
		action.Base
		Reason string
	}

	// Tell sends the other end, over a connection, the ranks that are reached through this
	// forwarder. Missed says that the last update may have been lost.
	Tell struct {
		action.Base
		Conn   action.Conn
		Missed bool
	}

	// Severed reports that the last connection in use, From, is lost. AllLeft says that all ranks
	// behind the bridge have left.
	Severed struct {
		action.Base
		From    action.Conn
		Reason  string
		AllLeft bool
	}

	// Restored reports that the bridge has a connection again. AllLeft says that all ranks behind
	// the bridge have left.
	Restored struct {
		action.Base
		Conn    action.Conn
		AllLeft bool
	}

	// AllLeft reports that all ranks behind the bridge have left, according to Bye.
	AllLeft struct{ action.Base }

	// Failed ends the running job because it cannot go on after a lost connection or without the
	// bridge. Conn, if not 0, is the lost connection.
	Failed struct {
		action.Base
		Conn   action.Conn
		Reason string
	}

	// Abandoned reports that the job goes on without the bridge.
	Abandoned struct {
		action.Base
		Reason string
	}

	// Regathers reports that the other end was restarted and gathers the job over a connection. It
	// must be sent all that it gathers through this forwarder.
	Regathers struct {
		action.Base
		Conn action.Conn
	}
)
