package forwarder

import (
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder/halves"
	"github.com/leidenzipper/zipper/forwarder/job"
	"github.com/leidenzipper/zipper/forwarder/report"
	"github.com/leidenzipper/zipper/forwarder/trunk"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Which job a verified Join goes to:
//
//  1. this forwarder serves the job (policy.serves);
//  2. the job is here, or is opened for it (open): its ticket is good, if one is demanded, and there
//     is room for one more;
//  3. the job's state machine decides about the Join (package job).

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

// joins puts a verified joiner to its job, or says why it cannot be in. On the peer's own loop.
func (f *Forwarder) joins(p *peer, e *handshake.Event) *handshake.Refused {
	if f.isStopping() {
		return refusal(wire.RefuseShutdown, stopReason)
	}
	if refused := f.policy.Load().serves(e.Join); refused != nil {
		return refused
	}
	for {
		r := f.find(e.Join)
		if r == nil {
			if e.Ticket != nil {
				return refusal(wire.RefuseTicket, "%v", e.Ticket)
			}
			var refused *handshake.Refused
			if r, refused = f.open(p, e, int(e.Join.Here)); refused != nil {
				return refused
			}
			f.another(r)
		}
		if here, refused := r.joins(p, e); here {
			return refused
		}
	}
}

// joins gives the job a verified Join. here: the job has not ended.
func (r *runner) joins(p *peer, e *handshake.Event) (here bool, refused *handshake.Refused) {
	r.mu.Lock()
	defer r.unlock()
	j := e.Join
	switch {
	case r.job.State() == job.Ended:
		return false, nil
	case !r.job.AnotherWay(j):
	case len(j.Zippers) == 0:
		return true, refusal(wire.RefuseMeeting, "%s", r.job.Gather().Way().String())
	default: // a process comes to a meeting by a way of several hops, and the other one joins again by that
		r.handle(job.GiveUp{Code: wire.RefuseMeeting, Reason: handshake.WayOf(j).String()})
		return false, nil
	}
	r.room = j.Append(r.room[:0])
	n := int64(len(r.room))
	inside, home := p.inside(j)
	r.conns[p.id], r.verified = p, e
	r.handle(job.Joined{Conn: p.id, Link: p.conn.Link().Remote(), Join: j, Ticket: e.Ticket,
		Timeout: r.f.policy.Load().timeout(j), Bytes: n, Room: r.f.memory.Keep(n), Inside: inside, Home: home})
	r.verified = nil
	if p.run == nil { // it was refused
		delete(r.conns, p.id)
	}
	return true, nil
}

// bridges gives a job a connection that another forwarder has made, or says why it is not taken. On
// the peer's own loop.
func (f *Forwarder) bridges(p *peer, e *handshake.Event) *handshake.Refused {
	if f.isStopping() {
		return refusal(wire.RefuseShutdown, stopReason)
	}
	if refused := f.policy.Load().serves(e.Join); refused != nil {
		return refused
	}
	for {
		r := f.find(e.Join)
		if r == nil {
			switch why := f.hasFailed(e.Join); {
			case e.Ticket != nil:
				return refusal(wire.RefuseTicket, "%v", e.Ticket)
			case e.Number > 0 && why != "":
				return refusal(wire.RefuseJob, "job %q has failed: %s", e.Join.Job, why)
			case e.Number > 0:
				return refusal(wire.RefuseTaken, "job %q is not here", e.Join.Job)
			}
			var refused *handshake.Refused
			if r, refused = f.open(p, e, e.To); refused != nil {
				return refused
			}
			f.another(r)
		}
		if r.bridges(p, e) {
			return nil
		}
	}
}

// bridges gives the job a connection of another forwarder, and reports whether the job has not
// ended.
func (r *runner) bridges(p *peer, e *handshake.Event) (here bool) {
	r.mu.Lock()
	defer r.unlock()
	switch {
	case r.job.State() == job.Ended:
		return false
	case r.job.AnotherWay(e.Join):
		r.handle(job.GiveUp{Code: wire.RefuseMeeting, Reason: handshake.WayOf(e.Join).String()})
		return false
	case r.job.OpensAgain(e.Join, e.Number):
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

// open begins a job with its first Join, p's; here is this forwarder's index in the job's zippers.
// If another peer has opened it meanwhile it is that one.
func (f *Forwarder) open(p *peer, e *handshake.Event, here int) (*runner, *handshake.Refused) {
	f.mu.Lock()
	defer f.mu.Unlock()
	j := e.Join
	if r, ok := f.jobs.Find(j); ok {
		return r, nil
	}
	if job.Leaves(j) && report.Last(f.past, j) != nil {
		return nil, refusal(wire.RefuseTaken, "job %q is over", j.Job)
	}
	if gone := f.halves.Without(halves.Run{ID: handshake.JobID(j.Job), Key: j.PublicKey}, j.Cluster,
		f.cfg.clock.Now()); gone != "" {
		return nil, refusal(wire.RefuseHalf,
			"job %s ended before this half came: %s (start both halves again, with a new job id)",
			handshake.JobID(j.Job), gone)
	}
	if f.drain.on {
		return nil, refusal(wire.RefuseShutdown, drainReason)
	}
	if n := job.LinksOf(j, here); n > f.cfg.files {
		return nil, refusal(wire.RefuseLayout,
			"job %q has %d ranks with a link to this forwarder, which may have %d links open: "+
				"start it with ulimit -n %d or more (LimitNOFILE= of a service)", j.Job, n, f.cfg.files, n+otherFiles)
	}
	if err := f.strangers.MayOpen(p.guest); err != nil {
		return nil, refusal(wire.RefuseFull, "%v", err)
	}
	policy := f.policy.Load()
	mostOf := policy.MaxJobsOf
	if policy.Ticket == nil { // users are not known
		mostOf = 0
	}
	if err := f.jobs.Full(e.User, policy.MaxJobs, mostOf); err != nil {
		return nil, refusal(wire.RefuseFull, "%v", err)
	}
	r, refused := newRunner(f, e, here, p.guest)
	if refused != nil {
		return nil, refused
	}
	f.jobs.Add(r)
	f.strangers.Opened(r.opener)
	return r, nil
}

// another tells a new job, and those of its id, that there is another one with another secret: a
// slip of the pen, or a stranger.
func (f *Forwarder) another(r *runner) {
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

// noteRefusal tells the job that a joiner was refused. Nobody has proven which job a joiner without
// the secret belongs to: it may be any of that id.
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

// hasFailed says why a job that is over has failed; empty: it has not, or is not known.
func (f *Forwarder) hasFailed(j *wire.Join) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := report.Last(f.past, j); s != nil {
		return s.Reason
	}
	return ""
}

// Launchers speak of their halves (wire.Half): the holder of a job's secret may end it, by name.
// If the job is not here, another half may come later, and is told then what it would wait for
// (part), unless the job has ended while that half was there.

// hear does what a launcher's word asks for, and says what came of it.
func (f *Forwarder) hear(h *wire.Half) (text string, refused *handshake.Refused) {
	h.Reason = wire.Printable(h.Reason[:min(len(h.Reason), halves.MaxReason)])
	run := halves.Run{ID: handshake.JobID(h.Job), Key: h.PublicKey}
	here := slices.DeleteFunc(f.all(), func(r *runner) bool { return r.halves() != run || !r.job.Has(h.Cluster) })
	f.log.Warn("word of a half", zap.String("job", h.Job), zap.String("cluster", h.Cluster),
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
			// more of its ranks may come
			if r.take(job.HalfEnded{Reason: h.Reason, Code: h.Code}) == job.Ended && gathered {
				f.mu.Lock()
				f.halves.Gone(run, h.Cluster, h.Reason, f.cfg.clock.Now().Add(f.policy.Load().waits(h)))
				f.mu.Unlock()
			}
		case wire.HalfSuspended:
			r.take(job.HalfSuspended{Cluster: h.Cluster, Reason: h.Reason})
		case wire.HalfResumed:
			r.take(job.HalfResumed{Cluster: h.Cluster})
		}
	}
	return "heard", nil
}

// part notes the end of a half whose job is not here.
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
			return "", refusal(wire.RefuseTicket, "%v", err)
		}
	}
	f.halves.Gone(run, h.Cluster, h.Reason, now.Add(policy.waits(h)))
	return "noted for the other halves", nil
}

// waits is how long others wait for a half.
func (c *Config) waits(h *wire.Half) time.Duration {
	return min(time.Duration(h.TimeoutMS)*time.Millisecond, c.MaxTimeout)
}

// ClusterEnded notes that all processes of a job's cluster have ended, so that none of its ranks
// comes back: a link of theirs that has closed without Bye, or does so later, fails the job at
// once. It is for the launcher in the forwarder's own process, which knows that by itself. Safe for
// concurrent use.
func (f *Forwarder) ClusterEnded(id, cluster string) {
	for _, r := range f.all() {
		if handshake.JobID(r.id) == id {
			r.take(job.ClusterEnded{Cluster: cluster})
		}
	}
}

// find gives the job that a Join is for; nil: it is not there.
func (f *Forwarder) find(j *wire.Join) *runner {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, _ := f.jobs.Find(j)
	return r
}

// all is all jobs, in order.
func (f *Forwarder) all() []*runner {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.jobs.InOrder()
}

// isStopping reports whether the forwarder takes no more peers.
func (f *Forwarder) isStopping() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stopping
}
