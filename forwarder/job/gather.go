package job

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// How a rank comes into a job:
//
//  1. Its Join must agree with the first one, and takes its rank's place (handshake.Gather). Only the
//     same process can take the place over (takesOver). Only a rank that was there before can join a
//     running job (again).
//  2. It waits until the earliest time-out of all ranks at most (expire). Ranks that wait are told
//     what is missing, after a while and after a refusal (notice).
//  3. The last rank completes the job (start.go), or other forwarders are told of it (hops.go).
//  4. A forwarder that was restarted gathers the ranks of a running job, but not those of clusters
//     that the job has lost (doWithout). Joins of the others name these clusters.
//  5. The job is given up (giveUp) when the time is over, when a refusal shows that it can never
//     become complete (Turned), or when the last rank leaves, in a job of several hops any rank
//     (leave).

// gathering collects the Joins of the job's ranks until all have joined, and keeps the ranks
// informed meanwhile.
type gathering struct {
	*core
	gaps     *gaps
	created  time.Time
	places   map[action.Conn]*place
	expires  time.Time // expires is the time at which the job is given up if ranks are still missing.
	soon     bool      // soon says that scheduleNotice has set the timer Notice.
	notified bool      // notified says that waiting ranks have been told once which ranks and links are missing.
	kept     int64     // kept is the number of bytes of all Joins that are charged to the forwarder's memory.
	// lost has the clusters that were lost before this forwarder was restarted.
	lost []Death
}

// place is a rank that has joined here and waits for the job to run.
type place struct {
	conn action.Conn
	link string
	rank int // rank is the rank in the whole job, over all clusters.
	endpoint
	kept int64 // kept is the number of bytes of the rank's Join that are charged to the forwarder's memory.
}

// inOrder returns the ranks that wait here, in ascending order.
func (g *gathering) inOrder() []*place {
	return slices.SortedFunc(maps.Values(g.places), func(p, q *place) int { return p.rank - q.rank })
}

// as returns the place of a rank, given by its number in the whole job, or nil if the rank does not
// wait here.
func (g *gathering) as(rank int) *place {
	for _, p := range g.places {
		if p.rank == rank {
			return p
		}
	}
	return nil
}

// join gives a verified Join its place, or returns why it is refused. kept says that its bytes are
// charged to the job.
func (g *gathering) join(e *Joined) (kept bool, refused *handshake.Refused) {
	g.learn(e.Join)
	if v, same := g.gather.Same(e.Join); same && g.takesOver(e, v) {
		return false, nil
	}
	rank, refused := g.gather.Add(e.Join)
	switch {
	case refused != nil:
		return false, refused
	case g.state != Gathering: // not expected: all ranks of a complete job have their places
		return false, handshake.Refusal(wire.RefuseTaken, "job %q is already running: give every run a new job id", g.id)
	}
	if refused := g.keep(e.Bytes, e.Room); refused != nil {
		g.gather.Remove(rank)
		return false, refused
	}
	// The earliest time-out of a rank is that of the job.
	if t := g.now.Add(e.Timeout); t.Before(g.expires) && !Leaves(e.Join) {
		g.expires = t
		g.arm(action.Timer{Kind: action.Gathering}, e.Timeout)
	}
	g.addPlace(&place{conn: e.Conn, link: e.Link, rank: rank, endpoint: e.endpoint(), kept: e.Bytes})
	if !g.soon && !g.notified { // more ranks may join shortly
		g.arm(action.Timer{Kind: action.Notice}, g.cfg.Notice)
	}
	g.log(zapcore.DebugLevel, "rank joined", zap.String("cluster", e.Join.Cluster), zap.Uint32("rank", e.Join.Rank),
		zap.Int("virtual_rank", rank), zap.String("host", e.Join.Host), zap.String("link", e.Link))
	return true, nil
}

// learn adds the clusters that a Join names as lost, as doWithout does.
func (g *gathering) learn(join *wire.Join) {
	for _, c := range handshake.Lost(join.Settings) {
		if g.outlives() && c < len(g.clusters) && g.clusters[c].Name != join.Cluster {
			g.doWithout(c, fmt.Sprintf("cluster %s is lost: it was lost before this forwarder was restarted", g.clusters[c].Name))
		}
	}
}

// doWithout lets the job start without a cluster that is lost for a reason, and refuses the ranks
// of that cluster that wait here.
func (g *gathering) doWithout(cluster int, reason string) {
	if g.state != Gathering || g.refusal(cluster) != nil {
		return
	}
	g.lost = append(g.lost, Death{Cluster: cluster, Reason: reason})
	for _, p := range g.inOrder() {
		if name, _ := g.place(uint32(p.rank)); name == g.clusters[cluster].Name {
			delete(g.places, p.conn)
			g.gather.Remove(p.rank)
			g.free(p.kept)
			g.do(Refuse{Conn: p.conn, Why: g.refusal(cluster)})
		}
	}
	g.gather.DoWithout(cluster)
}

// refusal returns the refusal of a process of a cluster that was lost before this forwarder was
// restarted, or nil if the cluster was not lost then.
func (g *gathering) refusal(cluster int) *handshake.Refused {
	for _, d := range g.lost {
		if d.Cluster == cluster {
			return handshake.Refusal(wire.RefuseHalf, "job %q goes on without this cluster: %s", g.id, d.Reason)
		}
	}
	return nil
}

// Leaves reports whether a rank joins only to say Bye.
func Leaves(join *wire.Join) bool { return join.TimeoutMS == 0 }

func (g *gathering) addPlace(p *place) {
	g.places[p.conn] = p
	g.do(Place{Conn: p.conn})
}

