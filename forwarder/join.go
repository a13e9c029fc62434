package forwarder

import (
	"errors"
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
	if c.bridge != nil {
		f.gatherOver(c, h, body)
		return
	}
	if c.joining == nil {
		return // decided already; the link is about to close
	}
	c.joining.HandleMessage(h, body)
	f.drive(c)
}

// drive does what the link's join exchange asks for. With f.mu.
func (f *Forwarder) drive(c *conn) {
	_ = handshake.Drive(c.joining, c.sendFrame, func(e handshake.Event) error { // neither of the two fails
		switch e.Kind {
		case handshake.Verified:
			f.gather(c, &e.Join)
		case handshake.Bridged:
			f.bridgeIn(c, &e.Join, e.To)
		case handshake.Ended:
			f.log.Warn("join refused", zap.Object("peer", c), zap.Stringer("code", e.Err.Code), zap.String("reason", e.Err.Reason), zap.Bool("by_peer", e.Err.Remote))
			c.joining = nil
			if c.waiting == nil && !e.Err.Remote {
				f.turned(c, &e)
			}
			f.leave(c)
			c.loop.post(func() {
				if !c.ended {
					c.settle()
				}
			})
		}
		return nil
	})
}

// sendFrame puts a frame of an exchange on the link. The error is always nil: what the link cannot take now waits.
func (c *conn) sendFrame(frame []byte) error {
	c.out.write(make([][]byte, 1), wire.Nobody, frame, nil)
	return nil
}

func (f *Forwarder) refuse(c *conn, code wire.RefuseCode, reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuseLocked(c, code, reason)
}

// malformed ends the joining of a link from which nonsense came. It returns the link's place if its job runs: another loop may just have started it.
func (f *Forwarder) malformed(c *conn, reason string) *member {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch br := c.bridge; {
	case c.member.Load() != nil:
		return c.member.Load()
	case br == nil:
		f.refuseLocked(c, wire.RefuseMalformed, reason)
	default:
		f.breakUp(br.job, wire.RefuseMalformed, fmt.Sprintf("bad frame from the forwarder %s: %s", br.addr, reason))
		if c.bridger != nil { // breakUp does not know it yet
			c.loop.post(func() { c.end(errors.New(reason)) })
		}
	}
	return nil
}

func (f *Forwarder) refuseLocked(c *conn, code wire.RefuseCode, reason string) {
	if c.joining != nil {
		c.joining.Refuse(code, reason)
		f.drive(c)
	}
}

// gather puts a verified joiner to its job. On the link's own loop, with f.mu.
func (f *Forwarder) gather(c *conn, j *wire.Join) {
	refused := f.serves(j)
	b := f.jobs[j.Job]
	if refused == nil && b == nil {
		b, refused = f.open(j, int(j.Here))
	}
	if refused != nil {
		c.joining.Refuse(refused.Code, refused.Reason)
		return
	}
	if b.state == running && b.gather.Rails() > 1 && b.hops == nil {
		f.again(c, b, j)
		return
	}
	if refused = b.gather.Fits(j); refused == nil && b.hops != nil {
		refused = b.hops.welcome(b, j)
	}
	rank := 0
	if refused == nil {
		rank, refused = b.gather.Add(j)
	}
	if refused == nil && b.state != gathering {
		// A rank of a job that is ending has left its place: not before the job is gone.
		refused = &handshake.Refused{Code: wire.RefuseTaken, Reason: fmt.Sprintf("job %q is already running: give every run a new job id", b.id)}
	}
	if refused != nil {
		c.joining.Refuse(refused.Code, refused.Reason)
		return
	}
	now, timeout := time.Now(), time.Duration(j.TimeoutMS)*time.Millisecond
	if t := now.Add(timeout); t.Before(b.expires) { // whoever is first at the end of its patience decides
		b.expires = t
		b.timer.Reset(timeout)
	}
	c.deadline = time.Time{}
	c.waiting = &waiting{b, rank, f.inside(c, j), j.Instance}
	b.waiting[c] = c.waiting
	f.log.Debug("rank joined", zap.String("job", b.id), zap.String("cluster", j.Cluster), zap.Uint32("rank", j.Rank), zap.Int("virtual_rank", rank), zap.String("host", j.Host), zap.String("link", c.link.Remote()))
	if b.hops != nil {
		f.joinedHere(b, j, c.joining.Certificate(j))
	}
	if b.gather.Complete() && b.state == gathering {
		if b.hops != nil {
			f.sees(b, b.hops.here)
			return
		}
		f.complete(b, now)
	}
}

