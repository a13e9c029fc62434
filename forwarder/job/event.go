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

// Event is something that has happened to a job, which Job.Handle handles.
type Event interface{ apply(j *Job) }

// Events of ranks' connections.
type (
	// Joined reports a rank's request to join the job, whose signature has been verified.
	Joined struct {
		Conn action.Conn // Conn is the rank's connection.
		Link string      // Link is the other end's address, as users know it.
		Join *wire.Join
		// Ticket is the error of the Join's ticket; nil if it is valid or none is required.
		Ticket  error
		Timeout time.Duration // Timeout is the time that the rank waits for the others.
		Bytes   int64         // Bytes is the length of the Join.
		Room    bool          // Room says that Bytes are charged to the forwarder's memory.
		// Inside is the address at which the rank accepts connections that the kernel forwards;
		// invalid if none.
		Inside netip.AddrPort
		Home   netip.Addr // Home is this host's address on the connection; invalid if unknown.
		From   netip.Addr // From is the address of the connection's other end; invalid if unknown.
	}

	// Turned reports that the forwarder has refused a process that wanted to join the job. The
	// process has proved that it has the Join's key, except in a refusal with RefuseSecret,
	// RefuseMalformed or RefuseVersion.
	Turned struct {
		Join *wire.Join
		Link string
		Why  *handshake.Refused
	}

	// Withdrawn reports that the join exchange of a waiting rank has failed.
	Withdrawn struct{ Conn action.Conn }

	// Departed reports that a rank has sent Bye over its connection, and so has left the job in
	// order.
	Departed struct{ Conn action.Conn }

	// Aborted reports the Abort of a rank or of another forwarder. Frame is the frame as received;
	// its reason may contain any bytes.
	Aborted struct {
		Conn  action.Conn
		Frame wire.Abort
	}

	// Damaged reports input on a connection of the running job that is not a valid frame of the
	// job.
	Damaged struct {
		Conn   action.Conn
		Reason string
	}

	// Lost reports that a connection has ended. Cause is nil if it was closed in order. Silent is
	// the time for which nothing had been heard from the other end, if the connection has ended
	// because of that; else 0.
	Lost struct {
		Conn   action.Conn
		Cause  error
		Silent time.Duration
	}
)

// endpoint returns the addresses of the rank in the event.
func (e *Joined) endpoint() endpoint {
	return endpoint{instance: e.Join.Instance, inside: e.Inside, home: e.Home, from: e.From}
}

// Other events of the job.
type (
	// Expired reports the end of a timer.
	Expired struct {
		Timer action.Timer
		// Others is a hint for users if other gathering jobs may be meant for this one, else empty.
		// It is set for the timers Gathering and Notice.
		Others string
		// Links has the connections of the bridge, for the timer Measure.
		Links map[action.Conn]trunk.Link
	}

	// Another reports that a job of the same id and another key gathers too: a mistake of a user,
	// or a stranger.
	Another struct{}

	// Asked reports that the rank with a connection asks for a way between it and another Rank,
	// given by its number in the whole job.
	Asked struct {
		Conn action.Conn
		Rank uint32
	}

	// Moved reports how much the rank with a connection has sent over ways so far.
	Moved struct {
		Conn action.Conn
		Sent wire.Moved
	}

	// Opened is the kernel's answer to the last OpenWays. At has, for each way, the address at this
	// host where it begins, or an invalid one if it could not be opened. At is empty if no way was
	// opened. Err is nil if all were.
	Opened struct {
		At  []netip.AddrPort
		Err error
	}

	// Closed reports that the kernel forwards no more new connections for the job.
	Closed struct{}

	// HalfEnded is a launcher's report that its half, one cluster's processes of the job, has
	// ended.
	HalfEnded struct {
		Cluster, Reason string
		Code            int32
	}

	// HalfSuspended is a launcher's report that its half, the processes of Cluster, is suspended.
	HalfSuspended struct{ Cluster, Reason string }

	// HalfResumed is a launcher's report that its half, the processes of Cluster, runs again.
	HalfResumed struct{ Cluster string }

	// ClusterEnded reports that all processes of a cluster have ended.
	ClusterEnded struct{ Cluster string }

	// GiveUp ends the job before it runs. Its waiting ranks are refused with Code and Reason.
	GiveUp struct {
		Code   wire.RefuseCode
		Reason string
	}

	// Stop ends the job because its forwarder shuts down.
	Stop struct{ Reason string }

	// Release ends the links of a running job that may go on without this forwarder.
	Release struct{ Reason string }
)

