package forwarder

import (
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/wire"
)

// How a job gathers its ranks:
//
//  1. the first Join opens it (open); what all must agree in is the first one's (handshake.Gather);
//  2. each Join is checked against it and takes its rank's place (gather);
//  3. somebody who waits is told what is missing, after a while and after a refusal (notice);
//  4. it ends when the first joiner's time-out is over (expire), when a refusal shows that it can never
//     become complete (noteRefusal), or when the last one leaves (leave);
//  5. when all are in layout.go goes on.

// gather puts a verified joiner to its job, or says why it cannot be in. On the peer's own loop, with f.mu.
func (f *Forwarder) gather(p *peer, j *wire.Join) *handshake.Refused {
	if refused := f.serves(j); refused != nil {
		return refused
	}
	b := f.jobs[j.Job]
	if b == nil {
		var refused *handshake.Refused
		if b, refused = f.open(j, int(j.Here)); refused != nil {
			return refused
		}
	}
	if b.state == running && b.gather.Rails() > 1 && b.hops == nil {
		return f.again(p, b, j)
	}
	if refused := b.gather.Fits(j); refused != nil {
		return refused
	}
	if b.hops != nil {
		if refused := b.belongs(j); refused != nil {
			return refused
		}
	}
	rank, refused := b.gather.Add(j)
	switch {
	case refused != nil:
		return refused
	case b.state != gathering: // a rank of a job that is ending has left its place: not before the job is gone
		return &handshake.Refused{Code: wire.RefuseTaken, Reason: fmt.Sprintf("job %q is already running: give every run a new job id", b.id)}
	}
	now, timeout := f.cfg.clock.Now(), time.Duration(j.TimeoutMS)*time.Millisecond
	if t := now.Add(timeout); t.Before(b.expires) { // whoever is first at the end of its patience decides
		b.expires = t
		b.timer.Reset(timeout)
	}
	p.deadline = time.Time{}
	p.waiting = &waiting{b, rank, f.inside(p, j), j.Instance}
	b.waiting[p] = p.waiting
	f.log.Debug("rank joined", zap.String("job", b.id), zap.String("cluster", j.Cluster), zap.Uint32("rank", j.Rank), zap.Int("virtual_rank", rank),
		zap.String("host", j.Host), zap.String("link", p.conn.Link().Remote()))
	switch {
	case b.hops != nil:
		f.joinedHere(b, j, p.joining.Certificate(j))
	case b.gather.Complete():
		f.complete(b)
	}
	return nil
}

// serves checks whether this forwarder serves a job at all. With f.mu.
func (f *Forwarder) serves(j *wire.Join) *handshake.Refused {
	switch {
	case f.stopping:
		return &handshake.Refused{Code: wire.RefuseShutdown, Reason: stopReason}
	case len(f.cfg.Jobs) > 0 && !slices.Contains(f.cfg.Jobs, j.Job) && !slices.Contains(f.cfg.Jobs, handshake.JobID(j.Job)):
		return &handshake.Refused{Code: wire.RefuseJob, Reason: fmt.Sprintf("this forwarder does not serve job %q: check the job id and the forwarder's address", j.Job)}
	case j.Protocol != f.cfg.Protocol:
		return &handshake.Refused{Code: wire.RefuseSettings, Reason: fmt.Sprintf("this forwarder has %s, the job %s: start both with the same --protocol",
			handshake.ProtocolName(f.cfg.Protocol), handshake.ProtocolName(j.Protocol))}
	case len(j.Zippers) > 0 && f.cfg.Dial == nil:
		return &handshake.Refused{Code: wire.RefuseLayout, Reason: "this forwarder does not serve jobs of several hops"}
	}
	return nil
}

// open begins a job with its first Join; here is this forwarder's index in the job's zippers. With f.mu.
func (f *Forwarder) open(j *wire.Join, here int) (*job, *handshake.Refused) {
	now, timeout := f.cfg.clock.Now(), time.Duration(j.TimeoutMS)*time.Millisecond
	b := &job{id: j.Job, gather: handshake.NewGather(j), waiting: map[*peer]*waiting{}, created: now, clusters: j.Layout, expires: now.Add(timeout)}
	if len(j.Zippers) > 0 {
		var err error
		if b.hops, err = newHops(j, here); err != nil {
			return nil, &handshake.Refused{Code: wire.RefuseLayout, Reason: err.Error()}
		}
	}
	f.jobs[j.Job] = b
	b.timer = f.cfg.clock.AfterFunc(timeout, func() { f.expire(b) })
	b.notice = f.cfg.clock.AfterFunc(f.cfg.Patience, func() { f.notice(b) })
	f.log.Info("job begins to gather", zap.String("job", b.id), zap.Int("ranks", b.gather.Ranks()), zap.Duration("timeout", timeout))
	return b, nil
}

