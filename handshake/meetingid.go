package handshake

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/leidenzipper/zipper/internal/wire"
)

// Jobs that processes of a job make beside it have ids made of the job's own. Its key is theirs,
// and whoever may serve the job may serve them: JobID gives the job's.
const (
	meetingMark    = rowMark + "p" // one process of this job and one of another one meet
	connectionMark = rowMark + "c" // what comes of it
)

// MeetingID is the id under which a process of a job meets one of another job.
func MeetingID(job, unique string) string { return JobID(job) + meetingMark + unique }

// ConnectionID is the id of a job that was agreed on in a meeting.
func ConnectionID(job, unique string) string { return JobID(job) + connectionMark + unique }

// IsMeeting reports whether an id is of MeetingID's.
func IsMeeting(id string) bool {
	_, rest, _ := strings.Cut(id, meetingMark)
	return rest != ""
}

// Way is how a meeting's two ends reach each other where it takes several hops: RefuseMeeting's
// reason.
type Way struct {
	Layout   []wire.Cluster
	Networks []string
	Zippers  []wire.Zipper
}

// WayOf is that of a Join.
func WayOf(j *wire.Join) Way { return Way{j.Layout, j.Networks, j.Zippers} }

// String is the reason's text.
func (w Way) String() string {
	b, _ := json.Marshal(w) // strings and numbers
	return string(b)
}

// ParseWay reads it.
func ParseWay(s string) (w Way, err error) {
	if err = json.Unmarshal([]byte(s), &w); err != nil {
		return w, fmt.Errorf("handshake: the way to a meeting: %w", err)
	}
	if len(w.Zippers) == 0 || len(w.Zippers) > wire.MaxZippers || len(w.Layout) != 2 ||
		len(w.Networks) > wire.MaxNetworks {
		return w, errors.New("handshake: the way to a meeting is none")
	}
	for _, z := range w.Zippers {
		for _, p := range z.Ports {
			if int(p.Network) >= len(w.Layout)+len(w.Networks) {
				return w, errors.New("handshake: the way to a meeting has a network too many")
			}
		}
	}
	return w, nil
}