// serves checks whether this forwarder serves a job at all. With f.mu.
func (f *Forwarder) serves(j *wire.Join) *handshake.Refused {
	switch {
	case f.stopping:
		return &handshake.Refused{Code: wire.RefuseShutdown, Reason: "the forwarder is shutting down"}
	case len(f.cfg.Jobs) > 0 && !slices.Contains(f.cfg.Jobs, j.Job) && !slices.Contains(f.cfg.Jobs, handshake.JobID(j.Job)):
		return &handshake.Refused{Code: wire.RefuseJob, Reason: fmt.Sprintf("this forwarder does not serve job %q: check the job id and the forwarder's address", j.Job)}
	case j.Protocol != f.cfg.Protocol:
		return &handshake.Refused{Code: wire.RefuseSettings, Reason: fmt.Sprintf("this forwarder has %s, the job %s: start both with the same --protocol", handshake.ProtocolName(f.cfg.Protocol), handshake.ProtocolName(j.Protocol))}
	case len(j.Zippers) > 0 && f.cfg.Dial == nil:
		return &handshake.Refused{Code: wire.RefuseLayout, Reason: "this forwarder does not serve jobs of several hops"}
	}
	return nil
}

// open begins a job with its first Join; here is this forwarder's index in the job's zippers. With f.mu.
func (f *Forwarder) open(j *wire.Join, here int) (*job, *handshake.Refused) {
	now, timeout := time.Now(), time.Duration(j.TimeoutMS)*time.Millisecond
	b := &job{id: j.Job, state: gathering, gather: handshake.NewGather(j), waiting: map[*conn]*waiting{}, created: now, clusters: j.Layout, expires: now.Add(timeout)}
	if len(j.Zippers) > 0 {
		var err error
		if b.hops, err = newHops(j, here); err != nil {
			return nil, &handshake.Refused{Code: wire.RefuseLayout, Reason: err.Error()}
		}
	}
	f.jobs[j.Job] = b
	b.timer = time.AfterFunc(timeout, func() { f.expire(b) })
	b.notice = time.AfterFunc(f.cfg.Patience, func() { f.notice(b) })
	f.log.Info("job begins to gather", zap.String("job", b.id), zap.Int("ranks", b.gather.Ranks()), zap.Duration("timeout", timeout))
	return b, nil
}

