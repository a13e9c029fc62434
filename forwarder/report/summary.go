package report

import (
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// limitedFrom: a job is said to be limited by links that were full for more than this part of the
// time, 5 %.
const limitedFrom = 0.05

// Limiting says who took least of what there was between two moments, d apart: a cluster, or
// another forwarder; and for which part of the time its links were full. Below 5 % it is nobody.
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

// Summary tells what became of a job. It is also its record for accounts (package account).
type Summary struct {
	Job       string          `json:"job"`
	Key       string          `json:"key"`            // tells those of the same id apart
	User      string          `json:"user,omitempty"` // whom its ticket names
	Level     string          `json:"level"`
	Ranks     int             `json:"ranks"`
	Clusters  []ClusterStatus `json:"clusters"` // the first ones
	Created   time.Time       `json:"created"`  // first rank joined
	Started   time.Time       `json:"started"`  // last rank joined; zero if that never happened
	Ended     time.Time       `json:"ended"`
	OK        bool            `json:"ok"` // every rank said Bye
	Code      int32           `json:"code"`
	Reason    string          `json:"reason,omitempty"`
	Messages  uint64          `json:"messages"`
	Bytes     uint64          `json:"payload_bytes"`
	PeakBytes int64           `json:"peak_bytes"` // the most that was kept of what its links sent
	LostLinks int             `json:"lost_links"`
	BadFrames int             `json:"bad_frames"`
	// whose links were full for the greatest part of the time
	LimitedBy   string  `json:"limited_by,omitempty"`
	LimitedPart float64 `json:"limited_part,omitempty"` // 0 to 1
	// directions between different clusters first to last, then others that were used
	Traffic []Traffic `json:"traffic"`

	key [wire.PublicKeyLen]byte // key is the job's.
}

// Summarize returns the summary of a job whose last status is known and that has ended with a code.
func Summarize(last *JobStatus, key [wire.PublicKeyLen]byte, code int32, now time.Time) Summary {
	s := Summary{Job: last.Job, Key: last.Key, User: last.User, Level: last.Level, Ranks: last.Ranks, Clusters: last.Clusters,
		Created: last.Created, Started: last.Started, Ended: now, OK: last.Reason == "", Code: code, Reason: last.Reason,
		PeakBytes: last.PeakBytes, LostLinks: last.LostLinks, BadFrames: last.BadFrames, Traffic: last.Traffic, key: key}
	for i := range s.Traffic {
		s.Messages += s.Traffic[i].Messages
		s.Bytes += s.Traffic[i].PayloadBytes
	}
	if who, part := Limiting(last, &JobStatus{}, now.Sub(last.Started)); who != "" {
		s.LimitedBy, s.LimitedPart = who, part
	}
	return s
}

// Last returns the last summary, oldest first, of the job that a Join is for; nil: there is none.
func Last(past []Summary, j *wire.Join) *Summary {
	for i := len(past) - 1; i >= 0; i-- {
		if s := &past[i]; s.Job == j.Job && s.key == j.PublicKey {
			return s
		}
	}
	return nil
}
