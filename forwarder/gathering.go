package forwarder

import (
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder/budget"
	"github.com/leidenzipper/zipper/forwarder/halves"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/wire"
)

// A job while it gathers:
//
//  1. the first Join opens it (open); what all must agree in is the first one's (handshake.Gather);
//  2. somebody who waits is told what is missing, after a while and after a refusal (notice);
//  3. it is given up when the time-out of a joiner is over (expire), when a refusal shows that it
//     can never become complete (noteRefusal), or when the last one leaves (leave).

// serves checks whether a forwarder serves a job at all.
func (p *policy) serves(j *wire.Join) *handshake.Refused {
	switch {
	case len(p.Jobs) > 0 && !slices.Contains(p.Jobs, j.Job) &&
		!slices.Contains(p.Jobs, handshake.JobID(j.Job)):
		return refusal(wire.RefuseJob,
			"this forwarder does not serve job %q: check the job id and the forwarder's address", j.Job)
	case j.Protocol != p.Protocol:
		return refusal(wire.RefuseSettings,
			"this forwarder has %s, the job %s: start both with the same --protocol",
			handshake.ProtocolName(p.Protocol), handshake.ProtocolName(j.Protocol))
	case j.Level < p.Level:
		return refusal(wire.RefuseSettings,
			"the job has level %v, this forwarder serves %v or stronger: start it with --level %v",
			j.Level, p.Level, p.Level)
	case wire.Ranks(j.Layout) > p.MaxRanks:
		return refusal(wire.RefuseLayout, "the job has %d ranks, at most %d are served here (--max-ranks)",
			wire.Ranks(j.Layout), p.MaxRanks)
	case len(j.Zippers) > 0 && p.Dial == nil:
		return refusal(wire.RefuseLayout, "this forwarder does not serve jobs of several hops")
	}
	return nil
}

// open begins a job with its first Join, p's; here is this forwarder's index in the job's zippers.
// With f.mu.
func (f *Forwarder) open(p *peer, e *handshake.Event, here int) (*job, *handshake.Refused) {
	j := e.Join
	if gone := f.halves.Without(halves.Run{ID: handshake.JobID(j.Job), Key: j.PublicKey}, j.Cluster,
		f.cfg.clock.Now()); gone != "" {
		return nil, refusal(wire.RefuseHalf,
			"job %s ended before this half came: %s (start both halves again, with a new job id)",
			handshake.JobID(j.Job), gone)
	}
	if f.drain.on {
		return nil, refusal(wire.RefuseShutdown, drainReason)
	}
	if n := linksOf(j, here); n > f.cfg.files {
		return nil, refusal(wire.RefuseLayout,
			"job %q has %d ranks with a link to this forwarder, which may have %d links open: "+
				"start it with ulimit -n %d or more (LimitNOFILE= of a service)", j.Job, n, f.cfg.files, n+otherFiles)
	}
	if err := f.strangers.MayOpen(p.guest); err != nil {
		return nil, refusal(wire.RefuseFull, "%v", err)
	}
	if refused := f.jobs.mayOpen(e.User, &f.policy.Load().Config); refused != nil {
		return nil, refused
	}
	now, timeout := f.cfg.clock.Now(), f.policy.Load().timeout(j)
	b := &job{id: j.Job, key: j.PublicKey, user: e.User, log: f.log, illegal: f.illegal,
		gather: handshake.NewGather(j), waiting: map[*peer]*waiting{}, created: now,
		clusters: j.Layout, expires: now.Add(timeout)}
	if len(j.Zippers) > 0 {
		var err error
		if b.hops, err = newHops(j, here, timeout); err != nil {
			return nil, refusal(wire.RefuseLayout, "%v", err)
		}
	}
	f.jobs.add(b)
	b.opener = p.guest
	f.strangers.Opened(b.opener)
	b.timer = f.cfg.clock.AfterFunc(timeout, func() { f.expire(b) })
	b.notice = f.cfg.clock.AfterFunc(f.cfg.Patience, func() { f.notice(b) })
	for _, o := range f.jobs[b.id] { // with another secret: a slip of the pen, or a stranger
		if o != b && o.state == gathering {
			f.noticeSoon(o)
			f.noticeSoon(b)
		}
	}
	f.log.Info("job begins to gather", zap.String("job", b.id), zap.Int("ranks", b.gather.Ranks()),
		zap.Duration("timeout", timeout), zap.String("user", b.user))
	return b, nil
}

// linksOf is how many ranks of a job have a link to the forwarder with that index.
func linksOf(j *wire.Join, here int) int {
	if len(j.Zippers) == 0 {
		return wire.Ranks(j.Layout)
	}
	n := 0
	for _, p := range j.Zippers[here].Ports {
		if int(p.Network) < len(j.Layout) { // else one without ranks
			n += int(j.Layout[p.Network].Size)
		}
	}
	return n
}

