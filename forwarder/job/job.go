// Package job is one job of a forwarder, as a state machine: how it gathers, runs and ends.
//
// Its parts, each of which uses only those below it:
//
//	job.go       New and Handle
//	handle.go    which part an event goes to
//	rules.go     the rules that hold after each event
//	start.go     the last rank has joined: the job runs
//	half.go      what launchers report about their halves
//	loss.go      a rank loses its link, and reopens it
//	deaths.go    a cluster is lost, and the job goes on
//	end.go       the job fails, or is released
//	ways.go      the connections that the kernel opens between ranks
//	hops.go      several hops: Joins and Ready between forwarders
//	gather.go    ranks join, until all have
//	gaps.go      several hops: which links are missing
//	cross.go     several hops: effects of a bridge on the ranks behind it
//	ranks.go     which ranks of the running job can be reached, and which ends are told
//	links.go     several hops: the bridges (package bridge)
//	tree.go      several hops: the networks and forwarders
//	core.go      the state of the job, and what all parts share
//
// Handle takes an event and returns actions in the order in which they must be carried out. A Job
// does no I/O, reads no clock and takes no lock. It is not safe for concurrent use.
package job

import (
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/bridge"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Job is the state machine of one parallel program at this forwarder: its ranks join, their frames
// are relayed, and they leave.
type Job struct {
	*core
	links     *links
	ranks     *ranks
	gaps      *gaps
	gathering *gathering
	hops      *hops
	ways      *ways
	ending    *ending
	deaths    *deaths
	losses    *losses
	halves    *halves
	started   time.Time
	stopped   bool // stopped says that the job waits for no link and opens none any more.
}

// New returns a job for its first Join, and actions to carry out, or why the job is refused. The
// job's first event must then be Joined or Offered with that Join.
func New(now time.Time, cfg Config, first *wire.Join) (*Job, []action.Action, *handshake.Refused) {
	c := &core{cfg: cfg, id: first.Job, clusters: first.Layout, gather: handshake.NewGather(first), now: now}
	j := &Job{core: c}
	j.links = &links{core: c, bridges: map[int]*bridge.Bridge{}, of: map[action.Conn]int{}}
	if len(first.Zippers) > 0 {
		t, err := newTree(first, cfg.Here)
		if err != nil {
			return nil, nil, handshake.Refusal(wire.RefuseLayout, "%v", err)
		}
		j.links.tree = t
	}
	j.ranks = &ranks{core: c, links: j.links, members: map[action.Conn]*member{}, absent: map[uint32]absence{},
		left: map[uint32]bool{}, reconnected: map[uint32]bool{}, statesSent: sequences{}}
	j.gaps = &gaps{links: j.links, failures: map[int]string{}, exchanges: map[int]*exchanged{}}
	j.gathering = &gathering{core: c, gaps: j.gaps, created: now, expires: now.Add(cfg.Timeout),
		places: map[action.Conn]*place{}}
	j.hops = &hops{links: j.links, gathering: j.gathering, gaps: j.gaps, joins: map[uint32]*wire.Join{},
		left: map[uint32]bool{}, ready: make([]bool, len(first.Zippers))}
	j.ways = &ways{core: c, ranks: j.ranks}
	j.ending = &ending{core: c, ranks: j.ranks, links: j.links}
	j.deaths = &deaths{core: c, ranks: j.ranks, links: j.links, ending: j.ending}
	j.losses = &losses{core: c, ranks: j.ranks, ways: j.ways, deaths: j.deaths, waits: map[uint32]wait{}, bad: map[uint32]count{},
		badOver: map[int]count{}, over: map[int]bool{}}
	j.halves = &halves{core: c, deaths: j.deaths, suspended: map[string]string{}}
	j.arm(action.Timer{Kind: action.Gathering}, cfg.Timeout)
	j.arm(action.Timer{Kind: action.Notice}, cfg.Notice)
	j.log(zapcore.InfoLevel, "job begins to gather", zap.Int("ranks", j.gather.Ranks()),
		zap.Duration("timeout", cfg.Timeout), zap.String("user", cfg.User))
	return j, j.out, nil
}

// Handle advances the job by one event and returns actions, in order. An illegal transition, which
// is a defect of this package or of package bridge, is reported by the action Internal and ends the
// job.
func (j *Job) Handle(now time.Time, e Event) []action.Action {
	j.now, j.out, j.wrong = now, nil, nil
	e.apply(j)
	j.settle()
	if wrong := j.wrong; wrong != nil {
		j.do(Internal{Err: wrong})
		j.stop(wire.RefuseShutdown, 1, fmt.Sprintf("internal error: %v (please report this, with the forwarder's log)", wrong))
		j.settle()
	}
	return j.out
}

// settle gives the bridges their queued events and applies the rules that hold after each event,
// until no event is queued.
func (j *Job) settle() {
	for {
		for len(j.queued) > 0 {
			m := j.queued[0]
			j.queued = j.queued[1:]
			j.crossed(m)
		}
		if j.follow(); len(j.queued) == 0 {
			return
		}
	}
}

// follow applies once the rules that hold after each event: it starts the job, sends Bye or ends
// the job if that is due.
func (j *Job) follow() {
	if j.state == Gathering {
		if j.hops.announceReady(); j.hops.complete() {
			j.start()
		}
	}
	if j.state == Running {
		j.losses.forget()
		j.deaths.forget()
		j.sendByes()
	}
	j.endIfOver()
	if j.state > Running && !j.stopped {
		j.stopped = true
		j.losses.stopWaiting()
		j.links.stop()
	}
}
