// Package jobreport makes the status of one job, for the forwarder's status page and the job's
// summary, of its state machine, its table of routes and its connections.
package jobreport

import (
	"slices"
	"time"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/bridge"
	"github.com/leidenzipper/zipper/forwarder/job"
	"github.com/leidenzipper/zipper/forwarder/plane"
	"github.com/leidenzipper/zipper/forwarder/report"
	"github.com/leidenzipper/zipper/forwarder/trunk"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Connections are the connections of a job. Package forwarder implements it.
type Connections interface {
	// Queued returns the number of bytes that wait to be written to a connection; 0 if it has
	// ended.
	Queued(x action.Conn) int
	// Link returns the properties of a connection. ok is false if it has ended.
	Link(x action.Conn) (l trunk.Link, ok bool)
}

// Status returns the state of job j, apart from its id, key and user. pl is its plane, or nil until
// it runs. The caller holds the job's lock.
func Status(j *job.Job, pl *plane.Plane, conns Connections) report.JobStatus {
	v, g := j.View(), j.Gather()
	s := report.JobStatus{State: stateName(j.State(), v.Reason), Level: g.Level().String(), Created: v.Created,
		Started: v.Started, Ranks: g.Ranks(), Joined: v.Live, Reason: v.Reason, Doors: v.Doors, Ways: v.Ways,
		WaysUnused: v.Unused, LostLinks: v.LostLinks,
		Kernel:    report.KernelTraffic{Messages: v.Moved.Messages, PayloadBytes: v.Moved.Bytes},
		BadFrames: v.BadFrames, Traffic: traffic(j, pl)}
	begun := j.State() > job.Gathering
	if !begun {
		s.Joined, s.Missing, s.Refused = g.Joined(), g.Missing(), g.Refusals()
	}
	links := 0
	for _, br := range v.Bridges {
		s.Forwarders, s.Trunks = append(s.Forwarders, br.Address), append(s.Trunks, trunkStatus(br, pl, conns))
		links += len(br.Conns())
		s.QueuedBytes += s.Trunks[len(s.Trunks)-1].QueuedBytes
	}
	slices.Sort(s.Forwarders)
	s.Lost = lost(j, v.Deaths)
	if begun {
		s.Joined = max(0, s.Joined-links)
	}
	for _, x := range v.Routes {
		s.QueuedBytes += conns.Queued(x)
	}
	s.Clusters, s.MoreClusters = clusters(j, pl)
	if pl != nil {
		s.PeakBytes = pl.Memory.Peak()
	}
	return s
}

// lost returns the lost clusters of the job, of which the first MaxClusters have a reason.
func lost(j *job.Job, deaths []job.Death) (list []report.LostCluster) {
	for i, d := range deaths {
		l := report.LostCluster{Cluster: j.Facts().Clusters[d.Cluster].Name, At: d.At}
		if i < MaxClusters {
			l.Reason = d.Reason
		}
		list = append(list, l)
	}
	return list
}

// trunkStatus returns the state of the link br to another forwarder.
func trunkStatus(br *bridge.Bridge, pl *plane.Plane, conns Connections) report.TrunkStatus {
	s := report.TrunkStatus{Forwarder: br.Address, Connections: len(br.Conns()), Lost: br.Lost()}
	if l, ok := conns.Link(br.First()); ok {
		s.Carried, s.RoundTrip = l.Carried, float64(l.RoundTrip)/float64(time.Millisecond)
		s.Congestion = l.Congestion
	}
	for _, x := range br.Conns() {
		s.QueuedBytes += conns.Queued(x)
	}
	if pl != nil {
		s.Blocked = pl.BlockedTo(br.Zipper).Seconds()
	}
	return s
}

// stateName returns the name of a job's state in reports; reason is why it has failed, or empty. A
// job that ends without a failure still runs.
func stateName(s job.State, reason string) string {
	switch {
	case s == job.Gathering:
		return "gathering"
	case reason != "":
		return "failed"
	}
	return "running"
}

// clusters returns the state of the job's first clusters, and the number of further clusters.
func clusters(j *job.Job, pl *plane.Plane) (list []report.ClusterStatus, more int) {
	all := j.Facts().Clusters
	more = max(0, len(all)-MaxClusters)
	for i, c := range all[:len(all)-more] {
		host, origin := j.Gather().Origin(i)
		origin, arch := wire.CutArch(origin)
		blocked := 0.0
		if pl != nil {
			blocked = pl.BlockedIn(i).Seconds()
		}
		list = append(list, report.ClusterStatus{Name: c.Name, Size: int(c.Size), Host: host, Arch: arch, Origin: origin,
			Blocked: blocked})
	}
	return list, more
}

// traffic returns the traffic between clusters. Strangers decide how many clusters there are, so
// the list is bounded: with many clusters it has only the directions that were used, and of many
// such directions the greatest, and the rest as one entry.
func traffic(j *job.Job, pl *plane.Plane) []report.Traffic {
	if pl == nil {
		return []report.Traffic{}
	}
	return report.Bounded(pl.Traffic(report.AllDirections(len(j.Facts().Clusters))))
}
