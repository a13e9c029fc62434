package job

import (
	"net/netip"
	"time"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/bridge"
	"github.com/leidenzipper/zipper/forwarder/trunk"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Event is something that has happened to a job.
type Event interface{ apply(j *Job) }

// Events of ranks' connections.
type (
	// Joined is a verified Join of a rank.
	Joined struct {
		Conn    action.Conn
		Link    string // Link is the other end's address, as people know it.
		Join    *wire.Join
		Ticket  error          // Ticket is why the Join's ticket is not good; nil: it is, or none is demanded.
		Timeout time.Duration  // Timeout is how long the rank waits for the others.
		Bytes   int64          // Bytes are those of the Join.
		Room    bool           // Room says that they are booked to the forwarder's memory.
		Inside  netip.AddrPort // Inside is where it takes connections that the kernel passes on; invalid: nowhere.
		Home    netip.Addr     // Home is this host's address on the connection; invalid: unknown.
	}

	// Turned reports that the forwarder has refused somebody who wanted to be in. The Refused is
	// proven to be made with the Join's key, except those of RefuseSecret.
	Turned struct {
		Join *wire.Join
		Link string
		Why  *handshake.Refused
	}

	// Withdrawn reports that the join exchange of a rank that waits has failed.
	Withdrawn struct{ Conn action.Conn }

	// Left is a rank's Bye.
	Left struct{ Conn action.Conn }

	// Aborted is a rank's, or another forwarder's, Abort. Said is as it came; the reason may hold
	// anything.
	Aborted struct {
		Conn action.Conn
		Said wire.Abort
	}

	// Damaged reports that something came over a connection of the running job that is no frame of
	// it.
	Damaged struct {
		Conn   action.Conn
		Reason string
	}

	// Lost reports that a connection has ended. Cause nil: it was closed as it should. Silent:
	// nothing was heard of the other end.
	Lost struct {
		Conn   action.Conn
		Cause  error
		Silent bool
	}
)

// Other events of the job.
type (
	// Expired reports the end of a timer.
	Expired struct {
		Timer action.Timer
		// Besides says which other jobs gather that may be meant for this one, for Gathering and
		// Notice.
		Besides string
		// Links has the connections of the bridge, for Measure.
		Links map[action.Conn]trunk.Link
	}

	// Another reports that a job of the same id and another key gathers, too: a mistake of a user,
	// or a stranger.
	Another struct{}

	// Opened is the kernel's answer to OpenWays, number N. Err nil: At has the beginning of each
	// way.
	Opened struct {
		N   int
		At  []netip.AddrPort
		Err error
	}

	// Closed reports that the kernel has taken back what OpenWays has opened.
	Closed struct{}

	// HalfEnded is a launcher's word that its half has ended.
	HalfEnded struct {
		Reason string
		Code   int32
	}

	// HalfSuspended is a launcher's word that its half stands still.
	HalfSuspended struct{ Cluster, Reason string }

	// HalfResumed takes that back.
	HalfResumed struct{ Cluster string }

	// ClusterEnded reports that all processes of a cluster have ended.
	ClusterEnded struct{ Cluster string }

	// GiveUp ends the gathering.
	GiveUp struct {
		Code   wire.RefuseCode
		Reason string
	}

	// Stop ends the job with its forwarder.
	Stop struct{ Reason string }

	// Release ends the links of a running job that may go on without this forwarder.
	Release struct{ Reason string }
)

// Events of a job of several hops.
type (
	// Offered reports a connection that another forwarder has opened. Its Join and number are those
	// that it has shown.
	Offered struct {
		Conn         action.Conn
		Join         *wire.Join
		Here, Number int
		Ticket       error
		Link         trunk.Link
	}

	// Heard is a frame over a connection of a bridge.
	Heard struct {
		Conn   action.Conn
		Zipper int
		Type   wire.Type
		Body   []byte
		Room   bool // Room says that the bytes of a Join are booked to the forwarder's memory.
		Link   trunk.Link
	}

	// Spoiled reports that something came over a connection of a bridge that is no frame.
	Spoiled struct {
		Conn   action.Conn
		Zipper int
		Reason string
	}

	// Crossed is another event of the bridge to a forwarder.
	Crossed struct {
		Zipper int
		Event  bridge.Event
	}

	// Reported is another forwarder's word whether it reaches a rank behind it.
	Reported struct {
		Zipper int
		State  wire.RailState
	}

	// Unreached reports why a neighbour is not reached so far.
	Unreached struct {
		Zipper int
		Reason string
	}
)

// Actions on connections, beside those of package action.
type (
	// Refuse refuses a connection that has not joined, or that waits; it lingers.
	Refuse struct {
		action.Base
		Conn action.Conn
		Why  *handshake.Refused
	}

	// Place tells a rank that it waits for the others.
	Place struct {
		action.Base
		Conn action.Conn
	}

	// Tell tells a rank that waits what is missing.
	Tell struct {
		action.Base
		Conn action.Conn
		Text string
	}

	// Start lets all ranks that wait into the job that runs from now on.
	Start struct {
		action.Base
		Layout    wire.Layout
		Entries   []Entry
		Hosts     []string // Hosts are those of the virtual ranks.
		ClusterOf []int    // ClusterOf is the cluster of each virtual rank.
		// Via is the forwarder to which frames for each rank go; -1: the rank has a link here.
		// nil: one hop.
		Via   []int
		Links int // Links counts the ranks and bridges.
	}

	// Enter lets a rank that comes back into the running job.
	Enter struct {
		action.Base
		Layout wire.Layout
		Entry
	}

	// Run has a connection carry the frames of a rank that has entered.
	Run struct {
		action.Base
		Conn action.Conn
		Rank uint32
	}

	// Route has frames for a rank go over a connection.
	Route struct {
		action.Base
		Rank uint32
		Conn action.Conn
	}

	// Unroute has frames for a rank go nowhere.
	Unroute struct {
		action.Base
		Rank uint32
	}

	// Widen gives a connection's queue room for what n ranks may be sent at once.
	Widen struct {
		action.Base
		Conn action.Conn
		N    int
	}

	// Bridged reports that a connection of another forwarder is in the job.
	Bridged struct {
		action.Base
		Conn   action.Conn
		Zipper int
	}
)

// Entry is a rank's place in the running job.
type Entry struct {
	Conn     action.Conn
	Rank     uint32
	Namesake bool // Namesake says that a host of another cluster has the name of the rank's.
}

// Other actions.
type (
	// Free gives back bytes of Joins that were booked to the forwarder's memory.
	Free struct {
		action.Base
		Bytes int64
	}

	// OpenWays asks the kernel to open ways, and reports Opened with the same number.
	OpenWays struct {
		action.Base
		N    int
		Ways []Way
	}

	// CloseWays has the kernel take back what OpenWays N has opened. Last: Closed is reported.
	CloseWays struct {
		action.Base
		N    int
		Last bool
	}

	// Incomplete reports that the job has ended before it ran.
	Incomplete struct {
		action.Base
		Reason string
	}

	// Over reports that the job has run and has ended.
	Over struct{ action.Base }

	// Internal reports a defect of the state machine, which ends the job.
	Internal struct {
		action.Base
		Err error
	}
)

// Way is a way between ranks that the kernel opens: connections to At are passed on to To.
type Way struct {
	At netip.Addr
	To netip.AddrPort
}