// keep books a Join that a job keeps as long as it is there, or says that there is no room. With
// f.mu.
func (b *job) keep(memory *budget.Budget, j *wire.Join) *handshake.Refused {
	b.room = j.Append(b.room[:0])
	n := int64(len(b.room))
	most := joinsLeast + int64(b.gather.Ranks())*joinShare
	switch {
	case b.kept+n > most:
		return refusal(wire.RefuseLayout, "the names and addresses in the Joins of job %q take more than %d bytes",
			b.id, most)
	case !memory.Keep(n):
		return refusal(wire.RefuseFull, "this forwarder has no memory left (--memory)")
	}
	b.kept += n
	return nil
}

// drop gives back the memory of a job's Joins. With f.mu.
func (b *job) drop(memory *budget.Budget, n int64) {
	b.kept -= n
	memory.Drop(n)
}

// expire refuses everybody in a job that is not complete in time. A job that is ready only waits
// for the kernel: opened sees to that.
func (f *Forwarder) expire(b *job) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b.state == gathering {
		f.giveUp(b, wire.RefuseTimeout, fmt.Sprintf("job %q is not complete after %v; %s", b.id,
			f.cfg.clock.Now().Sub(b.created).Round(time.Millisecond), f.jobs.missing(b)))
	}
}

// missing says what keeps a job from being complete. With Forwarder.mu.
func (m jobs) missing(b *job) string {
	reason := "missing: " + b.gather.Missing()
	reason += m.besides(b)
	if s := b.gather.Refusals(); s != "" {
		reason += "; refused: " + s
	}
	if b.hops != nil {
		if s := b.hops.gaps(nil); s != "" {
			reason += "; " + s
		}
	}
	return reason
}

// notice tells the first rank of each cluster that waits what is missing.
func (f *Forwarder) notice(b *job) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b.state != gathering {
		return
	}
	b.soon, b.told = false, true
	text := fmt.Sprintf("job %q is not complete yet; %s", b.id, f.jobs.missing(b))
	for _, p := range b.inOrder() {
		if _, native := b.place(uint32(p.waiting.rank)); native == 0 {
			p.joining.Notice(text)
			p.say()
		}
	}
}

// noteRefusal tells the job that somebody who wanted to be in was refused, and ends the gathering
// if the rest waits in vain. With f.mu.
func (f *Forwarder) noteRefusal(p *peer, e *handshake.Event) {
	if e.Join == nil {
		return
	}
	b := f.jobs.find(e.Join)
	if e.Err.Code == wire.RefuseSecret { // whose it is nobody has proven: it may belong to any of that id
		for _, b := range f.jobs[e.Join.Job] {
			if b.state == gathering {
				b.gather.NoteRefusal(e.Join, e.Err.Code)
				f.noticeSoon(b)
			}
		}
		return
	}
	if b == nil || b.state != gathering {
		return
	}
	f.noticeSoon(b)
	if !b.gather.NoteRefusal(e.Join, e.Err.Code) {
		return
	}
	f.giveUp(b, e.Err.Code, fmt.Sprintf("job %q cannot become complete: "+
		"rank %d of cluster %s on host %s (%s), which has the job's secret, was refused: %s",
		b.id, e.Join.Rank, e.Join.Cluster, e.Join.Host, p.conn.Link().Remote(), e.Err.Reason))
}

// noticeSoon has those who wait told what is missing: not at once, since more may follow. With
// f.mu.
func (f *Forwarder) noticeSoon(b *job) {
	if !b.soon {
		b.soon = true
		b.notice.Reset(min(noticeAfterRefusal, f.cfg.Patience))
	}
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
		f.giveUp(b, wire.RefuseTimeout, fmt.Sprintf("rank %d of cluster %s left while job %q was joining",
			native, cluster, b.id))
		return
	}
	b.gather.Remove(w.rank)
	b.drop(f.memory, w.kept)
	if b.state == ready { // it has to wait again; what the kernel opens meanwhile is not used
		b.to(gathering)
		b.opening = nil
		b.notice.Reset(f.cfg.Patience)
		b.timer.Reset(b.expires.Sub(f.cfg.clock.Now()))
	}
	if b.gather.Joined() == 0 {
		f.giveUp(b, 0, "all have left")
	}
}

// giveUp ends the gathering for everybody, on the other forwarders of a job of several hops too.
// With f.mu.
func (f *Forwarder) giveUp(b *job, code wire.RefuseCode, reason string) {
	if b.state != gathering {
		return
	}
	b.to(ended)
	b.reason = reason
	b.timer.Stop()
	b.notice.Stop()
	f.jobs.remove(b)
	f.halves.Over(b.run(), f.cfg.clock.Now())
	f.drain.check(f.jobs)
	b.drop(f.memory, b.kept)
	f.strangers.Over(b.opener)
	f.totals.Incomplete++
	f.log.Warn("job never became complete", zap.String("job", b.id), zap.String("reason", reason))
	for _, p := range b.inOrder() {
		p.waiting = nil
		p.refuse(code, reason)
	}
	if b.hops != nil {
		b.hops.over()
	}
	for _, br := range b.bridges() {
		br.first().abortWith(frame(wire.TypeRefuse, &wire.Refuse{Code: code, Reason: reason}))
		br.noMore()
	}
}