// expire refuses everybody in a job that is not complete in time. If only the kernel keeps it waiting, it
// starts without.
func (f *Forwarder) expire(b *job) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.jobs[b.id] != b:
	case b.state == gathering:
		f.giveUp(b, wire.RefuseTimeout, fmt.Sprintf("job %q is not complete after %v; %s", b.id, f.cfg.clock.Now().Sub(b.created).Round(time.Millisecond), f.missing(b)))
	case b.state == ready:
		f.log.Warn("the kernel does not answer in time; a job starts without connections of its own", zap.String("job", b.id))
		b.opening = nil
		f.start(b)
	}
}

// missing says what keeps a job from being complete. With f.mu.
func (f *Forwarder) missing(b *job) string {
	reason := "missing: " + b.gather.Missing()
	for _, o := range f.jobs {
		if o != b && o.state == gathering && handshake.JobID(o.id) != handshake.JobID(b.id) {
			reason += " (another job waits here too: do all clusters use the same job id?)"
			break
		}
	}
	if s := b.gather.Refusals(); s != "" {
		reason += "; refused: " + s
	}
	if b.hops != nil {
		reason += b.hops.gaps()
	}
	return reason
}

// notice tells the first rank of each cluster that waits what is missing.
func (f *Forwarder) notice(b *job) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b.state != gathering || f.jobs[b.id] != b {
		return
	}
	b.soon = false
	text := fmt.Sprintf("job %q is not complete yet; %s", b.id, f.missing(b))
	for _, p := range b.inOrder() {
		if _, native := b.place(uint32(p.waiting.rank)); native == 0 {
			p.joining.Notice(text)
			p.say()
		}
	}
}

// noteRefusal tells the job that somebody who wanted to be in was refused, and ends the gathering if the rest
// waits in vain. With f.mu.
func (f *Forwarder) noteRefusal(p *peer, e *handshake.Event) {
	b := f.jobs[e.Join.Job]
	if b == nil || b.state != gathering {
		return
	}
	if !b.soon { // not at once: more of them may follow
		b.soon = true
		b.notice.Reset(min(noticeAfterRefusal, f.cfg.Patience))
	}
	if !b.gather.Turned(&e.Join, e.Err.Code) {
		return
	}
	f.giveUp(b, e.Err.Code, fmt.Sprintf("job %q cannot become complete: rank %d of cluster %s on host %s (%s), which has the job's secret, was refused: %s",
		b.id, e.Join.Rank, e.Join.Cluster, e.Join.Host, p.conn.Link().Remote(), e.Err.Reason))
}

// leave takes a peer out of the job that it waits for. With f.mu.
func (f *Forwarder) leave(p *peer) {
	w := p.waiting
	if w == nil {
		return
	}
	b := w.job
	p.waiting = nil
	delete(b.waiting, p)
	switch {
	case b.state != gathering && b.state != ready:
		return
	case b.hops != nil:
		cluster, native := b.place(uint32(w.rank))
		f.giveUp(b, wire.RefuseTimeout, fmt.Sprintf("rank %d of cluster %s left while job %q was joining", native, cluster, b.id))
		return
	}
	b.gather.Remove(w.rank)
	if b.state == ready { // it has to wait again; what the kernel opens meanwhile is not used
		f.to(b, gathering)
		b.opening = nil
		b.notice.Reset(f.cfg.Patience)
	}
	if b.gather.Joined() == 0 {
		f.giveUp(b, 0, "all have left")
	}
}

// giveUp ends the gathering for everybody, on the other forwarders of a job of several hops too. With f.mu.
func (f *Forwarder) giveUp(b *job, code wire.RefuseCode, reason string) {
	if b.state != gathering || f.jobs[b.id] != b {
		return
	}
	f.to(b, ended)
	b.reason = reason
	b.timer.Stop()
	b.notice.Stop()
	delete(f.jobs, b.id)
	f.log.Warn("job never became complete", zap.String("job", b.id), zap.String("reason", reason))
	for _, p := range b.inOrder() {
		p.waiting = nil
		p.refuse(code, reason)
	}
	if b.hops != nil {
		b.hops.cancel()
	}
	for _, br := range b.bridges() {
		br.peer.abortWith(frame(wire.TypeRefuse, &wire.Refuse{Code: code, Reason: reason}))
	}
}
