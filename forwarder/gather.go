package forwarder

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/wire"
)

// How a rank comes into its job:
//
//  1. this forwarder serves the job (gathering.go, serves), which is opened for the first one
//     (open);
//  2. its ticket is good, if one is demanded;
//  3. into a running job only a rank comes that was there before (rails.go, again);
//  4. its Join agrees with the first one's, and takes its rank's place (handshake.Gather), which
//     only the same process can take over (takesOver);
//  5. it waits, at most until the time-out of the one with the least patience;
//  6. the last one completes the job (layout.go), or other forwarders hear of it (hops.go).

// gather puts a verified joiner to its job, or says why it cannot be in. On the peer's own loop,
// with f.mu.
func (f *Forwarder) gather(p *peer, e *handshake.Event) *handshake.Refused {
	j := e.Join
	if f.stopping {
		return refusal(wire.RefuseShutdown, stopReason)
	}
	if refused := f.policy.Load().serves(j); refused != nil {
		return refused
	}
	b := f.jobs.find(j)
	if b != nil && b.another(j) {
		if refused := f.byWay(b, j); refused != nil {
			return refused
		}
		b = nil
	}
	back := b != nil && b.state == running && b.goesOn()
	if e.Ticket != nil && !back { // who comes back has shown the job's key, and was let in before
		return refusal(wire.RefuseTicket, "%v", e.Ticket)
	}
	if b == nil && leaves(j) && knew(f.past, j) {
		return refusal(wire.RefuseTaken, "job %q is over", j.Job)
	}
	if b == nil {
		var refused *handshake.Refused
		if b, refused = f.open(p, e, int(j.Here)); refused != nil {
			return refused
		}
	}
	if refused := b.gather.Fits(j); refused != nil {
		return refused
	}
	if b.hops != nil {
		if refused := b.belongs(j); refused != nil {
			return refused
		}
	}
	if b.pass == nil {
		b.pass, b.guest = e.Pass, j.Guest
	}
	if back {
		return f.again(p, b, j)
	}
	if (b.state == ending || b.state == closing) && b.reason != "" {
		return refusal(wire.RefuseJob, "job %q has failed: %s", b.id, b.reason)
	}
	if v, same := b.gather.Same(j); same && takesOver(p, b, v, j) {
		return nil
	}
	rank, refused := b.gather.Add(j)
	switch {
	case refused != nil:
		return refused
	case b.state != gathering: // a rank of a job that is ending has left its place: not before the job is gone
		return refusal(wire.RefuseTaken, "job %q is already running: give every run a new job id", b.id)
	}
	had := b.kept
	if refused := b.keep(f.memory, j); refused != nil {
		b.gather.Remove(rank)
		if b.gather.Joined() == 0 {
			f.giveUp(b, refused.Code, refused.Reason)
		}
		return refused
	}
	now, timeout := f.cfg.clock.Now(), f.policy.Load().timeout(j)
	if t := now.Add(timeout); t.Before(b.expires) && !leaves(j) { // whoever is first at the end of its patience decides
		b.expires = t
		b.timer.Reset(timeout)
	}
	p.waits(&waiting{b, rank, p.inside(j), j.Instance, b.kept - had})
	if !b.soon && !b.told { // more ranks may be on their way
		b.notice.Reset(f.cfg.Patience)
	}
	if e := f.log.Check(zap.DebugLevel, "rank joined"); e != nil {
		e.Write(zap.String("job", b.id), zap.String("cluster", j.Cluster),
			zap.Uint32("rank", j.Rank), zap.Int("virtual_rank", rank),
			zap.String("host", j.Host), zap.String("link", p.conn.Link().Remote()))
	}
	switch {
	case b.hops != nil:
		f.joinedHere(b, j, p.joining.Certificate(j))
	case b.gather.Complete():
		f.complete(b)
	}
	return nil
}

// waits gives a peer its place. On its own loop, with f.mu.
func (p *peer) waits(w *waiting) {
	p.deadline = time.Time{}
	p.f.strangers.Settle(p.guest)
	p.waiting = w
	w.job.waiting[p] = w
	p.joining.Placed()
}

// takesOver has a process that waits do so over another link, p's: it knows sooner than we that the
// one it had is dead. If that is not, one forwarder has two addresses in the job, and the process
// hears that. With f.mu.
func takesOver(p *peer, b *job, rank int, j *wire.Join) bool {
	old := waitsAs(b, rank)
	if old == nil {
		return false
	}
	w := old.waiting
	if b.state == ready { // what the kernel opens leads to where it was
		p.f.leave(old)
	} else {
		old.waiting = nil
		delete(b.waiting, old)
	}
	old.refuse(wire.RefuseTaken, fmt.Sprintf("rank %d of cluster %q has come to job %q over another link: does the "+
		"job name this forwarder twice?", j.Rank, j.Cluster, b.id))
	if !b.gather.In(rank) { // it joins anew
		return false
	}
	w.inside = p.inside(j)
	p.waits(w)
	return true
}

// A meeting is a job of two processes, which belong to two jobs (handshake.MeetingID). The process
// that waits does not know by which way the other one will come, and waits at one forwarder. The
// one that comes knows. If the way takes several forwarders its Join describes it; the one that
// waits is refused with that description, and joins again by that way.

// another reports whether a Join to a meeting describes another way than those that wait there.
func (j *job) another(join *wire.Join) bool {
	return j.state == gathering && handshake.IsMeeting(j.id) && (j.hops == nil) != (len(join.Zippers) == 0)
}

// byWay makes room for a process that comes to a meeting by a way of several hops. If one has come
// so already, it refuses a Join that is of no such way, with that way as the reason. With f.mu.
func (f *Forwarder) byWay(b *job, j *wire.Join) *handshake.Refused {
	if len(j.Zippers) == 0 {
		return refusal(wire.RefuseMeeting, "%s", b.gather.Way().String())
	}
	f.giveUp(b, wire.RefuseMeeting, handshake.WayOf(j).String())
	return nil
}
