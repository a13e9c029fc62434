package forwarder

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder/halves"
	"github.com/leidenzipper/zipper/forwarder/job"
	"github.com/leidenzipper/zipper/forwarder/trunk"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// How a verified Join finds its job:
//
//  1. If the job is not here it is opened (open). The forwarder's settings must permit it
//     (policy.serves); it needs a valid ticket, if tickets are demanded, and room for one more job.
//  2. The job's state machine decides about the Join (package job).

// serves returns why the forwarder's settings do not permit the job of a Join, or nil if they do.
func (p *policy) serves(j *wire.Join) *handshake.Refused {
	switch {
	case len(p.Jobs) > 0 && !slices.Contains(p.Jobs, j.Job) &&
		!slices.Contains(p.Jobs, handshake.JobID(j.Job)):
		return handshake.Refusal(wire.RefuseJob,
			"this forwarder does not serve job %q: check the job id and the forwarder's address", j.Job)
	case j.Protocol != p.Protocol:
		return handshake.Refusal(wire.RefuseSettings,
			"this forwarder has %s, the job %s: start both with the same --protocol",
			handshake.ProtocolName(p.Protocol), handshake.ProtocolName(j.Protocol))
	case j.Level < p.Level:
		return handshake.Refusal(wire.RefuseSettings,
			"the job has level %v, this forwarder serves %v or stronger: start it with --level %v",
			j.Level, p.Level, p.Level)
	case wire.Ranks(j.Layout) > p.MaxRanks:
		return handshake.Refusal(wire.RefuseLayout, "the job has %d ranks, at most %d are served here (--max-ranks)",
			wire.Ranks(j.Layout), p.MaxRanks)
	case len(j.Zippers) > 0 && p.Dial == nil:
		return handshake.Refusal(wire.RefuseLayout, "this forwarder does not serve jobs of several hops")
	}
	return nil
}

// joins gives the verified Join of a peer, in e, to the job that it is for, which may refuse it by
// the action job.Refuse. joins itself returns a refusal if the Join does not get to a job, else
// nil. On the peer's own loop.
func (f *Forwarder) joins(p *peer, e *handshake.Event) *handshake.Refused {
	if f.isStopping() {
		return handshake.Refusal(wire.RefuseShutdown, stopReason)
	}
	for {
		r := f.find(e.Join)
		if r == nil {
			if refused := f.policy.Load().serves(e.Join); refused != nil {
				return refused
			}
			if e.Ticket != nil {
				return handshake.Refusal(wire.RefuseTicket, "%v", e.Ticket)
			}
			var refused *handshake.Refused
			if r, refused = f.open(p, e, int(e.Join.Here)); refused != nil {
				return refused
			}
			f.warnSameID(r)
		}
		if here, refused := r.joins(p, e); here {
			return refused
		}
	}
}

// joins gives the job a verified Join, which the job may refuse by the action job.Refuse. refused
// is not nil only if the Join is for a meeting whose other process waits for it by another way.
// here is false if the job has ended, so that another one must be found.
func (r *runner) joins(p *peer, e *handshake.Event) (here bool, refused *handshake.Refused) {
	r.mu.Lock()
	defer r.unlock()
	j := e.Join
	switch {
	case r.job.State() == job.Ended:
		return false, nil
	case !r.job.PathDiffers(j):
	case len(j.Zippers) == 0:
		return true, handshake.Refusal(wire.RefuseMeeting, "%s", r.job.Gather().Way().String())
	default: // the process that waits joins again, by the way of several hops in this Join
		r.handle(job.GiveUp{Code: wire.RefuseMeeting, Reason: handshake.WayOf(j).String()})
		return false, nil
	}
	r.room = j.Append(r.room[:0])
	n := int64(len(r.room))
	inside, home, from := p.ends(j)
	r.conns[p.id], r.verified = p, e
	r.handle(job.Joined{Conn: p.id, Link: p.conn.Link().Remote(), Join: j, Ticket: e.Ticket,
		Timeout: r.f.policy.Load().timeout(j), Bytes: n, Room: r.f.memory.Keep(n), Inside: inside, Home: home,
		From: from})
	r.verified = nil
	if p.run == nil { // it was refused
		delete(r.conns, p.id)
	}
	return true, nil
}

