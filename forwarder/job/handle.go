package job

import (
	"errors"
	"fmt"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/bridge"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Which part of the job handles an event, and the actions of bridges that the job carries out.

func (e Joined) apply(j *Job) {
	kept, refused := j.joined(&e)
	if !kept && e.Room {
		j.do(Free{Bytes: e.Bytes})
	}
	if refused != nil {
		j.refuse(e.Conn, refused)
	}
}

// refuse refuses the connection c, for the reason why. If it is the one that the job was opened
// for, the job is given up at once: no rank waits in it, and no forwarder has a link to it.
func (j *Job) refuse(c action.Conn, why *handshake.Refused) {
	j.do(Refuse{Conn: c, Why: why})
	if j.gather.Joined() == 0 && len(j.links.bridges) == 0 {
		j.gathering.giveUp(why.Code, why.Reason)
	}
}

// joined admits a rank whose Join is verified to the job, or returns why it is refused. kept says
// that the bytes of its Join are charged to the job.
func (j *Job) joined(e *Joined) (kept bool, refused *handshake.Refused) {
	back := j.state == Running && j.survivesLoss()
	if e.Ticket != nil && !back { // a rank that comes back has shown the job's key, and was admitted before
		return false, handshake.Refusal(wire.RefuseTicket, "%v", e.Ticket)
	}
	if refused := j.gather.Fits(e.Join); refused != nil {
		return false, refused
	}
	if refused := j.hops.belongs(e.Join); refused != nil {
		return false, refused
	}
	if refused := j.deaths.refusal(j.clusterIndex(e.Join.Cluster)); refused != nil {
		return false, refused
	}
	if back {
		return false, j.losses.again(e)
	}
	if (j.state == Ending || j.state == Closing) && j.result.reason != "" {
		return false, handshake.Refusal(wire.RefuseJob, "job %q has failed: %s", j.id, j.result.reason)
	}
	if refused := j.gathering.refusal(j.clusterIndex(e.Join.Cluster)); refused != nil {
		return false, refused
	}
	if kept, refused = j.gathering.join(e); kept {
		j.hops.joinedHere(e.Join)
	}
	return kept, refused
}

func (e Turned) apply(j *Job)    { j.gathering.turned(&e) }
func (e Withdrawn) apply(j *Job) { j.gathering.leave(e.Conn) }
func (e GiveUp) apply(j *Job)    { j.gathering.giveUp(e.Code, e.Reason) }

func (Another) apply(j *Job) {
	if j.state == Gathering {
		j.gathering.scheduleNotice()
	}
}

func (e Departed) apply(j *Job) { j.ranks.departs(e.Conn) }
func (e Aborted) apply(j *Job)  { j.ending.aborted(&e) }
func (e Damaged) apply(j *Job)  { j.losses.damaged(&e) }

func (e Lost) apply(j *Job) {
	j.gathering.leave(e.Conn)
	if k, ok := j.links.closed(e.Conn); ok {
		j.cross(k, bridge.Ended{Conn: e.Conn, Cause: e.Cause, Silent: e.Silent})
	}
	j.losses.ended(&e)
}

// apply gives the expiry of a timer to the part of the job that has set the timer.
func (e Expired) apply(j *Job) {
	switch t := e.Timer; t.Kind {
	case action.Gathering:
		j.gathering.expire(e.Others)
	case action.Notice:
		j.gathering.notice(e.Others)
	case action.Doors:
		j.ways.expire()
	case action.Return:
		j.losses.returnExpired(uint32(t.Of))
	case action.Suspended:
		j.halves.suspensionExpired(t.Of)
	default:
		j.cross(t.Of, bridge.Expired{Timer: t.Kind, Links: e.Links})
	}
}

func (e Asked) apply(j *Job) { j.ways.ask(e.Conn, e.Rank) }

func (e Moved) apply(j *Job) { j.ways.moves(e.Conn, e.Sent) }

func (e Opened) apply(j *Job) {
	if j.ways.opened(&e); j.state == Closing && j.ways.finish() {
		j.conclude()
	}
}

func (Closed) apply(j *Job) { j.conclude() }

func (e HalfSuspended) apply(j *Job) { j.halves.suspend(&e) }
func (e HalfResumed) apply(j *Job)   { j.halves.resume(e.Cluster) }
func (e ClusterEnded) apply(j *Job)  { j.losses.clusterEnded(j.clusterIndex(e.Cluster)) }
func (e Release) apply(j *Job)       { j.ending.release(e.Reason) }

func (e HalfEnded) apply(j *Job) {
	cluster := j.clusterIndex(e.Cluster)
	switch {
	case j.gathering.refusal(cluster) != nil: // known before
		return
	case j.state == Running && j.outlives():
		j.deaths.halfEnded(cluster, e.Reason)
		return
	}
	j.stop(wire.RefuseHalf, max(e.Code, 1), j.endedBy(e.Reason))
}

func (e Stop) apply(j *Job) {
	if !j.deaths.stops(e.Reason) {
		j.stop(wire.RefuseShutdown, 1, e.Reason)
	}
}

func (e Offered) apply(j *Job) {
	if refused := j.deaths.refusalOfBridge(int(e.Join.Here)); refused != nil {
		j.refuse(e.Conn, refused)
		return
	}
	if refused := j.hops.offered(&e); refused != nil {
		j.refuse(e.Conn, refused)
	}
}

func (e Unreached) apply(j *Job) { j.gaps.fails(e.Zipper, e.Reason) }
func (e Reported) apply(j *Job)  { j.ranks.reported(e.Zipper, &e.State) }

func (e ReportedLoss) apply(j *Job) { j.deaths.handleReport(e.Zipper, &e.Loss) }

func (e Crossed) apply(j *Job) {
	if d, ok := e.Event.(bridge.Dialled); ok {
		j.links.opened(d.Conn, e.Zipper)
	}
	j.cross(e.Zipper, e.Event)
}

// apply handles a frame from another forwarder, over a connection that carries no frames of the
// running job.
func (e ForwarderFrame) apply(j *Job) {
	br := j.links.bridges[e.Zipper]
	switch {
	case br == nil || br.State() == bridge.Over:
		j.do(action.End{Conn: e.Conn, Cause: fmt.Errorf("job %q has ended", j.id)})
	case br.State() == bridge.Gathering && br.First() == e.Conn:
		if err := j.hops.handleFrame(br, &e); err != nil {
			j.gathering.giveUp(wire.RefuseMalformed, fmt.Sprintf("bad %v frame from the forwarder %s: %v", e.Type, br.Address, err))
		}
	default:
		j.handleFrameBeforeUse(&e)
	}
	if e.Room {
		j.do(Free{Bytes: int64(len(e.Body))})
	}
}

// handleFrameBeforeUse handles a frame from another forwarder over a connection that is neither in
// use nor the one over which the job gathers.
func (j *Job) handleFrameBeforeUse(e *ForwarderFrame) {
	switch e.Type {
	case wire.TypePing:
		j.do(action.Send{Conn: e.Conn, Frame: frame(wire.TypePong, nil)})
	case wire.TypePong:
		j.cross(e.Zipper, bridge.Pong{Conn: e.Conn, Link: e.Link})
	case wire.TypeRefuse:
		code, reason := wire.RefuseMalformed, "refused"
		if r, err := wire.ParseRefuse(e.Body); err == nil {
			code, reason = r.Code, wire.Printable(r.Reason)
		}
		j.cross(e.Zipper, bridge.Refused{Conn: e.Conn, Code: code, Reason: reason})
	case wire.TypeReady:
		r, err := wire.ParseReady(e.Body)
		if err != nil {
			j.do(action.End{Conn: e.Conn, Cause: err})
			return
		}
		j.cross(e.Zipper, bridge.Ready{Conn: e.Conn, Zipper: int(r.Zipper), Link: e.Link})
	default:
		j.cross(e.Zipper, bridge.Unexpected{Conn: e.Conn, Type: e.Type})
	}
}

// apply handles malformed bytes over a connection of a bridge that is not in use yet. They end the
// gathering if they came over the first connection, else only the connection.
func (e Spoiled) apply(j *Job) {
	br := j.links.bridges[e.Zipper]
	if br != nil && br.State() == bridge.Gathering && br.First() == e.Conn {
		j.gathering.giveUp(wire.RefuseMalformed, fmt.Sprintf("bad frame from the forwarder %s: %s", br.Address, e.Reason))
		return
	}
	j.do(action.End{Conn: e.Conn, Cause: errors.New(e.Reason)})
}

// crossed gives a bridge the event in m, and carries out the actions that the bridge returns.
func (j *Job) crossed(m message) {
	br := j.links.bridges[m.zipper]
	if br == nil {
		return
	}
	actions, err := br.Handle(j.now, m.event)
	if err != nil {
		j.broken(err)
	}
	for _, a := range actions {
		j.asked(br, a)
	}
}

// asked carries out an action of bridge br that concerns the job. An action that concerns
// connections is passed on to the forwarder.
func (j *Job) asked(br *bridge.Bridge, a action.Action) {
	switch a := a.(type) {
	case bridge.Linked:
		j.hops.linkedTo(br)
	case bridge.GiveUp:
		j.gathering.giveUp(a.Code, a.Reason)
	case bridge.Failed:
		j.deaths.bridgeLost(br, a.Reason, a.Conn)
	case bridge.Use:
		j.ranks.use(br, a.Conn)
	case bridge.Move:
		j.ranks.moved(br, &a)
	case bridge.Unused:
		j.ranks.unused(br, a.Conn)
	case bridge.Severed:
		j.ranks.severed(br, &a)
	case bridge.Restored:
		j.ranks.restored(br, &a)
	case bridge.Repeat:
		j.ranks.repeat(br, a.Reason)
	case bridge.Tell:
		j.ranks.sendStates(br, a.Conn, a.Missed)
		j.deaths.sendAll(a.Conn)
	case bridge.AllLeft:
		j.ranks.allLeft(br)
	case bridge.Abandoned:
		if j.outlives() {
			j.deaths.bridgeLost(br, a.Reason, 0)
		} else {
			j.ranks.abandoned(br, a.Reason)
		}
	case bridge.Regathers:
		j.deaths.sendAll(a.Conn) // first: no ranks of lost clusters join there again
		j.hops.sendGathered(j.ranks, br, a.Conn)
	default:
		j.do(a)
	}
}
