package report

import (
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// limitedFrom is the part of the time above which full links limit a job, 5 %.
const limitedFrom = 0.05

// Limiting returns the cluster or the other forwarder whose links were full for the greatest part
// of the time between two moments, d apart, and that part. It returns an empty name if the part is
// at most 5 %.
func Limiting(now, before *JobStatus, d time.Duration) (who string, part float64) {
	part = limitedFrom
	consider := func(name string, now, then float64, links int) {
		if p := (now - then) / (d.Seconds() * float64(max(1, links))); d > 0 && p > part {
			who, part = name, min(1, p)
		}
	}
	for i, c := range now.Clusters {
		then := 0.0
		if i < len(before.Clusters) {
			then = before.Clusters[i].Blocked
		}
		consider("cluster "+c.Name, c.Blocked, then, c.Size)
	}
	for i, t := range now.Trunks {
		then := 0.0
		if i < len(before.Trunks) {
			then = before.Trunks[i].Blocked
		}
		consider("forwarder "+t.Forwarder, t.Blocked, then, t.Connections)
	}
	return who, part
}

// Summary is the result of a job that has run. It is also the job's record for accounts (package
// account).
type Summary struct {
	Job string `json:"job"`
	// the fingerprint of the key, which distinguishes jobs of one id
	Key      string          `json:"key"`
	User     string          `json:"user,omitempty"` // the user that the ticket of the job's first rank names
	Level    string          `json:"level"`
	Ranks    int             `json:"ranks"`
	Clusters []ClusterStatus `json:"clusters"` // the first clusters of the job
	Created  time.Time       `json:"created"`  // the time at which the first rank joined
	// the time at which the job began to run, after its last join
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	OK      bool      `json:"ok"` // whether the job ended well: all ranks that were not lost have sent Bye
	Code    int32     `json:"code"`
	Reason  string    `json:"reason,omitempty"`
	// the lost clusters, without which the job continued
	Lost     []LostCluster `json:"lost,omitempty"`
	Messages uint64        `json:"messages"`
	Bytes    uint64        `json:"payload_bytes"`
	// the greatest number of bytes that the forwarder held for the job's links at one time
	PeakBytes int64 `json:"peak_bytes"`
	LostLinks int   `json:"lost_links"`
	BadFrames int   `json:"bad_frames"`
	// LimitedBy names the cluster or forwarder whose links were full for the greatest part of the
	// time.
	LimitedBy   string  `json:"limited_by,omitempty"`
	LimitedPart float64 `json:"limited_part,omitempty"` // the part of the time for LimitedBy, 0 to 1
	// Traffic has the directions between different clusters, and those inside a cluster that were
	// used, in the order of the clusters. With many clusters it has only used ones, and of many
	// used ones the greatest (Bounded).
	Traffic []Traffic `json:"traffic"`
	// Kernel is the traffic over connections that the kernel forwards. It is not in the other
	// counts.
	Kernel KernelTraffic `json:"kernel,omitzero"`

	key [wire.PublicKeyLen]byte // key is the public key of the job.
}

// Summarize returns the summary of a job that has ended with a code, from its last status.
func Summarize(last *JobStatus, key [wire.PublicKeyLen]byte, code int32, now time.Time) Summary {
	s := Summary{Job: last.Job, Key: last.Key, User: last.User, Level: last.Level, Ranks: last.Ranks, Clusters: last.Clusters,
		Created: last.Created, Started: last.Started, Ended: now, OK: last.Reason == "", Code: code, Reason: last.Reason, Lost: last.Lost,
		PeakBytes: last.PeakBytes, LostLinks: last.LostLinks, BadFrames: last.BadFrames, Traffic: last.Traffic, Kernel: last.Kernel,
		key: key}
	for i := range s.Traffic {
		s.Messages += s.Traffic[i].Messages
		s.Bytes += s.Traffic[i].PayloadBytes
	}
	if who, part := Limiting(last, &JobStatus{}, now.Sub(last.Started)); who != "" {
		s.LimitedBy, s.LimitedPart = who, part
	}
	return s
}

// Past has the summaries of the last keepSummaries jobs that have ended, oldest first.
type Past []Summary

// keepSummaries is the number of ended jobs in Status.
const keepSummaries = 32

// Add adds the summary of a job that has ended.
func (past *Past) Add(s Summary) {
	if *past = append(*past, s); len(*past) > keepSummaries {
		*past = append((*past)[:0], (*past)[1:]...)
	}
}

// Last returns the newest summary of the job that a Join is for, or nil.
func (past Past) Last(j *wire.Join) *Summary {
	for i := len(past) - 1; i >= 0; i-- {
		if s := &past[i]; s.Job == j.Job && s.key == j.PublicKey {
			return s
		}
	}
	return nil
}
