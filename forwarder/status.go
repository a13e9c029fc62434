package forwarder

import (
	"crypto/ed25519"
	"encoding/hex"
	"os"
	"slices"
	"time"

	"github.com/leidenzipper/zipper/forwarder/bridge"
	"github.com/leidenzipper/zipper/forwarder/job"
	"github.com/leidenzipper/zipper/forwarder/report"
	"github.com/leidenzipper/zipper/forwarder/trunk"
	"github.com/leidenzipper/zipper/internal/wire"
)

// These types are the reports of a forwarder about itself and its jobs.
type (
	Status        = report.Status
	JobStatus     = report.JobStatus
	ClusterStatus = report.ClusterStatus
	TrunkStatus   = report.TrunkStatus
	Totals        = report.Totals
	Memory        = report.Memory
	Summary       = report.Summary
	Traffic       = report.Traffic
)

// Status returns the present state of the forwarder and its jobs. Safe for concurrent use.
func (f *Forwarder) Status() Status {
	s, all := f.ownStatus()
	for _, r := range all {
		r.mu.Lock()
		s.Jobs = append(s.Jobs, r.status())
		r.mu.Unlock()
	}
	s.Totals = s.Totals.With(s.Jobs)
	s.Memory = Memory{Used: f.memory.Used(), Limit: f.memory.Limit()}
	return s
}

// ownStatus returns the forwarder's status without its jobs, and the jobs that have not ended.
func (f *Forwarder) ownStatus() (Status, []*runner) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Status{Protocol: wire.Version, PID: os.Getpid(), Config: f.cfg.File, Draining: f.drain.on, Started: f.born,
		Now: f.cfg.clock.Now(), Loops: f.cfg.Loops,
		Links: len(f.peers), Jobs: []JobStatus{}, Past: slices.Clone(f.past), Addresses: []string{}}
	if k := f.cfg.HostKey; k != nil {
		s.HostKey = wire.FormatHostKey([wire.PublicKeyLen]byte(k.Public().(ed25519.PublicKey)))
	}
	for _, l := range f.cfg.Listeners {
		s.Addresses = append(s.Addresses, l.Addr())
	}
	s.Totals = f.totals.With(nil)
	return s, f.jobs.InOrder()
}

// status returns the state of the job for the forwarder's Status. With the lock.
func (r *runner) status() JobStatus {
	v, g := r.job.View(), r.job.Gather()
	s := JobStatus{Job: r.id, Key: hex.EncodeToString(r.key[:8]), User: r.user, State: r.publicState(v.Reason),
		Level: g.Level().String(), Created: v.Created, Started: v.Started,
		Ranks: g.Ranks(), Joined: v.Live, Reason: v.Reason, Doors: v.Doors, LostLinks: v.LostLinks,
		BadFrames: v.BadFrames, Traffic: r.readTraffic()}
	begun := r.job.State() > job.Ready
	if !begun {
		s.Joined, s.Missing, s.Refused = g.Joined(), g.Missing(), g.Refusals()
	}
	links := 0
	for _, br := range v.Bridges {
		s.Forwarders, s.Trunks = append(s.Forwarders, br.Address), append(s.Trunks, r.trunk(br))
		links += len(br.Conns())
		s.QueuedBytes += s.Trunks[len(s.Trunks)-1].QueuedBytes
	}
	slices.Sort(s.Forwarders)
	if begun {
		s.Joined = max(0, s.Joined-links)
	}
	for _, c := range v.Routes {
		r.on(c, func(p *peer) { s.QueuedBytes += p.conn.Queued() })
	}
	s.Clusters, s.MoreClusters = r.clusterStatus()
	if r.plane != nil {
		s.PeakBytes = r.plane.Memory.Peak()
	}
	return s
}

// trunk returns the state of the link br to another forwarder. With the lock.
func (r *runner) trunk(br *bridge.Bridge) TrunkStatus {
	s := TrunkStatus{Forwarder: br.Address, Connections: len(br.Conns()), Lost: br.Lost()}
	r.on(br.First(), func(p *peer) {
		l := trunk.LinkOf(p.conn.Link())
		s.Carried, s.RoundTrip = l.Carried, float64(l.RoundTrip)/float64(time.Millisecond)
		s.Congestion = l.Congestion
	})
	for _, c := range br.Conns() {
		r.on(c, func(p *peer) { s.QueuedBytes += p.conn.Queued() })
	}
	if r.plane != nil {
		s.Blocked = r.plane.BlockedTo(br.Zipper).Seconds()
	}
	return s
}

// publicState returns the name of the job's state in Status; reason is why it has failed, or empty.
// A job that is ready still gathers, and a job that ends without a failure still runs.
func (r *runner) publicState(reason string) string {
	switch {
	case r.job.State() <= job.Ready:
		return "gathering"
	case reason != "":
		return "failed"
	}
	return "running"
}

// clusterStatus returns the state of the job's first clusters, and the number of further clusters.
// With the lock.
func (r *runner) clusterStatus() (list []ClusterStatus, more int) {
	clusters := r.job.Facts().Clusters
	more = max(0, len(clusters)-maxClusters)
	for i, c := range clusters[:len(clusters)-more] {
		host, origin := r.job.Gather().Origin(i)
		blocked := 0.0
		if r.plane != nil {
			blocked = r.plane.BlockedIn(i).Seconds()
		}
		list = append(list, ClusterStatus{Name: c.Name, Size: int(c.Size), Host: host, Origin: origin, Blocked: blocked})
	}
	return list, more
}

// readTraffic returns the traffic between clusters. Strangers decide how many clusters there are,
// so the list is bounded: with many clusters it has only the directions that were used, and of many
// such directions the greatest, and the rest as one entry. With the lock.
func (r *runner) readTraffic() []Traffic {
	if r.plane == nil {
		return []Traffic{}
	}
	return report.Bounded(r.plane.Traffic(report.AllDirections(len(r.job.Facts().Clusters))))
}
