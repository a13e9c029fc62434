package forwarder

import (
	"io"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder/budget"
	"github.com/leidenzipper/zipper/forwarder/halves"
	"github.com/leidenzipper/zipper/forwarder/relay"
	"github.com/leidenzipper/zipper/forwarder/strangers"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/seal"
	"github.com/leidenzipper/zipper/wire"
)

// jobState is where a job is in its life:
//
//	gathering ─all are in→ ready ─the kernel's ways are open, or none are wanted→ running
//	ready ─a rank leaves→ gathering
//	gathering ─time-out, hopeless, or all have left→ ended
//	running ─abort, a rank or a bridge is lost, release→ ending ─last link closed→ ended
//	running ─last link closed after Bye→ ending → ended
//	ending ─last link closed, the kernel has ways of the job open→ closing ─they are closed→ ended
type jobState uint8

const (
	// gathering: ranks join. What they send is for the join exchange; they are sent Notice, Refuse
	// and Ping.
	gathering jobState = iota

	// ready: all are in, and do not know it yet. As gathering, but that nobody more can join.
	ready

	// running: frames between ranks are relayed, and new links are taken in only of ranks that come
	// back.
	running

	// ending: Abort was sent to everybody, or (release) Bye, or all have left. The links linger:
	// nothing is relayed any more.
	ending

	// closing: the job has no links any more, and the kernel takes back the ways that it has opened
	// for it. Timers and launchers have no say any more.
	closing

	// ended: no links any more. Its id is free.
	ended
)

var jobStateNames = [...]string{"gathering", "ready", "running", "ending", "closing", "ended"}

func (s jobState) String() string { return jobStateNames[s] }

// legalJob[from] is the set of states that may follow.
var legalJob = [...]uint8{
	gathering: 1<<ready | 1<<ended,
	ready:     1<<running | 1<<gathering,
	running:   1 << ending,
	ending:    1<<closing | 1<<ended,
	closing:   1 << ended,
	ended:     0,
}

// to moves a job to the next state and reports whether that is a legal transition. An illegal one
// leaves the state alone and is reported to illegal. With Forwarder.mu.
func (j *job) to(next jobState) bool {
	if legalJob[j.state]&(1<<next) == 0 {
		j.illegal(j, next)
		return false
	}
	j.log.Debug("job", zap.String("job", j.id), zap.Stringer("was", j.state), zap.Stringer("is", next))
	j.state = next
	return true
}

// job is a set of connections that talk to each other. Guarded by Forwarder.mu except where noted.
type job struct {
	id        string
	key       [wire.PublicKeyLen]byte // who does not have its secret half is not of this job
	user      string                  // whom its first Join's ticket names; empty: none was demanded
	pass      *seal.Pass              // that its ranks show; nil: none has, yet
	guest     [wire.SealKeyLen]byte   // and the key that it is made with
	log       *zap.Logger
	state     jobState                    // set by to
	illegal   func(j *job, next jobState) // handles an illegal transition, with Forwarder.mu
	gather    *handshake.Gather           // while it gathers; afterwards for who comes back
	waiting   map[*peer]*waiting
	notice    timer               // tells those that wait what is missing,
	soon      bool                // before long, since somebody was refused
	told      bool                // they have been told once
	timer     timer               // ends the gathering,
	expires   time.Time           // then
	opener    *strangers.Stranger // whose Join was the first
	created   time.Time
	started   time.Time
	kept      int64  // bytes of its Joins
	room      []byte // in which they are measured
	live      int    // links of the running job
	code      int32
	reason    string // why it failed
	clusters  []wire.Cluster
	layout    wire.Layout        // answer to those who join; Rank and Namesake are not set
	hops      *hops              // nil: one hop
	opening   *opening           // while the kernel is asked
	ways      io.Closer          // that the kernel has open for it; nil: none
	doors     int                // ports for that
	absent    map[uint32]absence // ranks that are out of reach and may come back
	waits     map[uint32]*wait   // those that are waited for, of our own
	over      map[int]bool       // clusters (by index) whose processes have all ended
	left      map[uint32]bool    // ranks that have said Bye
	cameBack  map[uint32]bool    // that have lost a link, and opened another one
	unsure    bool               // something may have been lost on its way
	bad       map[uint32]bad     // what damaged frames came from ranks
	suspended map[string]timer   // clusters that stand still: ends the job
	losses    int                // of links of a job that went on
	badFrames int                // that ended links

	// Fixed when it is ready, or starts; then read by all loops without a lock.
	hosts     []string                     // per virtual rank
	namesakes map[string]bool              // of hosts in several clusters
	clusterOf []int                        // per virtual rank
	table     []atomic.Pointer[relay.Conn] // per virtual rank; nil: departed or dead
	counts    *relay.Counts
	blocked   []atomic.Int64 // per cluster: nanoseconds for which its links did not take what there was
	via       []*bridge      // per virtual rank, in jobs of several hops: the way there; nil: a link of its own
	memory    *budget.Budget // what its links may keep
	classic   *relay.Classic // nil: frames go on as they come
}