// Events of a job of several hops.
type (
	// Offered reports a connection that another forwarder has opened. Join, Here and Number are
	// those that it has shown: a rank's Join, the index of this forwarder, and the number of the
	// connection. Ticket is the error of the Join's ticket; nil if it is valid or none is required.
	Offered struct {
		Conn         action.Conn
		Join         *wire.Join
		Here, Number int
		Ticket       error
		Link         trunk.Link
	}

	// ForwarderFrame reports a frame from another forwarder, over a connection that carries no
	// frames of the running job.
	ForwarderFrame struct {
		Conn   action.Conn
		Zipper int
		Type   wire.Type
		Body   []byte
		Room   bool // Room says that the bytes of a Join are charged to the forwarder's memory.
		Link   trunk.Link
	}

	// Spoiled reports that another forwarder has sent bytes that are not a valid frame, over a
	// connection that carries no frames of the running job.
	Spoiled struct {
		Conn   action.Conn
		Zipper int
		Reason string
	}

	// Crossed reports an event that the bridge to the forwarder with index Zipper must handle.
	Crossed struct {
		Zipper int
		Event  bridge.Event
	}

	// Reported is another forwarder's report whether it reaches a rank behind it.
	Reported struct {
		Zipper int
		State  wire.RailState
	}

	// ReportedLoss is the report of another forwarder, or of a rank, that a cluster is lost.
	ReportedLoss struct {
		Zipper int
		Loss   wire.Lost
	}

	// Unreached reports why a neighbour has not been reached so far.
	Unreached struct {
		Zipper int
		Reason string
	}
)

// Actions on connections, beside those of package action.
type (
	// Refuse refuses a connection that has not joined or that waits. The connection lingers.
	Refuse struct {
		action.Base
		Conn action.Conn
		Why  *handshake.Refused
	}

	// Place makes the rank at the other end of a connection, whose Join the job has accepted, wait
	// for the other ranks. Nothing is sent to it.
	Place struct {
		action.Base
		Conn action.Conn
	}

	// Tell sends a waiting rank a text about the ranks and links that are missing.
	Tell struct {
		action.Base
		Conn action.Conn
		Text string
	}

	// Start lets all waiting ranks into the job, which runs from now on.
	Start struct {
		action.Base
		Layout    wire.Layout
		Entries   []Entry
		Hosts     []string // Hosts has the name of each rank's host, by rank in the whole job.
		ClusterOf []int    // ClusterOf has the index of each rank's cluster, by rank in the whole job.
		// Via has the forwarder to which frames for each rank go, or -1 if the rank has a link
		// here. It is nil in a job of one hop.
		Via   []int
		Links int // Links is the number of ranks here and of bridges.
	}

	// Enter lets a returning rank into the running job.
	Enter struct {
		action.Base
		Layout wire.Layout
		Entry
	}

	// Run makes a connection carry the frames of a rank: one that has waited for the job to start,
	// or one that has returned to the running job.
	Run struct {
		action.Base
		Conn action.Conn
		Rank uint32
	}

	// Route makes the forwarder send all frames for a rank over a connection.
	Route struct {
		action.Base
		Rank uint32
		Conn action.Conn
	}

	// Unroute removes the route to a rank, so frames for it are dropped.
	Unroute struct {
		action.Base
		Rank uint32
	}

	// Widen makes room in a connection's queue for the frames that N ranks may be sent at once.
	Widen struct {
		action.Base
		Conn action.Conn
		N    int
	}

	// Bridged makes a connection that another forwarder has opened part of the job.
	Bridged struct {
		action.Base
		Conn   action.Conn
		Zipper int
	}
)

// Entry is the place of a rank in the running job: its number there, and the connection over which
// frames for it go.
type Entry struct {
	Conn action.Conn
	Rank uint32
	// Namesake says that a host of another cluster has the name of the rank's host.
	Namesake bool
}

// Other actions.
type (
	// Free releases bytes of Joins that were charged to the forwarder's memory.
	Free struct {
		action.Base
		Bytes int64
	}

	// OpenWays asks the kernel to forward connections between ranks. The event Opened reports the
	// result, and precedes the next OpenWays.
	OpenWays struct {
		action.Base
		Ways []Way
	}

	// CloseWays asks the kernel to forward no more new connections over the ways that begin at
	// these addresses. Last says that the event Closed must report when that is done.
	CloseWays struct {
		action.Base
		At   []netip.AddrPort
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

// Way is a way between ranks that the kernel opens: connections from the host From to At are
// forwarded to To.
type Way struct {
	From, At netip.Addr
	To       netip.AddrPort
}