// takesOver moves a waiting rank to the new connection of e, and reports whether the rank waits on.
// The rank notices a dead link before the forwarder does. If the old link is alive the job names
// this forwarder twice, and the refusal of the old link says so.
func (g *gathering) takesOver(e *Joined, rank int) bool {
	old := g.as(rank)
	if old == nil {
		return false
	}
	delete(g.places, old.conn)
	g.do(Refuse{Conn: old.conn, Why: handshake.Refusal(wire.RefuseTaken,
		"rank %d of cluster %q has joined job %q over a second link: does the job name this forwarder twice?",
		e.Join.Rank, e.Join.Cluster, g.id)})
	p := *old
	p.conn, p.link, p.endpoint = e.Conn, e.Link, e.endpoint()
	g.addPlace(&p)
	return true
}

// keep charges the n bytes of a Join to the job, or returns why there is no room. room says whether
// the forwarder's memory had room.
func (g *gathering) keep(n int64, room bool) *handshake.Refused {
	most := joinsLeast + int64(g.gather.Ranks())*joinShare
	switch {
	case g.kept+n > most:
		return handshake.Refusal(wire.RefuseLayout, "the names and addresses in the Joins of job %q take more than %d bytes",
			g.id, most)
	case !room:
		return handshake.Refusal(wire.RefuseFull, "this forwarder has no memory left (--memory)")
	}
	g.kept += n
	return nil
}

// free releases n bytes of Joins that keep has charged to the job.
func (g *gathering) free(n int64) {
	g.kept -= n
	g.do(Free{Bytes: n})
}

// expire gives up a job that is not complete in time. others is a hint for users about other
// gathering jobs.
func (g *gathering) expire(others string) {
	if g.state == Gathering {
		g.giveUp(wire.RefuseTimeout, fmt.Sprintf("job %q is not complete after %v; %s", g.id,
			g.now.Sub(g.created).Round(time.Millisecond), g.missing(others)))
	}
}

// missing returns a text for users that names the ranks and links which the job still needs to
// become complete. others is a hint about other gathering jobs that may be meant for this one.
func (g *gathering) missing(others string) string {
	reason := "missing: " + g.gather.Missing() + others
	if s := g.gather.Refusals(); s != "" {
		reason += "; refused: " + s
	}
	if g.gaps.several() {
		if s := g.gaps.text(nil); s != "" {
			reason += "; " + s
		}
	}
	return reason
}

// notice sends the first rank of each cluster, if it waits here, a text that names the missing
// ranks and links. others is a hint about other gathering jobs.
func (g *gathering) notice(others string) {
	if g.state != Gathering {
		return
	}
	g.soon, g.notified = false, true
	text := fmt.Sprintf("job %q is not complete yet; %s", g.id, g.missing(others))
	for _, p := range g.inOrder() {
		if _, native := g.place(uint32(p.rank)); native == 0 {
			g.do(Tell{Conn: p.conn, Text: text})
		}
	}
}

// scheduleNotice sets a short timer, because a rank was refused or another job with the same id
// gathers. When it expires, rank 0 of each cluster, if it waits, is told the missing ranks and
// links and the refused processes. The delay collects several refusals.
func (g *gathering) scheduleNotice() {
	if !g.soon {
		g.soon = true
		g.arm(action.Timer{Kind: action.Notice}, min(noticeAfterRefusal, g.cfg.Notice))
	}
}

// turned records that a process that wanted to join was refused, and gives the job up if it can
// never become complete. A process without the secret has not proven which job it belongs to, so it
// never ends the job.
func (g *gathering) turned(e *Turned) {
	if g.state != Gathering {
		return
	}
	impossible := g.gather.NoteRefusal(e.Join, e.Why.Code)
	g.scheduleNotice()
	if impossible && e.Why.Code != wire.RefuseSecret {
		g.giveUp(e.Why.Code, fmt.Sprintf("job %q cannot become complete: "+
			"rank %d of cluster %s on host %s (%s), which has the job's secret, was refused: %s",
			g.id, e.Join.Rank, e.Join.Cluster, e.Join.Host, e.Link, e.Why.Reason))
	}
}

// leave removes the rank that waits on connection c from the job. The job ends if no rank is left.
// A job of several hops ends if any rank leaves, because a Join cannot be withdrawn.
func (g *gathering) leave(c action.Conn) {
	p := g.places[c]
	if p == nil {
		return
	}
	delete(g.places, c)
	switch {
	case g.state != Gathering:
		return
	case g.gaps.several():
		cluster, native := g.place(uint32(p.rank))
		g.giveUp(wire.RefuseTimeout, fmt.Sprintf("rank %d of cluster %s left while job %q was joining",
			native, cluster, g.id))
		return
	}
	g.gather.Remove(p.rank)
	g.free(p.kept)
	if g.gather.Joined() == 0 {
		g.giveUp(0, "all have left")
	}
}

// giveUp ends the job before it runs, and refuses its ranks, including those at other forwarders,
// with a code and a reason.
func (g *gathering) giveUp(code wire.RefuseCode, reason string) {
	if g.state != Gathering || !g.finish(Ended, result{reason: reason}) {
		return
	}
	g.disarm(action.Timer{Kind: action.Gathering})
	g.disarm(action.Timer{Kind: action.Notice})
	g.free(g.kept)
	g.log(zapcore.WarnLevel, "job never became complete", zap.String("reason", reason))
	for _, p := range g.inOrder() {
		g.do(Refuse{Conn: p.conn, Why: &handshake.Refused{Code: code, Reason: reason}})
	}
	g.places = nil
	for _, br := range g.gaps.list() {
		g.do(action.Abort{Conn: br.First(), Frame: frame(wire.TypeRefuse, &wire.Refuse{Code: code, Reason: reason})})
	}
	g.do(Incomplete{Reason: reason})
}
