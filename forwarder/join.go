package forwarder

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/wire"
)

// join handles a frame of a link that is not in a running job.
func (f *Forwarder) join(c *conn, h wire.Header, body []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.joining == nil {
		return // decided already; the link is about to close
	}
	c.joining.HandleMessage(h, body)
	f.drive(c)
}

// drive does what the link's join exchange asks for. With f.mu.
func (f *Forwarder) drive(c *conn) {
	a := c.joining
	for {
		e, ok := a.NextEvent()
		if !ok {
			return
		}
		switch e.Kind {
		case handshake.Send:
			c.out.write(make([][]byte, 1), wire.Nobody, e.Frame, nil)
		case handshake.Verified:
			f.gather(c, &e.Join)
		case handshake.Ended:
			f.log.Warn("join refused", zap.Object("peer", c), zap.Stringer("code", e.Err.Code), zap.String("reason", e.Err.Reason), zap.Bool("by_peer", e.Err.Remote))
			c.joining = nil
			f.leave(c)
			c.loop.post(func() {
				if !c.ended {
					c.settle()
				}
			})
		}
	}
}

func (f *Forwarder) refuse(c *conn, code wire.RefuseCode, reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuseLocked(c, code, reason)
}

func (f *Forwarder) refuseLocked(c *conn, code wire.RefuseCode, reason string) {
	if c.joining != nil {
		c.joining.Refuse(code, reason)
		f.drive(c)
	}
}

// gather puts a verified joiner to its job. On the link's own loop, with f.mu.
func (f *Forwarder) gather(c *conn, j *wire.Join) {
	if f.stopping {
		c.joining.Refuse(wire.RefuseShutdown, "the forwarder is shutting down")
		return
	}
	if len(f.cfg.Jobs) > 0 && !slices.Contains(f.cfg.Jobs, j.Job) {
		c.joining.Refuse(wire.RefuseJob, fmt.Sprintf("this forwarder does not serve job %q: check the job id and the forwarder's address", j.Job))
		return
	}
	if j.Protocol != f.cfg.Protocol {
		c.joining.Refuse(wire.RefuseSettings, fmt.Sprintf("this forwarder has protocol %q, the job %q: start both with the same --protocol", f.cfg.Protocol, j.Protocol))
		return
	}
	now := time.Now()
	timeout := time.Duration(j.TimeoutMS) * time.Millisecond
	b := f.jobs[j.Job]
	if b == nil {
		b = &job{id: j.Job, state: gathering, gather: handshake.NewGather(j), waiting: map[*conn]*waiting{}, created: now, clusters: j.Layout, expires: now.Add(timeout)}
		f.jobs[j.Job] = b
		b.timer = time.AfterFunc(timeout, func() { f.expire(b) })
		f.log.Info("job begins to gather", zap.String("job", b.id), zap.Int("ranks", b.gather.Ranks()), zap.Duration("timeout", timeout))
	}
	if b.state == running && b.gather.Rails() > 1 {
		f.again(c, b, j)
		return
	}
	rank, refused := b.gather.Add(j)
	if refused == nil && b.state != gathering {
		// A rank of a job that is ending has left its place: not before the job is gone.
		refused = &handshake.Refused{Code: wire.RefuseTaken, Reason: fmt.Sprintf("job %q is already running: give every run a new job id", b.id)}
	}
	if refused != nil {
		c.joining.Refuse(refused.Code, refused.Reason)
		return
	}
	if t := now.Add(timeout); t.Before(b.expires) { // whoever is first at the end of its patience decides
		b.expires = t
		b.timer.Reset(timeout)
	}
	c.deadline = time.Time{}
	c.waiting = &waiting{b, rank, j.Host}
	b.waiting[c] = c.waiting
	f.log.Debug("rank joined", zap.String("job", b.id), zap.String("cluster", j.Cluster), zap.Uint32("rank", j.Rank), zap.Int("virtual_rank", rank), zap.String("host", j.Host), zap.String("link", c.link.Remote()))
	if b.gather.Complete() {
		f.complete(b, now)
	}
}

// complete starts a job whose ranks are all in. With f.mu, which a loop that reads the first frames of the job
// waits for (conn.running): every Layout is on its way before any frame is relayed.
func (f *Forwarder) complete(b *job, now time.Time) {
	b.timer.Stop()
	layout, refused := b.gather.Layout()
	if refused != nil {
		for c := range b.waiting {
			f.refuseLocked(c, refused.Code, refused.Reason)
		}
		return
	}
	n := b.gather.Ranks()
	b.started, b.live, b.layout, b.absent = now, n, layout, map[uint32]string{}
	b.table = make([]atomic.Pointer[conn], n)
	b.hosts = make([]string, n)
	b.counts = make([]counters, len(b.clusters)*len(b.clusters))
	for i, c := range b.clusters {
		for range c.Size {
			b.clusterOf = append(b.clusterOf, i)
		}
	}
	if f.cfg.Protocol == Classic {
		b.classic = &classic{}
	}
	b.state = running
	for c, w := range b.waiting {
		b.table[w.rank].Store(c)
		b.hosts[w.rank] = w.host
	}
	for c, w := range b.waiting {
		layout.Rank = uint32(w.rank)
		c.joining.Admit(&layout)
		f.drive(c)
	}
	for c, w := range b.waiting { // only now: a link with its place does not wait for the lock
		c.member.Store(&member{b, uint32(w.rank), b.clusterOf[w.rank]})
		c.joining, c.waiting = nil, nil
	}
	b.waiting = nil
	f.log.Info("job runs", zap.String("job", b.id), zap.Int("ranks", n), zap.Duration("gathered_in", now.Sub(b.created)), zap.Strings("libraries", layout.Libraries))
}

// expire refuses everybody in a job that is not complete in time.
func (f *Forwarder) expire(b *job) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b.state != gathering || f.jobs[b.id] != b {
		return
	}
	reason := fmt.Sprintf("job %q is not complete after %v; missing: %s", b.id, time.Since(b.created).Round(time.Millisecond), b.gather.Missing())
	for _, o := range f.jobs {
		if o != b && o.state == gathering {
			reason += " (another job waits here too: do all clusters use the same job id?)"
			break
		}
	}
	for c := range b.waiting {
		f.refuseLocked(c, wire.RefuseTimeout, reason)
	}
}

// leave takes a link out of the job that it waits for. With f.mu.
func (f *Forwarder) leave(c *conn) {
	w := c.waiting
	if w == nil {
		return
	}
	c.waiting = nil
	if w.job.state != gathering {
		return
	}
	delete(w.job.waiting, c)
	w.job.gather.Remove(w.rank)
	if w.job.gather.Joined() == 0 {
		w.job.timer.Stop()
		delete(f.jobs, w.job.id)
		f.log.Info("job never became complete", zap.String("job", w.job.id))
	}
}
