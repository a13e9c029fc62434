package forwarder

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/transport"
)

// What an administrator does to a forwarder that works: another policy (Reload), an end with the
// last job (Drain) or that leaves jobs to the next forwarder (Release), and to see whether it works
// (Alive).

// policy is the configuration with the fields of the latest Reload. All other fields are those that
// the forwarder was started with (reloaded).
type policy struct {
	Config
	terms *handshake.Terms
}

// reloaded returns c with those fields of by that Reload takes.
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

// Reload changes whom the forwarder serves, whom it dials, and how much they may have: it takes the
// fields Level, Secret, Ticket, Jobs, Dial, Memory, JobMemory and all that begin with Max. All
// other fields are checked, and count at the next start only. Jobs that are there go on: they are
// not asked again for what let them in, and keep their JobMemory. A job of several hops whose Dial
// was removed cannot replace links that it loses. On an error nothing changes. Safe for concurrent
// use.
func (f *Forwarder) Reload(cfg Config) error {
	cfg.Listeners, cfg.Log, cfg.NAT, cfg.HostKey = f.cfg.Listeners, zap.NewNop(), f.cfg.NAT, f.cfg.HostKey
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	cfg = f.cfg.reloaded(&cfg)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.policy.Store(&policy{Config: cfg, terms: cfg.terms(f.keys)})
	f.memory.SetLimit(cfg.Memory)
	f.relay.Joining().SetLimit(cfg.joiningMemory())
	f.strangers.SetLimits(cfg.strangers())
	return nil
}

const drainReason = "this forwarder is being drained and takes no new jobs: use another one, or try again when it has been started anew"

// Drain has the forwarder take no more jobs. Those that it has go on, also those that gather; when
// the last one is over Serve returns. Safe for concurrent use.
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

// drain is how a forwarder ends with its last job. With Forwarder.mu.
type drain struct {
	on   bool
	over chan struct{} // closed when on and the last job is over
}

// check ends Serve if nothing is left to wait for.
func (d *drain) check(jobs int) {
	if d.on && jobs == 0 {
		select {
		case <-d.over:
		default:
			close(d.over)
		}
	}
}

// Release has Serve close the listeners and all links, and return, without ending the jobs that a
// forwarder started at the same address can resume. A context of Serve that has ended has
// precedence. Safe for concurrent use; a second call does nothing.
func (f *Forwarder) Release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.released:
	default:
		close(f.released)
	}
}

// Alive returns when the forwarder has shown that it works: its lock can be had, and each event
// loop has run what was asked of it. The error is ctx's, if that ended before.
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
