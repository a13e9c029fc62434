package forwarder

import (
	"slices"
	"strings"
	"time"

	"github.com/leidenzipper/zipper/wire"
)

// Status is what a forwarder is doing.
type Status struct {
	Protocol  int         `json:"protocol"` // version
	Started   time.Time   `json:"started"`
	Now       time.Time   `json:"now"`
	Addresses []string    `json:"addresses"`
	Loops     int         `json:"loops"`
	Links     int         `json:"links"`
	Jobs      []JobStatus `json:"jobs"` // by id
	Past      []Summary   `json:"past"` // the last ended jobs, oldest first
}

// JobStatus is one job that has not ended.
type JobStatus struct {
	Job         string          `json:"job"`   // its id; ID#2 for the second row of one of several hops
	State       string          `json:"state"` // gathering, running or failed
	Created     time.Time       `json:"created"`
	Started     time.Time       `json:"started"` // zero while gathering
	Clusters    []ClusterStatus `json:"clusters"`
	Ranks       int             `json:"ranks"`
	Joined      int             `json:"joined"`               // links that are there
	Missing     string          `json:"missing,omitempty"`    // while gathering
	Refused     string          `json:"refused,omitempty"`    // while gathering: who was not let in, and why
	Reason      string          `json:"reason,omitempty"`     // when failed
	Forwarders  []string        `json:"forwarders,omitempty"` // with links to this one, in a job of several hops
	Doors       int             `json:"doors,omitempty"`      // ports to which the kernel passes connections on; what goes there is in no counter
	QueuedBytes int             `json:"queued_bytes"`         // waiting for destinations that do not take them
	Traffic     []Traffic       `json:"traffic"`
}

// ClusterStatus is one cluster of a job.
type ClusterStatus struct {
	Name string `json:"name"`
	Size int    `json:"size"`
}

// Status tells what is going on now. Safe for concurrent use.
func (f *Forwarder) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Status{Protocol: wire.Version, Started: f.born, Now: time.Now(), Loops: f.cfg.Loops, Links: len(f.conns), Jobs: []JobStatus{}, Past: slices.Clone(f.past), Addresses: []string{}}
	for _, l := range f.cfg.Listeners {
		s.Addresses = append(s.Addresses, l.Addr())
	}
	for _, b := range f.jobs {
		s.Jobs = append(s.Jobs, b.status())
	}
	slices.SortFunc(s.Jobs, func(a, b JobStatus) int { return strings.Compare(a.Job, b.Job) })
	return s
}

func (j *job) status() JobStatus {
	s := JobStatus{Job: j.id, State: string(j.state), Created: j.created, Started: j.started, Ranks: j.gather.Ranks(), Joined: j.live, Reason: j.reason, Doors: j.doors, Traffic: j.readTraffic()}
	if j.state == gathering {
		s.Joined, s.Missing, s.Refused = j.gather.Joined(), j.gather.Missing(), j.gather.Refusals()
	}
	for _, c := range j.clusters {
		s.Clusters = append(s.Clusters, ClusterStatus{c.Name, int(c.Size)})
	}
	if j.hops != nil {
		for _, br := range j.hops.bridges {
			s.Forwarders = append(s.Forwarders, br.addr)
		}
		slices.Sort(s.Forwarders)
		if j.state != gathering {
			s.Joined = max(0, s.Joined-len(s.Forwarders))
		}
	}
	counted := map[*conn]bool{}
	for i := range j.table {
		if c := j.table[i].Load(); c != nil && !counted[c] {
			counted[c] = true // a bridge stands there for many
			s.QueuedBytes += c.out.queued()
		}
	}
	return s
}

// queued returns the bytes that wait to be written.
func (o *output) queued() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, f := range o.flows {
		n += f.payload + f.control
	}
	return n
}
