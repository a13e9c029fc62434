// Package report has what a forwarder tells of itself and of its jobs.
package report

import "time"

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

// Memory is what is kept of what came in, in bytes.
type Memory struct {
	Used  int64 `json:"used"`
	Limit int64 `json:"limit"`
}
