package forwarder

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/forwarder/clock"
	"github.com/leidenzipper/zipper/forwarder/halves"
	"github.com/leidenzipper/zipper/forwarder/job"
	"github.com/leidenzipper/zipper/forwarder/relay"
	"github.com/leidenzipper/zipper/forwarder/report"
	"github.com/leidenzipper/zipper/forwarder/strangers"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/wire"
)

// runner is a job's state machine with its lock, connections, timers and table of routes. It turns
// what happens into events (handle) and carries out the actions that the state machine returns
// (actions.go).
type runner struct {
	*carrier
	key [wire.PublicKeyLen]byte
	// user is the user that the ticket of the first Join names; empty if no ticket was demanded.
	user  string
	state atomic.Uint32 // state is the job.State after the last event.

	mu sync.Mutex
	// over has the summary with which Config.JobEnd is called once the lock is released; empty:
	// none.
	over []Summary
	room []byte // room is the buffer in which Joins are measured.
}

// ID returns the job's id, Key the key that its ranks have shown, User the user that its first
// Join's ticket names, and Gathering whether it gathers, as of its last event. Any thread.
func (r *runner) ID() string                   { return r.id }
func (r *runner) Key() [wire.PublicKeyLen]byte { return r.key }
func (r *runner) User() string                 { return r.user }
func (r *runner) Gathering() bool              { return job.State(r.state.Load()) == job.Gathering }

// newRunner opens a job for its first Join, which e reports, or returns why the job is refused.
// here is this forwarder's index in the job, and opener the stranger that has sent the Join. No
// other thread has the job yet.
func newRunner(f *Forwarder, e *handshake.Event, here int, opener *strangers.Stranger) (*runner, *handshake.Refused) {
	j, policy := e.Join, f.policy.Load()
	timeout := policy.timeout(j)
	b, actions, refused := job.New(f.cfg.clock.Now(), job.Config{Here: here, User: e.User, Timeout: timeout,
		Notice: f.cfg.Patience, Classic: f.cfg.Protocol == Classic, Ways: f.cfg.NAT != nil, Trunk: f.cfg.Trunk,
		Stranger: policy.servesStrangers()}, j)
	if refused != nil {
		return nil, refused
	}
	c := &carrier{f: f, id: j.Job, opener: opener, job: b, conns: map[action.Conn]*peer{}}
	r := &runner{carrier: c, key: j.PublicKey, user: e.User}
	c.alarms = clock.NewAlarms(f.cfg.clock, r.expired)
	c.owner, c.events = r, r
	if b.Facts().Hops {
		r.life, r.end = context.WithCancel(context.Background())
		// dialling ends before the job's time-out, whose message then has the reason
		r.until = time.Now().Add(timeout * 3 / 4)
	}
	for _, a := range actions {
		r.do(a)
	}
	return r, nil
}

// handle gives the job's state machine an event, and carries out the actions that it returns. With
// the lock.
func (r *runner) handle(e job.Event) {
	for _, a := range r.job.Handle(r.f.cfg.clock.Now(), e) {
		switch a.(type) {
		case job.Incomplete:
			r.incomplete()
		case job.Over:
			r.conclude()
		default:
			r.do(a)
		}
	}
	r.state.Store(uint32(r.job.State()))
}

// take takes the lock, gives the job an event (handle), and returns the state of the job
// afterwards. Any thread.
func (r *runner) take(e job.Event) job.State {
	r.mu.Lock()
	defer r.unlock()
	r.handle(e)
	return r.job.State()
}

// locked calls fn with the job's lock held. Any thread.
func (r *runner) locked(fn func()) {
	r.mu.Lock()
	defer r.unlock()
	fn()
}

// unlock releases the job's lock. If the job has run and has ended while the lock was held, it then
// calls Config.JobEnd.
func (r *runner) unlock() {
	over := r.over
	r.over = nil
	r.mu.Unlock()
	if r.f.cfg.JobEnd != nil {
		for i := range over {
			r.f.cfg.JobEnd(over[i])
		}
	}
}

// forget tells the job that the connection of p has ended for the reason cause, and removes it from
// the job. On the peer's own loop.
func (r *runner) forget(p *peer, cause error) {
	r.mu.Lock()
	defer r.unlock()
	p.endExchange()
	r.handle(job.Lost{Conn: p.id, Cause: cause, Silent: relay.Silence(cause)})
	delete(r.conns, p.id)
}

// halves returns the id and key that all rows of a job share.
func (r *runner) halves() halves.Run { return halves.Run{ID: handshake.JobID(r.id), Key: r.key} }

// expired tells the job that timer t has expired. It does nothing if the timer, of which a is the
// alarm, was stopped or set again meanwhile.
func (r *runner) expired(t action.Timer, a *clock.Alarm) {
	e := job.Expired{Timer: t}
	if t.Kind == action.Gathering || t.Kind == action.Notice {
		r.f.mu.Lock()
		e.Others = r.f.jobs.Others(r)
		r.f.mu.Unlock()
	}
	r.mu.Lock()
	defer r.unlock()
	if !r.alarms.Due(t, a) {
		return
	}
	if t.Kind == action.Measure {
		e.Links = r.links(t.Of)
	}
	r.handle(e)
}

// incomplete removes a job that has ended before it ran from the forwarder.
func (r *runner) incomplete() {
	r.forgotten(func(f *Forwarder) {
		f.strangers.Over(r.opener)
		f.totals.Incomplete++
	})
}

// conclude removes a job that has run and has no connections left, and records its summary.
func (r *runner) conclude() {
	now := r.f.cfg.clock.Now()
	last := r.status()
	s := report.Summarize(&last, r.key, r.job.View().Code, now)
	r.forgotten(func(f *Forwarder) {
		f.totals.Over(&last)
		f.past.Add(s)
	})
	r.f.memory.Drop(r.plane.Bytes())
	relay.Observe(r.f.cfg.Meters.Ran, now.Sub(s.Started))
	r.f.log.Info("job ended", zap.String("job", s.Job), zap.String("user", s.User), zap.Strings("origins", r.job.Origins()),
		zap.Bool("ok", s.OK), zap.Int32("code", s.Code),
		zap.Duration("ran", s.Ended.Sub(s.Started)), zap.Any("traffic", s.Traffic))
	r.over = append(r.over, s)
}

// forgotten cancels the dialling for the job, removes the job from the forwarder's tables, records
// that it has ended, and ends a drained forwarder with its last job. It calls rest with f.mu held.
func (r *runner) forgotten(rest func(f *Forwarder)) {
	f := r.f
	r.stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.jobs.Remove(r)
	f.halves.Over(r.halves(), f.cfg.clock.Now())
	f.drain.check(len(f.jobs))
	rest(f)
}