// complete starts a job whose ranks are all in. With f.mu, which a loop that reads the first frames of the job
// waits for (conn.running): every Layout is on its way before any frame is relayed.
func (f *Forwarder) complete(b *job, now time.Time) {
	b.timer.Stop()
	b.notice.Stop()
	layout, refused := b.gather.Layout()
	if refused != nil {
		for c := range b.waiting {
			f.refuseLocked(c, refused.Code, refused.Reason)
		}
		return
	}
	n := b.gather.Ranks()
	b.started, b.live, b.layout, b.absent = now, len(b.waiting), layout, map[uint32]string{}
	b.table = make([]atomic.Pointer[conn], n)
	b.hosts = make([]string, n)
	b.counts = make([]counters, len(b.clusters)*len(b.clusters))
	for i, c := range b.clusters {
		for range c.Size {
			b.clusterOf = append(b.clusterOf, i)
		}
	}
	if f.cfg.Protocol == Classic {
		b.classic = &classic{held: map[uint32]int{}, limit: f.cfg.ControlLimit}
	}
	b.state = running
	for v := range b.hosts {
		b.hosts[v] = layout.Host(v)
	}
	for c, w := range b.waiting {
		b.table[w.rank].Store(c)
	}
	if b.hops != nil {
		f.startBridges(b)
	}
	b.passage = f.pass(b, &layout)
	var frame []byte // one for all: with each of its own this would take memory in proportion to the square of the ranks
	for c, w := range b.waiting {
		layout.Rank = uint32(w.rank)
		frame = c.joining.Admit(&layout, frame)
		f.drive(c)
	}
	for c, w := range b.waiting { // only now: a link with its place does not wait for the lock
		c.member.Store(&member{job: b, rank: uint32(w.rank)})
		c.joining, c.waiting = nil, nil
	}
	if b.hops != nil {
		for _, br := range b.hops.bridges {
			b.live++
			br.conn.member.Store(&member{job: b, rank: wire.Nobody, bridge: br})
		}
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
	f.giveUp(b, wire.RefuseTimeout, fmt.Sprintf("job %q is not complete after %v; %s", b.id, time.Since(b.created).Round(time.Millisecond), f.missing(b)))
}

// missing says what keeps a job from being complete. With f.mu.
func (f *Forwarder) missing(b *job) string {
	reason := "missing: " + b.gather.Missing()
	for _, o := range f.jobs {
		if o != b && o.state == gathering && handshake.JobID(o.id) != handshake.JobID(b.id) {
			reason += " (another job waits here too: do all clusters use the same job id?)"
			break
		}
	}
	if s := b.gather.Refusals(); s != "" {
		reason += "; refused: " + s
	}
	if b.hops != nil {
		reason += b.hops.gaps()
	}
	return reason
}

// notice tells the first rank of each cluster that waits what is missing.
func (f *Forwarder) notice(b *job) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b.state != gathering || f.jobs[b.id] != b {
		return
	}
	b.soon = false
	text := fmt.Sprintf("job %q is not complete yet; %s", b.id, f.missing(b))
	for c, w := range b.waiting {
		if _, native := b.place(uint32(w.rank)); native == 0 {
			c.joining.Notice(text)
			f.drive(c)
		}
	}
}

// giveUp refuses all that wait in a job that gathers. With f.mu.
func (f *Forwarder) giveUp(b *job, code wire.RefuseCode, reason string) {
	if b.hops != nil {
		f.breakUp(b, code, reason)
		return
	}
	for c := range b.waiting {
		f.refuseLocked(c, code, reason)
	}
}

// turned tells the job that a link which wanted to be of it was refused, and ends the gathering if the rest waits in vain. With f.mu.
func (f *Forwarder) turned(c *conn, e *handshake.Event) {
	b := f.jobs[e.Join.Job]
	if b == nil || b.state != gathering {
		return
	}
	if !b.soon { // not at once: more of them may follow
		b.soon = true
		b.notice.Reset(min(time.Second, f.cfg.Patience))
	}
	if !b.gather.Turned(&e.Join, e.Err.Code) {
		return
	}
	f.giveUp(b, e.Err.Code, fmt.Sprintf("job %q cannot become complete: rank %d of cluster %s on host %s (%s), which has the job's secret, was refused: %s",
		b.id, e.Join.Rank, e.Join.Cluster, e.Join.Host, c.link.Remote(), e.Err.Reason))
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
	if w.job.hops != nil {
		cluster, native := w.job.place(uint32(w.rank))
		f.breakUp(w.job, wire.RefuseTimeout, fmt.Sprintf("rank %d of cluster %s left while job %q was joining", native, cluster, w.job.id))
		return
	}
	w.job.gather.Remove(w.rank)
	if w.job.gather.Joined() == 0 {
		w.job.timer.Stop()
		w.job.notice.Stop()
		delete(f.jobs, w.job.id)
		f.log.Info("job never became complete", zap.String("job", w.job.id))
	}
}
