package job

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/bridge"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// A lost link does not end a job whose ranks retransmit (goesOn): the rank has another one, or
// reopens it. The other ranks are told (RailState). They use another way, and decide themselves
// when a rank cannot be reached any more.
//
// In a job with one way between any two ranks, a rank whose link is lost reopens it (again), and
// frames that were in flight are retransmitted. How long the job waits for that depends on the loss
// (await). If the link was closed, as a process's links are when it ends, the job waits for
// ComesBack. If nothing was heard from the rank, or this forwarder closed the link because of a
// damaged frame, the process may be alive, and the job waits for its patience, which begins when
// the rank was last heard (bridge.Remaining). Then it fails, or goes on without the rank's cluster
// (deaths.go), with the cause of the loss.
//
// In a job of several hops, RailStates also go over bridges whose ranks reach the rank through
// here. In a job of several rows a rank that has not come back in time is refused later, because
// the job has other rows.

// losses handles lost links of ranks that have joined here: it waits for the ranks to come back.
type losses struct {
	*core
	ranks     *ranks
	ways      *ways
	deaths    *deaths
	waits     map[uint32]wait  // waits has the ranks here that have lost their links and may come back.
	bad       map[uint32]count // bad counts the recent invalid frames over the link of each rank.
	badOver   map[int]count    // badOver counts the recent invalid frames over the connections to each forwarder.
	over      map[int]bool     // over has the clusters, by index, whose processes have all ended.
	lost      int              // lost is the number of lost links of ranks that the job has survived.
	badFrames int              // badFrames counts the invalid frames, each of which has ended its link.
}

// loss says why a rank has lost its link.
type loss struct {
	reason string
	closed bool          // closed says that the link was closed, as that of a process that ends.
	silent time.Duration // silent is Lost.Silent.
}

// wait says since when, and why, the job waits for a rank that has lost its link to reconnect.
type wait struct {
	since time.Time // since is when the link was lost.
	loss
}

// ended handles the end of a connection of the running job: of a rank or of another forwarder.
func (l *losses) ended(e *Lost) {
	m := l.ranks.remove(e.Conn)
	if m != nil && m.zipper < 0 && l.ranks.unroute(m.rank, e.Conn) && l.state == Running {
		l.linkLost(m, e)
	}
}

// linkLost handles the end, without Bye, of a rank's link: the job goes on, or fails.
func (l *losses) linkLost(m *member, e *Lost) {
	reason := l.lostBy(m, e.Cause)
	if !l.survivesLoss() {
		l.deaths.ofRank(m.rank, reason, 0)
		return
	}
	l.miss(m, loss{reason: reason, closed: e.Silent == 0, silent: e.Silent})
}

// miss records that the link of rank m is lost in a job that goes on.
func (l *losses) miss(m *member, why loss) {
	l.log(zapcore.WarnLevel, "link lost; the job goes on", zap.Uint32("virtual_rank", m.rank), zap.String("reason", why.reason))
	l.lost++
	l.ranks.markUnreachable(m.rank, absence{reason: why.reason}, l.ranks.clusterOf[m.rank])
	if l.ranks.links.several() || l.resumes() || l.outlives() {
		l.await(m.rank, why)
	}
}

// await gives rank v time to reconnect: the remaining part of the job's patience, or ComesBack if
// it is less and the link was closed, or no time if all processes of its cluster have ended. In a
// job that outlives clusters, one rank of a cluster whose links are all closed gets allClosed at
// most.
func (l *losses) await(v uint32, why loss) {
	d := bridge.Remaining(l.patience(), why.silent)
	if why.closed {
		d = min(d, ComesBack)
	}
	l.waits[v] = wait{l.now, why}
	cluster := l.ranks.clusterOf[v]
	if l.over[cluster] {
		d = 0
	}
	l.arm(action.Timer{Kind: action.Return, Of: int(v)}, d)
	if l.outlives() && l.allClosed(cluster) {
		l.arm(action.Timer{Kind: action.Return, Of: l.first(cluster)}, min(d, allClosed))
	}
}

