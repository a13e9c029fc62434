package handshake

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/leidenzipper/zipper/internal/wire"
)

// The ids of jobs that processes of a job make are derived from the job's own id. They have its
// key, and a forwarder that may serve the job may serve them: JobID returns the job's id.
const (
	meetingMark    = rowMark + "p" // one process of this job and one of another one meet
	connectionMark = rowMark + "c" // the job that a meeting agrees on
)

// MeetingID is the id under which a process of a job meets one of another job.
func MeetingID(job, unique string) string { return JobID(job) + meetingMark + unique }

// ConnectionID is the id of a job that was agreed on in a meeting.
func ConnectionID(job, unique string) string { return JobID(job) + connectionMark + unique }

// IsMeeting tells whether an id is one of MeetingID's.
func IsMeeting(id string) bool {
	_, rest, _ := strings.Cut(id, meetingMark)
	return rest != ""
}

// Way is how the two ends of a meeting reach each other where that takes several hops. It is the
// reason of RefuseMeeting.
type Way struct {
	Layout   []wire.Cluster
	Networks []string
	Zippers  []wire.Zipper
}

// WayOf returns the way of a Join.
func WayOf(j *wire.Join) Way { return Way{j.Layout, j.Networks, j.Zippers} }

// String returns the text for the reason.
func (w Way) String() string {
	b, _ := json.Marshal(w) // cannot fail for strings and numbers
	return string(b)
}

// ParseWay reads the text that String returns.
func ParseWay(s string) (w Way, err error) {
	if err = json.Unmarshal([]byte(s), &w); err != nil {
		return w, fmt.Errorf("handshake: the path to a meeting: %w", err)
	}
	if len(w.Zippers) == 0 || len(w.Zippers) > wire.MaxZippers || len(w.Layout) != 2 ||
		len(w.Networks) > wire.MaxNetworks {
		return w, errors.New("handshake: the path to a meeting is invalid")
	}
	for _, z := range w.Zippers {
		for _, p := range z.Ports {
			if int(p.Network) >= len(w.Layout)+len(w.Networks) {
				return w, errors.New("handshake: a port of the path to a meeting is on an unknown network")
			}
		}
	}
	return w, nil
}