// bridges gives a connection from another forwarder to its job, which may refuse it by the action
// job.Refuse. bridges itself returns a refusal if the connection does not get to a job, else nil.
// On the peer's own loop.
func (f *Forwarder) bridges(p *peer, e *handshake.Event) *handshake.Refused {
	if f.isStopping() {
		return handshake.Refusal(wire.RefuseShutdown, stopReason)
	}
	for {
		r := f.find(e.Join)
		if r == nil {
			if refused := f.policy.Load().serves(e.Join); refused != nil {
				return refused
			}
			switch why := f.hasFailed(e.Join); {
			case e.Ticket != nil:
				return handshake.Refusal(wire.RefuseTicket, "%v", e.Ticket)
			case e.Number > 0 && why != "":
				return handshake.Refusal(wire.RefuseJob, "job %q has failed: %s", e.Join.Job, why)
			case e.Number > 0:
				return handshake.Refusal(wire.RefuseTaken, "job %q is not here", e.Join.Job)
			}
			var refused *handshake.Refused
			if r, refused = f.open(p, e, e.To); refused != nil {
				return refused
			}
			f.warnSameID(r)
		}
		if r.bridges(p, e) {
			return nil
		}
	}
}

// bridges gives the job a connection that another forwarder has opened. It returns false if the job
// has ended, so that another one must be found.
func (r *runner) bridges(p *peer, e *handshake.Event) (here bool) {
	r.mu.Lock()
	defer r.unlock()
	switch {
	case r.job.State() == job.Ended:
		return false
	case r.job.PathDiffers(e.Join):
		r.handle(job.GiveUp{Code: wire.RefuseMeeting, Reason: handshake.WayOf(e.Join).String()})
		return false
	case r.job.Reopens(e.Join, e.Number):
		r.handle(job.GiveUp{Code: wire.RefuseShutdown, Reason: fmt.Sprintf(
			"the link to the forwarder %s is lost: it opens another one", r.job.Name(int(e.Join.Here)))})
		return false
	}
	r.conns[p.id] = p
	r.handle(job.Offered{Conn: p.id, Join: e.Join, Here: e.To, Number: e.Number, Ticket: e.Ticket,
		Link: trunk.LinkOf(p.conn.Link())})
	if p.run == nil {
		delete(r.conns, p.id)
	}
	return true
}

// open opens a job for its first Join, which p has sent or shown. It returns the job, also if
// another peer has opened it meanwhile, or why no job may be opened. here is this forwarder's index
// in the job's zippers.
func (f *Forwarder) open(p *peer, e *handshake.Event, here int) (*runner, *handshake.Refused) {
	f.mu.Lock()
	defer f.mu.Unlock()
	j := e.Join
	if r, ok := f.jobs.Find(j); ok {
		return r, nil
	}
	if job.Leaves(j) && f.past.Last(j) != nil {
		return nil, handshake.Refusal(wire.RefuseTaken, "job %q is over", j.Job)
	}
	if gone := f.halves.Without(halves.Run{ID: handshake.JobID(j.Job), Key: j.PublicKey}, j.Cluster,
		f.cfg.clock.Now()); gone != "" {
		return nil, handshake.Refusal(wire.RefuseHalf,
			"job %s ended before this half came: %s (start both halves again, with a new job id)",
			handshake.JobID(j.Job), gone)
	}
	switch {
	case f.stopping: // since the caller looked; shutdown would not know of the job
		return nil, handshake.Refusal(wire.RefuseShutdown, stopReason)
	case f.drain.on:
		return nil, handshake.Refusal(wire.RefuseShutdown, drainReason)
	}
	if n := job.LinksOf(j, here); n > f.cfg.files {
		return nil, handshake.Refusal(wire.RefuseLayout,
			"job %q has %d ranks with a link to this forwarder, which may have %d links open: "+
				"start it with ulimit -n %d or more (LimitNOFILE= of a service)", j.Job, n, f.cfg.files, n+otherFiles)
	}
	if err := f.strangers.MayOpen(p.guest); err != nil {
		return nil, handshake.Refusal(wire.RefuseFull, "%v", err)
	}
	policy := f.policy.Load()
	mostOf := policy.MaxJobsOf
	if policy.Ticket == nil { // without tickets users are unknown
		mostOf = 0
	}
	if err := f.jobs.Full(e.User, policy.MaxJobs, mostOf); err != nil {
		return nil, handshake.Refusal(wire.RefuseFull, "%v", err)
	}
	r, refused := newRunner(f, e, here, p.guest)
	if refused != nil {
		return nil, refused
	}
	f.jobs.Add(r)
	f.strangers.Opened(r.opener)
	return r, nil
}

// warnSameID tells a new job, and the gathering jobs with the same id, of each other. They have
// different keys: a user's mistake, or a stranger.
func (f *Forwarder) warnSameID(r *runner) {
	f.mu.Lock()
	same := slices.Clone(f.jobs[r.id])
	f.mu.Unlock()
	for _, o := range same {
		if o != r && o.Gathering() {
			o.take(job.Another{})
			r.take(job.Another{})
		}
	}
}

