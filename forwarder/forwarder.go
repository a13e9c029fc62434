// Package forwarder relays frames between the ranks of a job that share no network.
//
// The way of a frame, all on one event-loop thread:
//
//  1. epoll says that a link is readable; the loop reads into its one buffer (input.fill);
//  2. whole frames are found and their headers checked (input.split, allowed);
//  3. frames in a row for the same rank are written, where they stand, to that rank's link (relay, output.write);
//     a large segment after another goes from socket to socket through a pipe instead, once its head has been checked (pipe.go);
//  4. only what the link does not take is copied to a queue (output.enqueue), which the link's own loop
//     writes when epoll says that it is writable (output.flush).
//
// Nothing here blocks, and no destination, however slow, keeps a loop from reading a source: credit between the
// ranks bounds what can be queued, and a rank that sends more than its credit loses its link.
//
// Locks, in the order in which they may be taken: Forwarder.mu (joining and ending, never on a frame's way),
// output.mu (one link's writing side), loop.mu (work posted to a loop).
package forwarder

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/transport"
	"github.com/leidenzipper/zipper/wire"
)

// keepSummaries is how many ended jobs Status remembers.
const keepSummaries = 32

// Forwarder relays for any number of jobs at once.
type Forwarder struct {
	cfg      Config
	log      *zap.Logger
	pool     pool
	passages sync.Pool // of *passage
	pipes    pipes
	loops    []*loop
	born     time.Time

	mu       sync.Mutex
	conns    map[*conn]struct{}
	jobs     map[string]*job // gathering, running and failed
	past     []Summary       // last ended jobs, oldest first
	next     int             // loop for the next link
	stopping bool
	empty    chan struct{} // closed when stopping and the last link is gone
}

// New checks the configuration. Serve does the work.
func New(cfg Config) (*Forwarder, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Forwarder{cfg: cfg, log: cfg.Log, born: time.Now(), conns: map[*conn]struct{}{}, jobs: map[string]*job{}, empty: make(chan struct{})}, nil
}

// Serve takes links in and relays until ctx ends; then it refuses and aborts what is there, closes everything
// and returns nil. Any other error means that it could not start. Call it once.
func (f *Forwarder) Serve(ctx context.Context) error {
	for range f.cfg.Loops {
		l, err := newLoop(f)
		if err != nil {
			for _, l := range f.loops {
				l.free()
			}
			return fmt.Errorf("forwarder: %w", err)
		}
		f.loops = append(f.loops, l)
	}
	var loops, accepts sync.WaitGroup
	for _, l := range f.loops {
		loops.Go(l.run)
	}
	for _, ln := range f.cfg.Listeners {
		accepts.Go(func() { f.accept(ctx, ln) })
		f.log.Info("listening", zap.String("address", ln.Addr()))
	}
	<-ctx.Done()
	for _, ln := range f.cfg.Listeners {
		ln.Close()
	}
	accepts.Wait()
	f.shutdown()
	for _, l := range f.loops {
		l.stop()
	}
	loops.Wait()
	for _, l := range f.loops {
		l.free()
	}
	f.pipes.close()
	return nil
}

func (f *Forwarder) accept(ctx context.Context, ln transport.Listener) {
	for {
		link, err := ln.Accept()
		if err == nil {
			f.take(link, nil)
			continue
		}
		if errors.Is(err, transport.ErrClosed) || ctx.Err() != nil {
			return
		}
		f.log.Error("cannot take a link in (too many open files?)", zap.Error(err))
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond): // the cause may pass; do not spin on it
		}
	}
}

// take gives a new link to the next loop. prepare, if not nil, is called with f.mu before the link is used; false: it is not wanted any more.
func (f *Forwarder) take(link transport.Link, prepare func(c *conn) bool) {
	c := &conn{f: f, link: link, log: f.log}
	c.lender, _ = link.(transport.Lender)
	c.piper, _ = link.(transport.Piper)
	c.out = output{link: link, lender: c.lender, piper: c.piper, pool: &f.pool, arm: c.armWrite, broken: c.broken, limits: limits{f.cfg.FlowLimit, f.cfg.ControlLimit}}
	c.out.placer, _ = link.(transport.Placer)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopping || prepare != nil && !prepare(c) {
		link.Close()
		return
	}
	c.loop = f.loops[f.next%len(f.loops)]
	f.next++
	f.conns[c] = struct{}{}
	c.loop.post(func() {
		if err := c.loop.add(c); err != nil {
			f.log.Error("cannot watch a link", zap.Error(err))
			c.out.close()
			link.Close()
			c.ended = true
			f.ended(c, err)
			return
		}
		c.start()
	})
}

// shutdown refuses and aborts everything and waits for the links to close, at most Linger.
func (f *Forwarder) shutdown() {
	f.mu.Lock()
	f.stopping = true
	const why = "the forwarder is shutting down"
	for _, j := range f.jobs {
		switch {
		case j.state == gathering && j.hops != nil:
			f.breakUp(j, wire.RefuseShutdown, why)
		case j.state != running:
		case j.gather.Rails() > 1: // its ranks have other forwarders
			f.release(j, why)
		default:
			f.fail(j, 1, wire.Nobody, why, nil)
		}
	}
	for c := range f.conns {
		f.refuseLocked(c, wire.RefuseShutdown, why)
	}
	if len(f.conns) == 0 {
		close(f.empty)
	}
	f.mu.Unlock()
	select {
	case <-f.empty:
	case <-time.After(f.cfg.Linger):
	}
}

// MarshalLogObject describes the link's peer. Any thread.
func (c *conn) MarshalLogObject(e zapcore.ObjectEncoder) error {
	e.AddString("link", c.link.Remote())
	if m := c.member.Load(); m != nil && m.bridge != nil {
		e.AddString("job", m.job.id)
		e.AddString("forwarder", m.bridge.addr)
	} else if m != nil {
		cluster, native := m.job.place(m.rank)
		e.AddString("job", m.job.id)
		e.AddUint32("virtual_rank", m.rank)
		e.AddString("cluster", cluster)
		e.AddInt("rank", native)
		e.AddString("host", m.job.hosts[m.rank])
	}
	return nil
}