// allClosed reports whether all ranks of a cluster have left, or had their links closed.
func (l *losses) allClosed(cluster int) bool {
	for v, of := range l.ranks.clusterOf {
		if of == cluster && !l.waits[uint32(v)].closed && !l.ranks.left[uint32(v)] {
			return false
		}
	}
	return true
}

// isBack ends the wait for rank v, which has reconnected. The other ranks of its cluster get the
// time for single ones again.
func (l *losses) isBack(v uint32) {
	l.stopWaitingFor(v)
	for _, o := range sorted(l.waits) {
		if l.outlives() && l.ranks.clusterOf[o] == l.ranks.clusterOf[v] && l.waits[o].closed {
			l.arm(action.Timer{Kind: action.Return, Of: int(o)}, min(l.patience(), ComesBack))
		}
	}
}

// returnExpired handles that rank v has not reconnected in time: it fails the job, or lets it go on
// over other forwarders.
func (l *losses) returnExpired(v uint32) {
	w, waits := l.waits[v]
	if !waits || l.state != Running {
		return
	}
	delete(l.waits, v)
	if l.resumes() || l.outlives() {
		l.deaths.ofRank(v, w.reason, 0)
	} else {
		l.ranks.remaining--
	}
}

// forget ends the waits for ranks of lost clusters.
func (l *losses) forget() {
	for _, v := range sorted(l.waits) {
		if !l.alive(v) {
			l.stopWaitingFor(v)
		}
	}
}

// stopWaiting forgets all ranks that may come back, and stops their timers.
func (l *losses) stopWaiting() {
	for _, v := range sorted(l.waits) {
		l.stopWaitingFor(v)
	}
}

func (l *losses) stopWaitingFor(v uint32) {
	if _, waits := l.waits[v]; waits {
		delete(l.waits, v)
		l.disarm(action.Timer{Kind: action.Return, Of: int(v)})
	}
}

// clusterEnded records that the ranks of the cluster with index i do not come back. Of those that
// the job waits for, it ends the wait for the one that was lost first, and of several at the same
// time the lowest one, so that this rank is the cause of the job's failure.
func (l *losses) clusterEnded(i int) {
	if i < 0 || l.state != Running {
		return
	}
	l.over[i] = true
	if first := l.first(i); first >= 0 {
		l.arm(action.Timer{Kind: action.Return, Of: first}, 0)
	}
}

// first returns the rank of a cluster for which the job waits longest, the lowest one of several,
// or -1 if it waits for none.
func (l *losses) first(cluster int) int {
	first := -1
	for _, v := range sorted(l.waits) {
		if l.ranks.clusterOf[v] == cluster && (first < 0 || l.waits[v].since.Before(l.waits[uint32(first)].since)) {
			first = int(v)
		}
	}
	return first
}

var errAnotherLink = errors.New("the rank has opened another link")

// again admits a rank that reconnects to the running job, or returns why it is refused.
func (l *losses) again(e *Joined) *handshake.Refused {
	rank, refused := l.gather.Again(e.Join)
	if refused != nil {
		return refused
	}
	r, v := l.ranks, uint32(rank)
	if old := r.routes[v]; old != 0 { // the rank notices a dead link before the forwarder does
		m := r.members[old]
		r.unroute(v, old)
		l.miss(m, loss{reason: l.lostBy(m, errAnotherLink), closed: true})
		l.do(action.End{Conn: old, Cause: errAnotherLink})
	}
	if _, absent := r.absent[v]; !absent {
		return handshake.Refusal(wire.RefuseTaken, "virtual rank %d has left job %q", v, l.id)
	}
	if _, waits := l.waits[v]; r.links.several() && !waits {
		return handshake.Refusal(wire.RefuseTaken, "virtual rank %d was not back in time", v)
	}
	r.returns(v)
	l.isBack(v)
	l.do(Enter{Layout: r.layout, Entry: Entry{e.Conn, v, r.namesakes[r.hosts[v]]}})
	for _, out := range sorted(r.absent) {
		why := r.absent[out]
		r.sendState(e.Conn, wire.RailState{Rank: out, Reason: why.reason, Cut: why.cut})
	}
	for _, gone := range sorted(r.left) {
		r.sendState(e.Conn, wire.RailState{Rank: gone, Departed: true})
	}
	l.deaths.sendAll(e.Conn)
	l.do(Run{Conn: e.Conn, Rank: v})
	r.enter(e.Conn, e.Link, v)
	l.ways.offer(v, e.Conn, e.endpoint())
	l.logOf(e.Conn, zapcore.InfoLevel, "rank is back")
	l.ranks.tell(wire.RailState{Rank: v, Up: true}, r.clusterOf[v])
	for _, c := range handshake.Lost(e.Join.Settings) { // another forwarder has said so
		if l.outlives() && c < len(l.clusters) && c != r.clusterOf[v] {
			l.deaths.lose(c, fmt.Sprintf("cluster %s is lost, in the view of virtual rank %d", l.clusters[c].Name, v), -1)
		}
	}
	return nil
}

