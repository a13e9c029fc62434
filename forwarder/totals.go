package forwarder

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/leidenzipper/zipper/forwarder/relay"
	"github.com/leidenzipper/zipper/wire"
)

// Totals are of all that a forwarder has done since it started: they only grow.
type Totals struct {
	Links      uint64            `json:"links"`            // that came in, or were opened
	Refused    map[string]uint64 `json:"refused"`          // joins, by why (wire.RefuseCode)
	OK         uint64            `json:"jobs_ok"`          // jobs that ended well
	Failed     uint64            `json:"jobs_failed"`      // or not
	Incomplete uint64            `json:"jobs_incomplete"`  // or never began
	LostLinks  uint64            `json:"lost_links"`       // that jobs outlived
	BadFrames  uint64            `json:"bad_frames"`       // damaged, or none at all
	LostTrunks uint64            `json:"lost_connections"` // to other forwarders
	Internal   uint64            `json:"internal_errors"`  // illegal transitions, each of which ended its job
	Traffic    Traffic           `json:"traffic"`          // from and to are empty
}

// Memory is what is kept of what came in, in bytes.
type Memory struct {
	Used  int64 `json:"used"`
	Limit int64 `json:"limit"`
}

// newTotals has a count for each reason, so that one is there before it is needed.
func newTotals() Totals {
	t := Totals{Refused: map[string]uint64{}}
	for c := wire.RefuseMalformed; c <= wire.RefuseFull; c++ {
		t.Refused[c.String()] = 0
	}
	return t
}

// refuse counts a refusal. Peers say codes, too: what is none has one name. With f.mu.
func (t *Totals) refuse(c wire.RefuseCode) {
	name := c.String()
	if _, ok := t.Refused[name]; !ok {
		name = "other"
	}
	t.Refused[name]++
}

// over adds a job that has ended. With f.mu.
func (t *Totals) over(j *JobStatus) {
	switch {
	case j.Reason == "":
		t.OK++
	default:
		t.Failed++
	}
	t.add(j)
}

func (t *Totals) add(j *JobStatus) {
	t.LostLinks += uint64(j.LostLinks)
	t.BadFrames += uint64(j.BadFrames)
	for i := range j.Trunks {
		t.LostTrunks += uint64(j.Trunks[i].Lost)
	}
	for i := range j.Traffic {
		t.Traffic.add(&j.Traffic[i])
	}
}

// with adds the jobs that have not ended.
func (t Totals) with(jobs []JobStatus) Totals {
	t.Refused = maps.Clone(t.Refused)
	for i := range jobs {
		t.add(&jobs[i])
	}
	return t
}

// observe tells a meter, if anybody wants to know.
func observe(m relay.Observer, d time.Duration) {
	if m != nil {
		m.Observe(d.Seconds())
	}
}

// blockedIn is for how long the links of a cluster's ranks did not take what there was, in seconds.
func (j *job) blockedIn(cluster int) float64 {
	if j.blocked == nil {
		return 0
	}
	return time.Duration(j.blocked[cluster].Load()).Seconds()
}

// clusterStatus shows the first clusters, and says how many more there are. With f.mu.
func (j *job) clusterStatus() (list []ClusterStatus, more int) {
	more = max(0, len(j.clusters)-maxClusters)
	for i, c := range j.clusters[:len(j.clusters)-more] {
		host, origin := j.gather.Origin(i)
		list = append(list, ClusterStatus{c.Name, int(c.Size), host, origin, j.blockedIn(i)})
	}
	return list, more
}

// origins says for whom the clusters run, for the log.
func (j *job) origins() (list []string) {
	clusters, _ := j.clusterStatus()
	for _, c := range clusters {
		list = append(list, wire.Printable(c.Name+" on "+c.Host+" "+c.Origin))
	}
	return list
}

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

	key [wire.PublicKeyLen]byte
}

// summary is of a job whose last status is known. With f.mu.
func (j *job) summary(last *JobStatus, now time.Time) Summary {
	s := Summary{Job: j.id, Key: last.Key, User: j.user, Level: last.Level, Ranks: last.Ranks, Clusters: last.Clusters,
		Created: j.created, Started: j.started, Ended: now, OK: j.reason == "", Code: j.code, Reason: j.reason,
		PeakBytes: last.PeakBytes, LostLinks: last.LostLinks, BadFrames: last.BadFrames, Traffic: last.Traffic,
		key: j.key}
	for i := range s.Traffic {
		s.Messages += s.Traffic[i].Messages
		s.Bytes += s.Traffic[i].PayloadBytes
	}
	if who, part := Limiting(last, &JobStatus{}, now.Sub(j.started)); who != "" {
		s.LimitedBy, s.LimitedPart = who, part
	}
	return s
}

// Traffic is what went from the ranks of one cluster to those of another.
type Traffic struct {
	From         string `json:"from"`
	To           string `json:"to"`
	Messages     uint64 `json:"messages"`      // Eager and RTS frames
	PayloadBytes uint64 `json:"payload_bytes"` // the programs' data
	HeaderBytes  uint64 `json:"header_bytes"`  // everything else
	Frames       uint64 `json:"frames"`
	ResentFrames uint64 `json:"resent_frames"` // of these: sent before, over a link that was lost
	PassedBytes  uint64 `json:"passed_bytes"`  // of the data: sent without a copy (over verbs, or through pipes)
	PlacedBytes  uint64 `json:"placed_bytes"`  // of these: written straight into the receiving program's memory
}

// readTraffic is bounded, since strangers say how many clusters there are: of many clusters only
// the directions that were used are told, and of many such the greatest, and the rest together.
func (j *job) readTraffic() []Traffic {
	t := []Traffic{}
	if j.counts == nil {
		return t
	}
	all := len(j.clusters)*len(j.clusters) <= maxDirections
	for from := range j.clusters {
		for to := range j.clusters {
			c := j.counts.Read(from, to)
			if from != to && all || c.Frames > 0 {
				t = append(t, Traffic{j.clusters[from].Name, j.clusters[to].Name, c.Messages, c.Payload,
					c.Header, c.Frames, c.Again, c.Passed, c.Placed})
			}
		}
	}
	if len(t) <= maxDirections {
		return t
	}
	slices.SortStableFunc(t, func(a, b Traffic) int { return cmp.Compare(b.PayloadBytes, a.PayloadBytes) })
	rest := Traffic{From: others, To: others}
	for _, o := range t[maxDirections:] {
		rest.add(&o)
	}
	return append(t[:maxDirections], rest)
}

// others stands for clusters that are not told one by one. Clusters may have that name, too.
const others = "(others)"

func (t *Traffic) add(o *Traffic) {
	t.Messages += o.Messages
	t.PayloadBytes += o.PayloadBytes
	t.HeaderBytes += o.HeaderBytes
	t.Frames += o.Frames
	t.ResentFrames += o.ResentFrames
	t.PassedBytes += o.PassedBytes
	t.PlacedBytes += o.PlacedBytes
}
