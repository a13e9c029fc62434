package forwarder

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder/budget"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/transport"
)

// This file has the operations of an administrator on a running forwarder: Reload changes its
// policy, Drain ends it with its last job, Release ends it and leaves its jobs to the next
// forwarder, and Alive checks that it works.

// policy is the configuration with the fields of the latest Reload. All other fields are as at the
// start of the forwarder (reloaded).
type policy struct {
	Config
	terms *handshake.Terms
}

// reloaded returns c with those fields of by that Reload may change in a running forwarder.
func (c Config) reloaded(by *Config) Config {
	c.Level, c.Secret, c.Ticket, c.Jobs, c.Dial = by.Level, by.Secret, by.Ticket, by.Jobs, by.Dial
	c.Memory, c.JobMemory, c.MaxTimeout, c.MaxRanks = by.Memory, by.JobMemory, by.MaxTimeout, by.MaxRanks
	c.MaxGathering, c.MaxGatheringFrom = by.MaxGathering, by.MaxGatheringFrom
	c.MaxUnjoined, c.MaxUnjoinedFrom, c.MaxLinksFrom = by.MaxUnjoined, by.MaxUnjoinedFrom, by.MaxLinksFrom
	c.MaxJobs, c.MaxJobsOf = by.MaxJobs, by.MaxJobsOf
	return c
}

var errDialsNone = errors.New("this forwarder dials no other forwarders since it was reconfigured")

// dial opens a link to another forwarder, as Dial does. Dial may be nil although a job of several
// hops runs: a Reload after its start has removed it.
func (p *policy) dial(ctx context.Context, addr string, failed func(error)) (transport.Link, error) {
	if p.Dial == nil {
		return nil, errDialsNone
	}
	return p.Dial(ctx, addr, failed)
}

// servesStrangers reports whether jobs need neither the operator's secret nor a ticket.
func (p *policy) servesStrangers() bool { return p.Secret == "" && p.Ticket == nil }

// Reload changes which jobs the forwarder serves, which forwarders it dials, and its bounds. It
// takes over the fields Level, Secret, Ticket, Jobs, Dial, Memory, JobMemory and all that begin
// with Max. It ignores Listeners, Log, NAT, NATOff and HostKey. All other fields are only checked:
// a change of them takes effect at the next start. Present jobs go on and keep their JobMemory;
// their ranks and forwarders may join and rejoin them, because Level, Secret, Jobs and MaxRanks
// decide only which jobs are opened. A job of several hops whose Dial was removed cannot replace
// links that it loses. On an error nothing changes. Safe for concurrent use.
func (f *Forwarder) Reload(cfg Config) error {
	cfg.Listeners, cfg.Log, cfg.NAT, cfg.HostKey = f.cfg.Listeners, zap.NewNop(), f.cfg.NAT, f.cfg.HostKey
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	cfg = f.cfg.reloaded(&cfg)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.policy.Store(&policy{Config: cfg, terms: cfg.terms(f.keys, f.policy.Load().terms.Present)})
	f.memory.SetLimit(cfg.Memory)
	f.relay.Joining().SetLimit(budget.Joining(cfg.Memory))
	f.strangers.SetLimits(cfg.strangers())
	return nil
}

const drainReason = "this forwarder is being drained and takes no new jobs: use another one, or try again when it has been restarted"

// Drain makes the forwarder refuse new jobs. Present jobs go on, including those that gather. When
// the last one has ended Serve returns. Safe for concurrent use.
func (f *Forwarder) Drain() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.drain.on {
		return
	}
	f.drain.on = true
	f.log.Info("no new jobs are taken", zap.Int("jobs", len(f.jobs)))
	f.drain.check(len(f.jobs))
}

// drain is the state of a forwarder that refuses new jobs and ends with its last one. Forwarder.mu
// guards it.
type drain struct {
	on   bool
	over chan struct{} // closed when the forwarder is being drained and its last job has ended
}

// check ends Serve if the forwarder is being drained and jobs, the number of jobs that have not
// ended, is 0.
func (d *drain) check(jobs int) {
	if d.on && jobs == 0 {
		select {
		case <-d.over:
		default:
			close(d.over)
		}
	}
}

// Release makes Serve close the listeners and all links, and return, without ending the jobs that a
// forwarder started at the same address can resume. If Serve's context has ended, that has
// precedence. Safe for concurrent use. A second call does nothing.
func (f *Forwarder) Release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.released:
	default:
		close(f.released)
	}
}

// Alive returns when the forwarder has shown that it works: its lock was free, and each event loop
// has run a function that was posted to it. The error is that of ctx, if ctx ends before.
func (f *Forwarder) Alive(ctx context.Context) error {
	select {
	case <-f.works:
	case <-ctx.Done():
		return ctx.Err()
	}
	shown := make(chan struct{}, len(f.workers)+1)
	show := func() { shown <- struct{}{} }
	go func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		show()
	}()
	want := 1
	for _, w := range f.workers {
		if w.Loop.Post(show) {
			want++
		}
	}
	for range want {
		select {
		case <-shown:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