// lostBy returns a text for users that says which rank's connection is lost, and why.
func (l *losses) lostBy(m *member, cause error) string {
	cluster, native := l.place(m.rank)
	return fmt.Sprintf("virtual rank %d (rank %d of cluster %s on host %s, link %s) is lost: %v", m.rank,
		native, cluster, l.ranks.hosts[m.rank], m.link, cause)
}

// damaged handles input that is not a valid frame. Bit errors on the network can cause a few such
// frames: then only the connection ends, if the job can go on without it. Otherwise the job fails.
func (l *losses) damaged(e *Damaged) {
	r := l.ranks
	m := r.members[e.Conn]
	if m == nil {
		return
	}
	l.badFrames++
	switch {
	case m.zipper >= 0 && l.toleratesBadFrom(m.zipper): // the bridge reopens it
		l.do(action.End{Conn: e.Conn, Cause: fmt.Errorf("data received over it were damaged: %s", e.Reason)})
	case m.zipper >= 0:
		if !l.outlives() {
			l.do(action.Abort{Conn: e.Conn, Frame: abortFrame(1, wire.Nobody, e.Reason)})
		}
		l.deaths.bridgeLost(r.links.bridges[m.zipper],
			fmt.Sprintf("the forwarder %s broke the protocol: %s", r.links.name(m.zipper), e.Reason), e.Conn)
	case l.survivesLoss() && l.state == Running && l.toleratesBad(m.rank):
		if r.unroute(m.rank, e.Conn) {
			l.miss(m, loss{reason: l.lostBy(m, fmt.Errorf("data received over it were damaged: %s", e.Reason))})
		}
	case r.unroute(m.rank, e.Conn):
		l.deaths.ofRank(m.rank, l.lostBy(m, fmt.Errorf("it broke the protocol: %s", e.Reason)), e.Conn)
	}
}

// count counts the invalid frames over one link since a time.
type count struct {
	since time.Time
	n     int
}

// more counts an invalid frame, and reports whether at most MaxBad of them have arrived within
// badTime.
func (c *count) more(now time.Time) bool {
	if now.Sub(c.since) > badTime {
		*c = count{since: now}
	}
	c.n++
	return c.n <= MaxBad
}

// toleratesBad counts an invalid frame over the link of rank v. It reports whether so few have
// arrived that bit errors on the network can be the cause; otherwise the caller fails the job.
func (l *losses) toleratesBad(v uint32) bool {
	c := l.bad[v]
	may := c.more(l.now)
	l.bad[v] = c
	return may
}

// toleratesBadFrom counts an invalid frame from the forwarder with index zipper. It reports whether
// only the connection must end, because the job can go on without it and so few have arrived that
// bit errors on the network can be the cause; otherwise the caller fails the job.
func (l *losses) toleratesBadFrom(zipper int) bool {
	if !l.survivesLoss() || l.state != Running {
		return false
	}
	c := l.badOver[zipper]
	may := c.more(l.now)
	l.badOver[zipper] = c
	return may
}
