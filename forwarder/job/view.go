package job

import (
	"time"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/bridge"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// State returns where the job is in its life.
func (j *Job) State() State { return j.state }

// Has reports whether the job has a cluster of that name.
func (j *Job) Has(cluster string) bool { return j.clusterIndex(cluster) >= 0 }

// Address returns what people know another forwarder by that the job has a bridge to.
func (j *Job) Address(zipper int) string { return j.links.bridges[zipper].Address }

// Awaits reports whether a connection that is dialled to another forwarder is still wanted.
func (j *Job) Awaits(zipper int) bool {
	br := j.links.bridges[zipper]
	return br.State() == bridge.Absent || br.Wanted()
}

// Connections returns those of a bridge that are in use.
func (j *Job) Connections(zipper int) []action.Conn { return j.links.bridges[zipper].Conns() }

// Gather returns the Joins of the job, to read.
func (j *Job) Gather() *handshake.Gather { return j.gather }

// Facts are what does not change of a job.
type Facts struct {
	Clusters []wire.Cluster
	Hops     bool          // Hops says that the job has several hops.
	GoesOn   bool          // GoesOn says that it outlives the loss of a link.
	Resumes  bool          // Resumes says that its ranks open lost links again because they have no others.
	Patience time.Duration // Patience is how long what is out of reach is waited for.
}

// Facts returns what does not change of the job.
func (j *Job) Facts() Facts {
	return Facts{j.clusters, j.links.several(), j.goesOn(), j.resumes(), j.patience()}
}

// View is what others may know of a job.
type View struct {
	Created, Started time.Time
	Live             int // Live counts the connections of the running job.
	Code             int32
	Reason           string // Reason is why it failed; empty: it has not.
	Doors            int    // Doors counts what the kernel passes on.
	LostLinks        int
	BadFrames        int
	Routes           []action.Conn    // Routes has the connection of each rank here.
	Bridges          []*bridge.Bridge // Bridges are those that have a link.
}

// View returns what others may know of the job now.
func (j *Job) View() View {
	v := View{Created: j.gathering.created, Started: j.started, Live: j.ranks.live,
		Code: j.result.code, Reason: j.result.reason, Doors: j.ways.open, LostLinks: j.losses.lost, BadFrames: j.losses.badFrames, Bridges: j.links.list()}
	for rank, c := range j.ranks.routes {
		if c != 0 && j.ranks.here(uint32(rank)) {
			v.Routes = append(v.Routes, c)
		}
	}
	return v
}

// Origins says for whom the first clusters run, for the log.
func (j *Job) Origins() (list []string) {
	for i, c := range j.clusters[:min(len(j.clusters), maxOrigins)] {
		host, origin := j.gather.Origin(i)
		list = append(list, wire.Printable(c.Name+" on "+host+" "+origin))
	}
	return list
}

// Missing says what keeps the job from being complete. besides says which other jobs gather that
// may be meant for this one.
func (j *Job) Missing(besides string) string { return j.gathering.missing(besides) }

// AnotherWay reports whether a Join to a meeting describes another way than those that wait there.
// A meeting is a job of two processes, which belong to two jobs (handshake.MeetingID). The process
// that waits does not know by which way the other one will come, and waits at one forwarder. The
// one that comes knows. If the way takes several forwarders its Join describes it; the one that
// waits is refused with that description, and joins again by that way.
func (j *Job) AnotherWay(join *wire.Join) bool {
	return j.state == Gathering && handshake.IsMeeting(j.id) && (!j.links.several()) != (len(join.Zippers) == 0)
}

// OpensAgain reports whether another forwarder opens the first connection of a link that it has
// while the job gathers.
func (j *Job) OpensAgain(join *wire.Join, number int) bool { return j.hops.opensAgain(join, number) }

// Name is what people know another forwarder of the job by.
func (j *Job) Name(zipper int) string { return j.links.name(zipper) }

// LinksOf is how many ranks of a job have a link to the forwarder with that index.
func LinksOf(j *wire.Join, here int) int {
	if len(j.Zippers) == 0 {
		return wire.Ranks(j.Layout)
	}
	n := 0
	for _, p := range j.Zippers[here].Ports {
		if int(p.Network) < len(j.Layout) { // else one without ranks
			n += int(j.Layout[p.Network].Size)
		}
	}
	return n
}
