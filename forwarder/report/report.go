// Package report has the reports of a forwarder about itself and its jobs.
package report

import (
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// Status is a snapshot of a forwarder and its jobs.
type Status struct {
	Protocol int `json:"protocol"` // the newest protocol version that the forwarder speaks
	PID      int `json:"pid"`      // the process id of the forwarder
	// the file that zipper reload causes it to read again
	Config string `json:"config,omitempty"`
	// whether it refuses new jobs because it is being drained
	Draining  bool      `json:"draining,omitempty"`
	Started   time.Time `json:"started"`
	Now       time.Time `json:"now"`
	Addresses []string  `json:"addresses"`
	// the forwarder's public key, in the form that users write; empty if it has no key
	HostKey string `json:"host_key"`
	Loops   int    `json:"loops"`
	// whether the kernel forwards connections between ranks if they exchange much
	NAT bool `json:"nat"`
	// the reason if it does not
	NATOff string `json:"nat_off,omitempty"`
	// the reason if the kernel could forward no connection when it was asked last
	NATFailure string `json:"nat_failure,omitempty"`

	Links int         `json:"links"`
	Jobs  []JobStatus `json:"jobs"` // the jobs that have not ended, by id
	Past  []Summary   `json:"past"` // the last ended jobs, oldest first
	// MoreJobs is the number of further jobs that are not in Jobs. It is 0 from Forwarder.Status,
	// which lists all; package monitor bounds the length of its answers.
	MoreJobs int `json:"more_jobs,omitempty"`
	// MorePast is the number of further jobs that are not in Past.
	MorePast int    `json:"more_past,omitempty"`
	Totals   Totals `json:"totals"`
	Memory   Memory `json:"memory"`
}

// JobStatus is the state of a job that has not ended.
type JobStatus struct {
	// the id; ID#2 for the second row of a job of several hops
	Job string `json:"job"`
	// the fingerprint of the key, 16 hexadecimal digits, which distinguishes jobs of one id
	Key     string    `json:"key"`
	User    string    `json:"user,omitempty"` // the user that the ticket of the job's first rank names
	State   string    `json:"state"`          // gathering, running or failed
	Level   string    `json:"level"`
	Created time.Time `json:"created"`
	// the time at which the job began to run, after its last join; zero while gathering
	Started      time.Time       `json:"started"`
	Clusters     []ClusterStatus `json:"clusters"` // the first clusters of the job
	MoreClusters int             `json:"more_clusters,omitempty"`
	Ranks        int             `json:"ranks"`
	// the number of ranks that have joined; once running, of those that have a link here
	Joined int `json:"joined"`
	// the missing ranks and links, while gathering
	Missing string `json:"missing,omitempty"`
	// the refused joins and their reasons, while gathering
	Refused string `json:"refused,omitempty"`
	// the reason of the failure, if failed
	Reason string        `json:"reason,omitempty"`
	Lost   []LostCluster `json:"lost,omitempty"` // the lost clusters, without which the job goes on
	// the forwarders with links to this one, in a job of several hops
	Forwarders []string      `json:"forwarders,omitempty"`
	Trunks     []TrunkStatus `json:"trunks,omitempty"` // the state of the links to Forwarders
	// Doors is the number of ports at which the kernel forwards new connections now.
	Doors int `json:"doors,omitempty"`
	// Ways is the number of times that a rank was told such a port.
	Ways int `json:"ways,omitempty"`
	// WaysUnused says that no rank has reported traffic over such ports for 20 s, for example
	// because a firewall drops forwarded connections.
	WaysUnused bool `json:"ways_unused,omitempty"`
	// Kernel is the traffic over connections that the kernel forwards. It is not in Traffic.
	Kernel    KernelTraffic `json:"kernel,omitzero"`
	LostLinks int           `json:"lost_links"` // the number of lost links that the job survived
	// the number of damaged or malformed frames; each ended its link
	BadFrames int `json:"bad_frames"`
	// the bytes that wait for destinations that do not accept them
	QueuedBytes int `json:"queued_bytes"`
	// the greatest number of bytes that the forwarder held for the job's links at one time
	PeakBytes int64     `json:"peak_bytes"`
	Traffic   []Traffic `json:"traffic"`
}

// KernelTraffic is the traffic over connections between ranks that the kernel forwards, as the
// ranks report it every second. The forwarder cannot verify it: it only bounds what a rank can have
// sent.
type KernelTraffic struct {
	Messages     uint64 `json:"messages"`
	PayloadBytes uint64 `json:"payload_bytes"`
}

// add adds more traffic; the largest number stays.
func (k *KernelTraffic) add(more KernelTraffic) {
	sum := wire.Moved{Messages: k.Messages, Bytes: k.PayloadBytes}.Plus(wire.Moved{Messages: more.Messages, Bytes: more.PayloadBytes})
	k.Messages, k.PayloadBytes = sum.Messages, sum.Bytes
}

// ClusterStatus is the state of the ranks of one cluster of a job.
type ClusterStatus struct {
	Name string `json:"name"`
	Size int    `json:"size"`
	Host string `json:"host,omitempty"` // the name of the host of the cluster's first rank
	// Arch is the architecture of that rank, as reported by it: x86_64 or aarch64.
	Arch string `json:"arch,omitempty"`
	// Origin names the user of the first rank, as reported by it: user=NAME, and SCHEDULER=ID in a
	// batch job.
	Origin string `json:"origin,omitempty"`
	// the seconds for which its links had bytes queued, added up
	Blocked float64 `json:"blocked_seconds"`
}

// LostCluster is a cluster that a job has lost, and without which it goes on.
type LostCluster struct {
	Cluster string    `json:"cluster"`
	At      time.Time `json:"at"` // the time at which this forwarder learned of the loss
	// the reason; empty beyond the first clusters
	Reason string `json:"reason,omitempty"`
}

// TrunkStatus is the state of the link to another forwarder.
type TrunkStatus struct {
	Forwarder string `json:"forwarder"`
	// the number of connections in use; 0 if the link is cut
	Connections int `json:"connections"`
	Lost        int `json:"lost"` // the number of connections of the link that have been lost so far
	// the shortest round trip in milliseconds; 0 if unknown
	RoundTrip float64 `json:"round_trip_ms"`
	// the congestion control of the first connection: "cubic", "bbr", …
	Congestion string `json:"congestion,omitempty"`
	// whether a command, such as ssh, carries the connections
	Carried     bool `json:"carried,omitempty"`
	QueuedBytes int  `json:"queued_bytes"`
	// the seconds for which its connections had bytes queued, added up
	Blocked float64 `json:"blocked_seconds"`
}

// Memory has the number of bytes of memory that a forwarder holds for its links, and the greatest
// number that it may hold.
type Memory struct {
	Used  int64 `json:"used"`
	Limit int64 `json:"limit"`
}
