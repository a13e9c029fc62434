package bridge

import (
	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/trunk"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Event is something that has happened to a bridge.
type Event interface{ apply(b *Bridge) }

// Events of connections.
type (
	// Reach has the first connection be dialled, for a job that gathers.
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

	// Introduced reports that the other end has taken a connection that was dialled.
	Introduced struct {
		Conn action.Conn
		Link trunk.Link
	}

	// Refused reports that the other end has not, or does not want one that is not in use yet.
	Refused struct {
		Conn   action.Conn
		Code   wire.RefuseCode
		Reason string
	}

	// Offered reports a connection that the other end has opened, after MayOffer.
	Offered struct {
		Conn   action.Conn
		Number int
		Link   trunk.Link
	}

	// Pong reports the answer to a Ping over a connection that is not in use yet.
	Pong struct {
		Conn action.Conn
		Link trunk.Link
	}

	// Ready reports that forwarder Zipper sees all ranks, over a connection that is not in use yet.
	Ready struct {
		Conn   action.Conn
		Zipper int
		Link   trunk.Link
	}

	// Unexpected reports another frame over a connection that is not in use yet.
	Unexpected struct {
		Conn action.Conn
		Type wire.Type
	}

	// Ended reports that a connection is closed. Cause nil: it ended as it should.
	Ended struct {
		Conn  action.Conn
		Cause error
	}

	// Bye reports the other end's Bye over a connection in use.
	Bye struct {
		Conn action.Conn
	}
)

// Events of the job.
type (
	// Begin reports that the job runs. Instead says that this end may dial the other one if that
	// does not dial, after a cut.
	Begin struct {
		Instead bool
	}

	// Finish reports that nothing more of the job can go over the bridge: Bye is said.
	Finish struct{}

	// Stop ends the bridge with its job.
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
		// Carried says that a command opens it, which takes longer. Number 0 of a job that gathers
		// is tried for as long as the job gathers.
		Carried, Gathers bool
	}

	// Introduce begins the exchange on a connection that was dialled.
	Introduce struct {
		action.Base
		Conn   action.Conn
		Zipper int
		Number int
	}

	// Use has a connection carry frames of the running job.
	Use struct {
		action.Base
		Conn   action.Conn
		Zipper int
	}

	// Spread has the first connection share what goes to the ranks behind the bridge with the
	// others.
	Spread struct {
		action.Base
		First action.Conn
		Over  []action.Conn
	}

	// Far has a connection sent as suits a long path.
	Far struct {
		action.Base
		Conn action.Conn
	}
)

// Actions for the job's state machine.
type (
	// Linked reports that the job gathers over the bridge now: the other end hears what is known.
	Linked struct{ action.Base }

	// GiveUp has the job's gathering be given up.
	GiveUp struct {
		action.Base
		Code   wire.RefuseCode
		Reason string
	}

	// Move has the ranks behind the bridge be reached over another connection, after a loss.
	Move struct {
		action.Base
		From, To action.Conn
	}

	// Unused reports that a connection over which all is said is closed.
	Unused struct {
		action.Base
		Conn action.Conn
	}

	// Repeat has what is not acknowledged be sent again to the ranks behind the bridge.
	Repeat struct {
		action.Base
		Reason string
	}

	// Tell has the other end be told, over a connection, which ranks are reached through here.
	// Missed: it may not have heard the last of them.
	Tell struct {
		action.Base
		Conn   action.Conn
		Missed bool
	}

	// Severed reports that the last connection in use, From, is lost. Heard: all ranks behind the
	// bridge have left.
	Severed struct {
		action.Base
		From   action.Conn
		Reason string
		Heard  bool
	}

	// Restored reports that the bridge has a connection again.
	Restored struct {
		action.Base
		Conn  action.Conn
		Heard bool
	}

	// AllLeft reports that all ranks behind the bridge have left, as Bye says.
	AllLeft struct{ action.Base }

	// Failed has the running job fail: it has no other way. Conn, if not 0, is the lost connection.
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

	// Anew has the other end, which gathers the job anew over a connection, be told all that it
	// gathers through here.
	Anew struct {
		action.Base
		Conn action.Conn
	}
)
