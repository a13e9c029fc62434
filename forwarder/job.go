package forwarder

import (
	"io"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/wire"
)

// jobState is where a job is in its life.
type jobState string

const (
	gathering jobState = "gathering" // ranks join; frames between ranks are refused
	running   jobState = "running"   // all are in; frames are relayed
	failed    jobState = "failed"    // Abort was sent to everybody; waiting for the links to close
	finished  jobState = "finished"  // no links any more
)

// job is a set of links that talk to each other. Guarded by Forwarder.mu except where noted.
type job struct {
	id       string
	state    jobState
	gather   *handshake.Gather // while gathering
	waiting  map[*conn]*waiting
	notice   *time.Timer // tells those that wait what is missing,
	soon     bool        // before long, since somebody was refused
	timer    *time.Timer // ends the gathering,
	expires  time.Time   // then
	created  time.Time
	started  time.Time
	live     int // links of the running job
	code     int32
	reason   string // why it failed
	clusters []wire.Cluster
	hosts    []string          // per virtual rank
	layout   wire.Layout       // answer to those who come back
	hops     *hops             // nil: one hop
	passage  io.Closer         // what the kernel passes on for it; nil: nothing
	doors    int               // ports for that
	absent   map[uint32]string // ranks whose link is lost and that may come back: why; only in jobs of several rails

	// Fixed when running starts; then read by all loops without a lock.
	table     []atomic.Pointer[conn] // per virtual rank; nil: departed or dead
	clusterOf []int                  // per virtual rank
	counts    []counters             // from cluster * clusters + to cluster
	via       []*bridge              // per virtual rank, in jobs of several hops: the way there; nil: a link of its own
	classic   *classic               // nil: frames go on as they come
}

// waiting is a link's place in a job that gathers.
type waiting struct {
	job      *job
	rank     int            // virtual
	inside   netip.AddrPort // where it takes connections that the kernel passes on; invalid: nowhere
	instance uint64
}

// traffic returns the counters from a cluster to a rank's cluster.
func (j *job) traffic(from, dst int) *counters {
	return &j.counts[from*len(j.clusters)+j.clusterOf[dst]]
}

// place says which cluster and native rank a virtual rank is.
func (j *job) place(rank uint32) (cluster string, native int) {
	n := int(rank)
	for _, c := range j.clusters {
		if n < int(c.Size) {
			return c.Name, n
		}
		n -= int(c.Size)
	}
	return "?", n
}

// Summary tells what became of a job.
type Summary struct {
	Job     string    `json:"job"`
	Created time.Time `json:"created"` // first rank joined
	Started time.Time `json:"started"` // last rank joined; zero if that never happened
	Ended   time.Time `json:"ended"`
	OK      bool      `json:"ok"` // every rank said Bye
	Code    int32     `json:"code"`
	Reason  string    `json:"reason,omitempty"`
	Traffic []Traffic `json:"traffic"` // directions between different clusters first to last, then others that were used
}

func (j *job) summary(now time.Time) Summary {
	return Summary{Job: j.id, Created: j.created, Started: j.started, Ended: now, OK: j.reason == "", Code: j.code, Reason: j.reason, Traffic: j.readTraffic()}
}

func (j *job) readTraffic() []Traffic {
	t := []Traffic{}
	for i := range j.counts {
		from, to := i/len(j.clusters), i%len(j.clusters)
		c := j.counts[i].read(j.clusters[from].Name, j.clusters[to].Name)
		if from != to || c.Frames > 0 {
			t = append(t, c)
		}
	}
	return t
}
