package forwarder

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder/halves"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/wire"
)

// What launchers say of their halves (wire.Half): who holds a job's secret may end it, by name.
//
//  1. a half has ended: a job that gathers or runs ends with that reason (stop). A job of one
//     forwarder waits a moment for a rank whose link was closed (rails.go), so the launcher's word,
//     which knows the cause, comes before that;
//  2. the job is not here: another half may come later, and is told then what it would wait for
//     (part; open in gathering.go), unless the job has ended while that half was there;
//  3. a half is suspended: the job ends if that takes longer than its patience (suspend).

// said takes the word of a launcher, which then leaves. With f.mu.
func (p *peer) said(h *wire.Half) *handshake.Refused {
	text, refused := p.hear(h)
	if refused != nil {
		return refused
	}
	p.joining.Heard(text)
	p.say()
	p.joining = nil
	p.conn.Post(p.conn.Linger)
	return nil
}

// hear does what a launcher's word asks for, and says what came of it. With f.mu.
func (p *peer) hear(h *wire.Half) (text string, refused *handshake.Refused) {
	f := p.f
	h.Reason = wire.Printable(h.Reason[:min(len(h.Reason), halves.MaxReason)])
	run := halves.Run{ID: handshake.JobID(h.Job), Key: h.PublicKey}
	var here []*job
	for _, b := range f.jobs.inOrder() {
		if b.run() == run && slices.ContainsFunc(b.clusters, func(c wire.Cluster) bool { return c.Name == h.Cluster }) {
			here = append(here, b)
		}
	}
	f.log.Warn("word of a half", zap.String("job", h.Job), zap.String("cluster", h.Cluster),
		zap.Stringer("state", h.State),
		zap.String("reason", h.Reason), zap.Int("jobs", len(here)))
	if len(here) == 0 {
		if h.State == wire.HalfEnded {
			return p.part(run, h)
		}
		return "the job is not here", nil
	}
	for _, b := range here {
		switch h.State {
		case wire.HalfEnded:
			b.stop(f, wire.RefuseHalf, max(h.Code, 1), b.endedBy(h.Reason))
			if b.state == ended { // it was gathering: others of its ranks may be on their way
				f.halves.Gone(b.run(), h.Cluster, h.Reason, f.cfg.clock.Now().Add(f.policy.Load().waits(h)))
			}
		case wire.HalfSuspended:
			b.suspend(f, h)
		case wire.HalfResumed:
			b.resume(h.Cluster)
		}
	}
	return "heard", nil
}

// part notes the end of a half whose job is not here. With f.mu.
func (p *peer) part(run halves.Run, h *wire.Half) (string, *handshake.Refused) {
	f := p.f
	now := f.cfg.clock.Now()
	if f.halves.Took(run, now.Add(-time.Duration(h.RanMS)*time.Millisecond)) {
		return "the job has ended", nil
	}
	join := wire.Join{Job: h.Job, PublicKey: h.PublicKey, Ticket: h.Ticket, Protocol: f.cfg.Protocol,
		Level: f.policy.Load().Level}
	policy := f.policy.Load()
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

func (j *job) endedBy(reason string) string {
	return fmt.Sprintf("job %s ended: %s", handshake.JobID(j.id), reason)
}

// broken ends a job after an illegal transition, with an internal error that names the transition.
// The job ends after the event that is being handled, because that may still change it. A strict
// forwarder panics. With f.mu.
func (j *job) broken(f *Forwarder, next jobState) {
	reason := fmt.Sprintf("internal error: the forwarder cannot move the job from %v to %v (please report this, with the forwarder's log)",
		j.state, next)
	if f.cfg.strict {
		panic(reason)
	}
	f.totals.Internal++
	f.log.Error("internal error", zap.String("job", j.id), zap.Stringer("was", j.state), zap.Stringer("next", next),
		zap.Stack("stack"))
	f.aside(func() {}, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		j.stop(f, wire.RefuseShutdown, 1, reason)
	})
}

// stop ends a job for a reason that none of its ranks has given: ranks that wait are refused with a
// code, those of a running job get Abort with an exit status. With f.mu.
func (j *job) stop(f *Forwarder, refusal wire.RefuseCode, status int32, reason string) {
	switch j.state {
	case ready: // the ways that the kernel is about to open are not used
		j.to(gathering)
		j.opening = nil
		fallthrough
	case gathering:
		f.giveUp(j, refusal, reason)
	case running:
		j.failFor(f, status, reason)
	}
}

// failFor ends a running job for what a launcher has said. With f.mu.
func (j *job) failFor(f *Forwarder, code int32, reason string) {
	j.failWith(code, reason, abortFrame(code, wire.Nobody, reason), nil)
	if j.live > 0 {
		return
	}
	f.aside(func() {}, func() { // it only waited for ranks to come back
		f.mu.Lock()
		var s *Summary
		if j.state == ending && j.live == 0 {
			s = f.finish(j)
		}
		f.mu.Unlock()
		if s != nil && f.cfg.JobEnd != nil {
			f.cfg.JobEnd(*s)
		}
	})
}

// ClusterEnded notes that all processes of a job's cluster have ended, so that none of its ranks
// comes back: a link of theirs that has closed without Bye, or does so later, fails the job at
// once. It is for the launcher in the forwarder's own process, which knows that by itself. Safe for
// concurrent use.
func (f *Forwarder) ClusterEnded(id, cluster string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, j := range f.jobs.inOrder() {
		i := slices.IndexFunc(j.clusters, func(c wire.Cluster) bool { return c.Name == cluster })
		if handshake.JobID(j.id) != id || i < 0 || j.state != running {
			continue
		}
		j.over[i] = true
		var first *wait // the rank whose link was lost first is the cause, of several the lowest one
		for _, rank := range slices.Sorted(maps.Keys(j.waits)) {
			w := j.waits[rank]
			if j.clusterOf[rank] == i && (first == nil || w.since.Before(first.since)) {
				first = w
			}
		}
		if first != nil {
			first.timer.Reset(0)
		}
	}
}

// suspend notes that a half stands still, and ends its job if that takes too long. With f.mu.
func (j *job) suspend(f *Forwarder, h *wire.Half) {
	if j.state != running || j.suspended[h.Cluster] != nil {
		return
	}
	patience := time.Duration(j.gather.Patience()) * time.Millisecond
	reason := j.endedBy(fmt.Sprintf("%s for longer than the job's patience of %v (--patience, or ZIPPER_PATIENCE, in all clusters)",
		h.Reason, patience))
	if j.suspended == nil {
		j.suspended = map[string]timer{}
	}
	cluster := h.Cluster
	var t timer
	t = f.cfg.clock.AfterFunc(patience, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if j.suspended[cluster] == t {
			j.failFor(f, 1, reason)
		}
	})
	j.suspended[cluster] = t
}