// noteRefusal tells the job of a Join that the process behind link was refused, for the reason why.
// A process without the secret has not proven which job it belongs to, so all jobs with that id are
// told.
func (f *Forwarder) noteRefusal(j *wire.Join, link string, why *handshake.Refused) {
	f.mu.Lock()
	of := slices.Clone(f.jobs[j.Job])
	if why.Code != wire.RefuseSecret {
		of = slices.DeleteFunc(of, func(r *runner) bool { return r.key != j.PublicKey })
	}
	f.mu.Unlock()
	for _, r := range of {
		r.take(job.Turned{Join: j, Link: link, Why: why})
	}
}

// hasFailed returns why the job that a Join is for has failed, if that job has ended; empty if it
// did not fail or is not known.
func (f *Forwarder) hasFailed(j *wire.Join) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.past.Last(j); s != nil {
		return s.Reason
	}
	return ""
}

// Launchers report what happens to their halves (wire.Half). A launcher that has the job's secret
// may end the job by its id. If the job is not here, another half may come later. It is refused
// then with the reason (part), unless the job has ended here since the half that ended was started.

// handleReport handles a launcher's report about its half of a job (the ranks that it has started).
// It returns the text of the answer, or why the report is refused.
func (f *Forwarder) handleReport(h *wire.Half) (text string, refused *handshake.Refused) {
	h.Reason = wire.Printable(strings.ToValidUTF8(h.Reason[:min(len(h.Reason), halves.MaxReason)], ""))
	run := halves.Run{ID: handshake.JobID(h.Job), Key: h.PublicKey}
	here := slices.DeleteFunc(f.all(), func(r *runner) bool { return r.halves() != run || !r.job.Has(h.Cluster) })
	f.log.Warn("a half of a job reports its state", zap.String("job", h.Job), zap.String("cluster", h.Cluster),
		zap.Stringer("state", h.State), zap.String("reason", h.Reason), zap.Int("jobs", len(here)))
	if len(here) == 0 {
		if h.State == wire.HalfEnded {
			return f.part(run, h)
		}
		return "the job is not here", nil
	}
	for _, r := range here {
		switch h.State {
		case wire.HalfEnded:
			gathered := r.Gathering()
			// more ranks of the job may come
			if r.take(job.HalfEnded{Cluster: h.Cluster, Reason: h.Reason, Code: h.Code}) == job.Ended && gathered {
				f.mu.Lock()
				f.halves.Ended(run, h.Cluster, h.Reason, f.cfg.clock.Now().Add(f.policy.Load().waits(h)))
				f.mu.Unlock()
			}
		case wire.HalfSuspended:
			r.take(job.HalfSuspended{Cluster: h.Cluster, Reason: h.Reason})
		case wire.HalfResumed:
			r.take(job.HalfResumed{Cluster: h.Cluster})
		}
	}
	return "accepted", nil
}

// part records that a half of a job has ended, because the job itself is not at this forwarder. It
// returns the text of the answer to the launcher, or why the report is refused.
func (f *Forwarder) part(run halves.Run, h *wire.Half) (string, *handshake.Refused) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.cfg.clock.Now()
	if f.halves.Took(run, now.Add(-time.Duration(h.RanMS)*time.Millisecond)) {
		return "the job has ended", nil
	}
	policy := f.policy.Load()
	join := wire.Join{Job: h.Job, PublicKey: h.PublicKey, Ticket: h.Ticket, Protocol: f.cfg.Protocol,
		Level: policy.Level}
	if refused := policy.serves(&join); refused != nil {
		return "", refused
	}
	if policy.Ticket != nil {
		if _, err := policy.Ticket(&join); err != nil {
			return "", handshake.Refusal(wire.RefuseTicket, "%v", err)
		}
	}
	f.halves.Ended(run, h.Cluster, h.Reason, now.Add(policy.waits(h)))
	return "noted for the other halves", nil
}

// waits returns for how long the end of a job's half is remembered: as long as the ranks of other
// halves may wait for that half.
func (c *Config) waits(h *wire.Half) time.Duration {
	return min(time.Duration(h.TimeoutMS)*time.Millisecond, c.MaxTimeout)
}

// ClusterEnded tells the forwarder that all processes of a cluster of the job with an id have
// ended, so none of its ranks reconnects. A link of such a rank that has closed without Bye, or
// does so later, fails the job at once, unless the job has other forwarders. The launcher in the
// forwarder's own process calls it. Safe for concurrent use.
func (f *Forwarder) ClusterEnded(id, cluster string) {
	for _, r := range f.all() {
		if handshake.JobID(r.id) == id {
			r.take(job.ClusterEnded{Cluster: cluster})
		}
	}
}

// find returns the job, gathering or running, that a Join is for, or nil if it is not at this
// forwarder.
func (f *Forwarder) find(j *wire.Join) *runner {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, _ := f.jobs.Find(j)
	return r
}

// all returns all jobs that have not ended, in order of their ids.
func (f *Forwarder) all() []*runner {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.jobs.InOrder()
}

// isStopping reports whether the forwarder has begun to shut down.
func (f *Forwarder) isStopping() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stopping
}
