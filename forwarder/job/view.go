package job

import (
	"slices"
	"time"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/bridge"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// State returns the present state of the job, such as Gathering or Running.
func (j *Job) State() State { return j.state }

// Has reports whether one of the job's clusters has the given name.
func (j *Job) Has(cluster string) bool { return j.clusterIndex(cluster) >= 0 }

// Address returns the address, as users know it, of the forwarder with index zipper, to which the
// job must have a bridge.
func (j *Job) Address(zipper int) string { return j.links.bridges[zipper].Address }

// Awaits reports whether the job still wants a connection, which is being dialled, to the forwarder
// with index zipper.
func (j *Job) Awaits(zipper int) bool {
	br := j.links.bridges[zipper]
	return br.State() == bridge.Absent || br.Wanted()
}

// Connections returns the connections to the forwarder with index zipper that carry frames of the
// job.
func (j *Job) Connections(zipper int) []action.Conn { return j.links.bridges[zipper].Conns() }

// Gather returns the Joins that the job has gathered. The caller must not change them.
func (j *Job) Gather() *handshake.Gather { return j.gather }

// Facts has the properties of a job that do not change.
type Facts struct {
	Clusters     []wire.Cluster
	Hops         bool // Hops says that frames of the job may pass through several forwarders.
	SurvivesLoss bool // SurvivesLoss says that the job survives the loss of a link.
	Resumes      bool // Resumes says that ranks reopen lost links because they have no others.
	Outlives     bool // Outlives says that the job continues after a cluster is lost.
	// Patience is the time for which the job waits for ranks and links that are out of reach.
	Patience time.Duration
}

// Facts returns the properties of the job that do not change.
func (j *Job) Facts() Facts {
	return Facts{j.clusters, j.links.several(), j.survivesLoss(), j.resumes(), j.outlives(), j.patience()}
}

// View is a snapshot of the state of a job.
type View struct {
	Created, Started time.Time
	Live             int // Live is the number of connections that carry frames of the running job.
	Code             int32
	Reason           string // Reason says why the job failed; empty if it has not failed.
	// Doors is the number of ports of this host whose connections the kernel forwards for the job.
	Doors int
	// Ways is the number of times that a rank was told such a port.
	Ways int
	// Unused says that no rank has reported traffic over such ports for unusedTime.
	Unused    bool
	Moved     wire.Moved // Moved is the traffic over them, as the ranks report it.
	LostLinks int
	BadFrames int
	// Routes has the connections of the ranks that have a link here and have not left, in ascending
	// order of the ranks.
	Routes  []action.Conn
	Deaths  []Death          // Deaths has the lost clusters, in the order of their losses.
	Bridges []*bridge.Bridge // Bridges has the links to other forwarders, also those that have ended.
}

// View returns a snapshot of the job's state.
func (j *Job) View() View {
	v := View{Created: j.gathering.created, Started: j.started, Live: j.ranks.live,
		Code: j.result.code, Reason: j.result.reason, Doors: j.ways.count(), Ways: j.ways.given,
		Unused: j.ways.unused, Moved: j.ways.total(), LostLinks: j.losses.lost, BadFrames: j.losses.badFrames,
		Deaths: slices.Clone(j.dead), Bridges: j.links.ever()}
	for rank, c := range j.ranks.routes {
		if c != 0 && j.ranks.here(uint32(rank)) {
			v.Routes = append(v.Routes, c)
		}
	}
	return v
}

// Origins returns texts for the log that name the user and host of each of the first clusters.
func (j *Job) Origins() (list []string) {
	for i, c := range j.clusters[:min(len(j.clusters), maxOrigins)] {
		host, origin := j.gather.Origin(i)
		list = append(list, wire.Printable(c.Name+" on "+host+" "+origin))
	}
	return list
}

// Missing returns a text for users that names the ranks and links which the job still needs to
// become complete. others is a hint about other gathering jobs.
func (j *Job) Missing(others string) string { return j.gathering.missing(others) }

// PathDiffers reports whether a Join to a meeting describes another way than the Joins that wait
// there. A meeting is a job of two processes that belong to two jobs (handshake.MeetingID). The
// waiting process waits at one forwarder, because it does not know the way that the arriving
// process takes. The Join of the arriving process describes the way if that takes several
// forwarders. The waiting process is refused with that description, and joins again by that way.
func (j *Job) PathDiffers(join *wire.Join) bool {
	return j.state == Gathering && handshake.IsMeeting(j.id) && (!j.links.several()) != (len(join.Zippers) == 0)
}

// Reopens reports whether another forwarder, which shows a Join and the number of its
// connection, reopens the first connection of its link while the job gathers.
func (j *Job) Reopens(join *wire.Join, number int) bool { return j.hops.reopens(join, number) }

// Name returns the name for users of the forwarder with index zipper in the job.
func (j *Job) Name(zipper int) string { return j.links.name(zipper) }

// LinksOf returns the number of ranks of a job that have a link to the forwarder with index here.
func LinksOf(j *wire.Join, here int) int {
	if len(j.Zippers) == 0 {
		return wire.Ranks(j.Layout)
	}
	n := 0
	for _, p := range j.Zippers[here].Ports {
		if int(p.Network) < len(j.Layout) { // other networks have no ranks
			n += int(j.Layout[p.Network].Size)
		}
	}
	return n
}