// run is what all rows of a job have in common.
func (j *job) run() halves.Run { return halves.Run{ID: handshake.JobID(j.id), Key: j.key} }

// resume takes back that a cluster stands still. With Forwarder.mu.
func (j *job) resume(cluster string) {
	if t := j.suspended[cluster]; t != nil {
		t.Stop()
		delete(j.suspended, cluster)
	}
}

// jobs are told apart by id and key, so that nobody can take an id from others: here by id. With
// Forwarder.mu.
type jobs map[string][]*job

// find gives the job that a Join is for; nil: it is not there.
func (m jobs) find(j *wire.Join) *job {
	for _, b := range m[j.Job] {
		if b.key == j.PublicKey {
			return b
		}
	}
	return nil
}

// mayOpen says why no other job may be opened; nil: one may. user is whom its ticket names, empty
// without tickets.
func (m jobs) mayOpen(user string, c *Config) *handshake.Refused {
	all, his := 0, 0
	for _, l := range m {
		for _, b := range l {
			all++
			if b.user == user {
				his++
			}
		}
	}
	switch {
	case c.MaxJobs > 0 && all >= c.MaxJobs:
		return refusal(wire.RefuseFull, "this forwarder has %d jobs already (--max-jobs): try again when one of them is over", all)
	case c.MaxJobsOf > 0 && c.Ticket != nil && his >= c.MaxJobsOf:
		return refusal(wire.RefuseFull, "user %q has %d jobs here already (--max-jobs-of-user): try again when one of them is over", user, his)
	}
	return nil
}

func (m jobs) add(b *job) { m[b.id] = append(m[b.id], b) }

func (m jobs) remove(b *job) {
	m[b.id] = slices.DeleteFunc(m[b.id], func(o *job) bool { return o == b })
	if len(m[b.id]) == 0 {
		delete(m, b.id)
	}
}

// inOrder is all of them, by id, those of the same id as they came.
func (m jobs) inOrder() (list []*job) {
	for _, id := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[id]...)
	}
	return list
}

// besides says that other jobs gather which may be meant for this one.
func (m jobs) besides(b *job) string {
	for _, o := range m[b.id] {
		if o != b && o.state == gathering {
			return " (ranks with another secret wait under the same job id: do all clusters have the same secret?)"
		}
	}
	for id, same := range m {
		if handshake.JobID(id) != handshake.JobID(b.id) && !handshake.IsMeeting(id) &&
			slices.ContainsFunc(same, func(o *job) bool { return o.state == gathering }) {
			return " (another job waits here too: do all clusters use the same job id?)"
		}
	}
	return ""
}

// absence is why a rank is out of reach; cut: because a link between forwarders is, which is opened
// again.
type absence struct {
	reason string
	cut    bool
}

// resumes reports whether a link of a job with one way between any two ranks is opened again when
// it is lost.
func (j *job) resumes() bool {
	return j.gather.Rails() == 1 && j.classic == nil && j.gather.Patience() > 0
}

// goesOn reports whether the job outlives the loss of a link: its ranks send again what they do not
// know to have arrived.
func (j *job) goesOn() bool { return j.gather.Rails() > 1 || j.resumes() }

// patience is how long what is out of reach is waited for.
func (j *job) patience() time.Duration { return time.Duration(j.gather.Patience()) * time.Millisecond }

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

// inOrder is who waits, by rank.
func (j *job) inOrder() []*peer {
	byRank := func(p, q *peer) int { return p.waiting.rank - q.waiting.rank }
	return slices.SortedFunc(maps.Keys(j.waiting), byRank)
}

// waitsAs is who waits as a rank; nil: nobody.
func waitsAs(b *job, rank int) *peer {
	for p, w := range b.waiting {
		if w.rank == rank {
			return p
		}
	}
	return nil
}

// bridges are those that are there, by the index of the other end; none in a job of one hop.
func (j *job) bridges() (list []*bridge) {
	if j.hops == nil {
		return nil
	}
	for _, k := range slices.Sorted(maps.Keys(j.hops.bridges)) {
		list = append(list, j.hops.bridges[k])
	}
	return list
}

// rankOf is the virtual rank of who joins.
func rankOf(clusters []wire.Cluster, join *wire.Join) uint32 {
	v := join.Rank
	for _, c := range clusters {
		if c.Name == join.Cluster {
			break
		}
		v += c.Size
	}
	return v
}
