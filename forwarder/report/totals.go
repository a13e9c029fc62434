package report

import (
	"maps"

	"github.com/leidenzipper/zipper/internal/wire"
)

// Totals counts the events of a forwarder since its start. The counts only grow.
type Totals struct {
	Links uint64 `json:"links"` // the links that were accepted or dialled
	// the refused joins by reason (wire.RefuseCode)
	Refused    map[string]uint64 `json:"refused"`
	OK         uint64            `json:"jobs_ok"`         // the jobs that ended without failure
	Failed     uint64            `json:"jobs_failed"`     // the jobs that failed
	Incomplete uint64            `json:"jobs_incomplete"` // the jobs that ended before they ran
	LostLinks  uint64            `json:"lost_links"`      // the lost links that jobs survived
	Lost       uint64            `json:"lost_clusters"`   // the lost clusters that jobs survived
	// the damaged or malformed frames, each of which ended its link
	BadFrames uint64 `json:"bad_frames"`
	// the lost connections to other forwarders
	LostTrunks uint64 `json:"lost_connections"`
	// the internal errors, such as illegal transitions, each of which ended a job or a connection
	Internal uint64 `json:"internal_errors"`
	// the traffic of all jobs; From and To are empty
	Traffic Traffic `json:"traffic"`
	// the traffic of all jobs over connections that the kernel forwards
	Kernel KernelTraffic `json:"kernel"`
}

// NewTotals returns totals with a count for each reason, so that each is present before its first
// use.
func NewTotals() Totals {
	t := Totals{Refused: map[string]uint64{}}
	for c := wire.RefuseMalformed; c <= wire.RefuseFull; c++ {
		t.Refused[c.String()] = 0
	}
	return t
}

// Refuse counts a refused join with code c. All unknown codes, which peers may send, share one
// name.
func (t *Totals) Refuse(c wire.RefuseCode) {
	name := c.String()
	if _, ok := t.Refused[name]; !ok {
		name = "other"
	}
	t.Refused[name]++
}

// Over counts a job that has ended, and adds its traffic. j is its last status.
func (t *Totals) Over(j *JobStatus) {
	switch {
	case j.Reason == "":
		t.OK++
	default:
		t.Failed++
	}
	t.add(j)
}

// add adds the lost links, invalid frames and traffic of a job.
func (t *Totals) add(j *JobStatus) {
	t.LostLinks += uint64(j.LostLinks)
	t.Lost += uint64(len(j.Lost))
	t.BadFrames += uint64(j.BadFrames)
	t.Kernel.add(j.Kernel)
	for i := range j.Trunks {
		t.LostTrunks += uint64(j.Trunks[i].Lost)
	}
	for i := range j.Traffic {
		t.Traffic.add(&j.Traffic[i])
	}
}

// With returns the totals, with those of jobs that have not ended added.
func (t Totals) With(jobs []JobStatus) Totals {
	t.Refused = maps.Clone(t.Refused)
	for i := range jobs {
		t.add(&jobs[i])
	}
	return t
}
