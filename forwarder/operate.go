package forwarder

import (
	"context"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/handshake"
)

// What an administrator does to a forwarder that works: another policy (Reload), an end with the
// last job (Drain), and to see whether it works (Alive).

// policy is what of a Config may change while a forwarder works: Level, Secret, Ticket, Jobs, Dial,
// Memory, JobMemory and the bounds for strangers and users. The rest of it is not looked at.
type policy struct {
	Config
	terms *handshake.Terms
}

// servesStrangers reports whether jobs need neither the operator's secret nor a ticket.
func (p *policy) servesStrangers() bool { return p.Secret == "" && p.Ticket == nil }

// Reload changes whom the forwarder serves, whom it dials, and how much they may have: of the
// configuration the fields Level, Secret, Ticket, Jobs, Dial, Memory, JobMemory, MaxTimeout
// and all that begin with Max. All others stay as they are. Jobs that are there go on; what they
// were let in by is not asked again, and what they may keep (JobMemory) is theirs. On an error
// nothing changes. Safe for concurrent use.
func (f *Forwarder) Reload(cfg Config) error {
	cfg.Listeners, cfg.Log, cfg.NAT, cfg.HostKey = f.cfg.Listeners, zap.NewNop(), f.cfg.NAT, f.cfg.HostKey
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.policy.Store(&policy{Config: cfg, terms: cfg.terms(f.keys)})
	f.memory.SetLimit(cfg.Memory)
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
	f.drain.check(f.jobs)
}

// drain is how a forwarder ends with its last job. With Forwarder.mu.
type drain struct {
	on   bool
	over chan struct{} // closed when on and the last job is over
}

// check ends Serve if nothing is left to wait for.
func (d *drain) check(l jobs) {
	if d.on && len(l) == 0 {
		select {
		case <-d.over:
		default:
			close(d.over)
		}
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
