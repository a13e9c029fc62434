package forwarder

import (
	"crypto/ed25519"
	"encoding/hex"
	"os"
	"slices"
	"time"

	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/wire"
)

// Status is what a forwarder is doing.
type Status struct {
	Protocol  int         `json:"protocol"` // newest version that it speaks
	PID       int         `json:"pid"`
	Config    string      `json:"config,omitempty"`   // the file that zipper reload has it read again
	Draining  bool        `json:"draining,omitempty"` // it takes no new jobs
	Started   time.Time   `json:"started"`
	Now       time.Time   `json:"now"`
	Addresses []string    `json:"addresses"`
	HostKey   string      `json:"host_key"` // as people write it; empty: it has none
	Loops     int         `json:"loops"`
	Links     int         `json:"links"`
	Jobs      []JobStatus `json:"jobs"` // by id
	Past      []Summary   `json:"past"` // the last ended jobs, oldest first
	// MoreJobs is how many further jobs are not in Jobs. It is 0 from Forwarder.Status, which lists
	// all; package monitor bounds the length of its answers.
	MoreJobs int    `json:"more_jobs,omitempty"`
	MorePast int    `json:"more_past,omitempty"` // MorePast is the same for Past.
	Totals   Totals `json:"totals"`
	Memory   Memory `json:"memory"`
}

// JobStatus is one job that has not ended.
type JobStatus struct {
	Job          string          `json:"job"`            // its id; ID#2 for the second row of one of several hops
	Key          string          `json:"key"`            // tells those of the same id apart, 16 hexadecimal digits
	User         string          `json:"user,omitempty"` // whom its ticket names
	State        string          `json:"state"`          // gathering, running or failed
	Level        string          `json:"level"`
	Created      time.Time       `json:"created"`
	Started      time.Time       `json:"started"`  // zero while gathering
	Clusters     []ClusterStatus `json:"clusters"` // the first ones
	MoreClusters int             `json:"more_clusters,omitempty"`
	Ranks        int             `json:"ranks"`
	Joined       int             `json:"joined"`               // links that are there
	Missing      string          `json:"missing,omitempty"`    // while gathering
	Refused      string          `json:"refused,omitempty"`    // while gathering: who was not let in, and why
	Reason       string          `json:"reason,omitempty"`     // when failed
	Forwarders   []string        `json:"forwarders,omitempty"` // with links to this one, in a job of several hops
	Trunks       []TrunkStatus   `json:"trunks,omitempty"`     // these links
	// ports that the kernel passes on; that traffic is not counted
	Doors       int       `json:"doors,omitempty"`
	LostLinks   int       `json:"lost_links"`   // that the job outlived
	BadFrames   int       `json:"bad_frames"`   // damaged, or none at all: each ended its link
	QueuedBytes int       `json:"queued_bytes"` // waiting for destinations that do not take them
	PeakBytes   int64     `json:"peak_bytes"`   // the most that was kept of what its links sent
	Traffic     []Traffic `json:"traffic"`
}

// ClusterStatus is one cluster of a job.
type ClusterStatus struct {
	Name string `json:"name"`
	Size int    `json:"size"`
	Host string `json:"host,omitempty"` // of its first rank
	// for whom that runs, as it says: user=NAME, and SCHEDULER=ID of a batch job
	Origin  string  `json:"origin,omitempty"`
	Blocked float64 `json:"blocked_seconds"` // for how long its links did not take what there was, added up
}

// TrunkStatus is the link to another forwarder.
type TrunkStatus struct {
	Forwarder   string  `json:"forwarder"`
	Connections int     `json:"connections"`          // that are in use; 0: it is cut
	Lost        int     `json:"lost"`                 // connections so far
	RoundTrip   float64 `json:"round_trip_ms"`        // the shortest; 0: unknown
	Congestion  string  `json:"congestion,omitempty"` // control of the first connection: "cubic", "bbr", …
	Carried     bool    `json:"carried,omitempty"`    // by a command, such as ssh
	QueuedBytes int     `json:"queued_bytes"`
	Blocked     float64 `json:"blocked_seconds"` // for how long it did not take what there was
}

// Status tells what is going on now. Safe for concurrent use.
func (f *Forwarder) Status() Status {
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
	for _, b := range f.jobs.inOrder() {
		s.Jobs = append(s.Jobs, b.status())
	}
	s.Totals = f.totals.with(s.Jobs)
	s.Memory = Memory{f.memory.Used(), f.memory.Limit()}
	return s
}

func (j *job) status() JobStatus {
	s := JobStatus{Job: j.id, Key: hex.EncodeToString(j.key[:8]), User: j.user, State: j.publicState(),
		Level: j.gather.Level().String(), Created: j.created, Started: j.started,
		Ranks: j.gather.Ranks(), Joined: j.live, Reason: j.reason, Doors: j.doors, LostLinks: j.losses,
		BadFrames: j.badFrames, Traffic: j.readTraffic()}
	if j.state <= ready {
		s.Joined, s.Missing, s.Refused = j.gather.Joined(), j.gather.Missing(), j.gather.Refusals()
	}
	if j.hops != nil {
		links := 0
		for _, br := range j.bridges() {
			s.Forwarders, s.Trunks = append(s.Forwarders, br.addr), append(s.Trunks, br.status())
			links += len(br.conns)
			s.QueuedBytes += s.Trunks[len(s.Trunks)-1].QueuedBytes
		}
		slices.Sort(s.Forwarders)
		if j.state > ready {
			s.Joined = max(0, s.Joined-links)
		}
	}
	for i := range j.table {
		if c := j.table[i].Load(); c != nil && (j.via == nil || j.via[i] == nil) {
			s.QueuedBytes += c.Queued()
		}
	}
	s.Clusters, s.MoreClusters = j.clusterStatus()
	if j.memory != nil {
		s.PeakBytes = j.memory.Peak()
	}
	return s
}

// status shows the trunk. With f.mu.
func (br *bridge) status() TrunkStatus {
	s := TrunkStatus{Forwarder: br.addr, Connections: len(br.conns), Lost: br.trunk.lost}
	if p := br.first(); p != nil {
		s.Carried = p.carried()
		if l, ok := p.conn.Link().(transport.Distant); ok {
			path, _ := l.Path()
			s.RoundTrip, s.Congestion = float64(path.RoundTrip)/float64(time.Millisecond), path.Congestion
		}
		for _, p := range br.conns {
			s.QueuedBytes += p.conn.Queued()
		}
	}
	s.Blocked = time.Duration(br.blocked.Load()).Seconds()
	return s
}

// publicState is the job's state as Status has it: whoever waits has not begun, and what ends for
// no reason is still the job that ran.
func (j *job) publicState() string {
	switch {
	case j.state <= ready:
		return "gathering"
	case j.reason != "":
		return "failed"
	}
	return "running"
}
