package report

import (
	"maps"

	"github.com/leidenzipper/zipper/internal/wire"
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

// NewTotals has a count for each reason, so that one is there before it is needed.
func NewTotals() Totals {
	t := Totals{Refused: map[string]uint64{}}
	for c := wire.RefuseMalformed; c <= wire.RefuseFull; c++ {
		t.Refused[c.String()] = 0
	}
	return t
}

// Refuse counts a refusal. Peers say codes, too: what is none has one name.
func (t *Totals) Refuse(c wire.RefuseCode) {
	name := c.String()
	if _, ok := t.Refused[name]; !ok {
		name = "other"
	}
	t.Refused[name]++
}

// Over adds a job that has ended.
func (t *Totals) Over(j *JobStatus) {
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

// With adds the jobs that have not ended.
func (t Totals) With(jobs []JobStatus) Totals {
	t.Refused = maps.Clone(t.Refused)
	for i := range jobs {
		t.add(&jobs[i])
	}
	return t
}
