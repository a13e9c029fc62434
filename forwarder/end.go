package forwarder

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/wire"
)

// ended does for the jobs what the end of a link means. The link is closed. Its own loop only.
func (f *Forwarder) ended(c *conn, cause error) {
	if s := f.forget(c, cause); s != nil && f.cfg.JobEnd != nil {
		f.cfg.JobEnd(*s)
	}
}

// forget takes the link out of everything; the summary is that of a job which has ended with it, or nil.
func (f *Forwarder) forget(c *conn, cause error) (ended *Summary) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, c)
	c.joining = nil
	if c.bridge != nil {
		f.bridgeLost(c.bridge, cause)
	}
	if m := c.member.Load(); m != nil {
		f.lost(c, m, cause)
		if m.job.live--; m.job.live == 0 {
			ended = f.finish(m.job)
		}
	} else {
		f.leave(c)
		f.log.Debug("link closed before its job began", zap.Object("peer", c), zap.Error(cause))
	}
	if f.stopping && len(f.conns) == 0 {
		close(f.empty)
	}
	return ended
}

// lost fails the job of a rank whose link ended without Bye. With f.mu.
func (f *Forwarder) lost(c *conn, m *member, cause error) {
	if m.bridge != nil {
		return // bridgeLost has seen to it
	}
	if !m.job.table[m.rank].CompareAndSwap(c, nil) || m.job.state != running {
		return // departed, or replaced
	}
	if m.job.gather.Rails() > 1 {
		f.miss(m.job, m.rank, m.lostBy(c, cause))
		return
	}
	f.fail(m.job, 1, m.rank, m.lostBy(c, cause), c)
}

// lostBy says whose link is lost and why.
func (m *member) lostBy(c *conn, cause error) string {
	cluster, native := m.job.place(m.rank)
	return fmt.Sprintf("virtual rank %d (rank %d of cluster %s on host %s, link %s) is lost: %v", m.rank, native, cluster, m.job.hosts[m.rank], c.link.Remote(), cause)
}

// abortedBy says which rank asked for the end and why; a rank that reports another's end has said all itself.
func (m *member) abortedBy(a *wire.Abort) string {
	if a.Rank != m.rank {
		return a.Reason
	}
	cluster, native := m.job.place(m.rank)
	return fmt.Sprintf("%s, by virtual rank %d (rank %d of cluster %s on host %s) with code %d", a.Reason, m.rank, native, cluster, m.job.hosts[m.rank], a.Code)
}

// fail ends a running job: everybody but the cause gets Abort. With f.mu.
func (f *Forwarder) fail(b *job, code int32, rank uint32, reason string, cause *conn) {
	if b.state != running {
		return
	}
	b.state, b.code, b.reason = failed, code, reason
	f.log.Error("job aborted", zap.String("job", b.id), zap.Int32("code", code), zap.String("reason", reason))
	frame := abortFrame(code, rank, reason)
	told := map[*conn]bool{nil: true, cause: true}
	for i := range b.table {
		if c := b.table[i].Swap(nil); !told[c] {
			told[c] = true // a bridge stands there for many
			c.loop.post(func() { c.linger(frame) })
		}
	}
	for _, br := range b.bridges() { // one may lead to nobody any more
		if c := br.conn; !told[c] {
			told[c] = true
			c.loop.post(func() { c.linger(frame) })
		}
	}
}

// finish forgets a job without links. With f.mu.
func (f *Forwarder) finish(b *job) *Summary {
	if b.state == running && len(b.absent) > 0 { // they may have lived on over another forwarder: here they never took their leave
		b.code, b.reason = 1, b.absent[slices.Min(slices.Collect(maps.Keys(b.absent)))]
	}
	b.state = finished
	if b.passage != nil {
		if err := b.passage.Close(); err != nil {
			f.log.Warn("what the kernel passed on for a job is not all taken back; it ends with this forwarder", zap.String("job", b.id), zap.Error(err))
		}
	}
	delete(f.jobs, b.id)
	s := b.summary(time.Now())
	if f.past = append(f.past, s); len(f.past) > keepSummaries {
		f.past = append(f.past[:0], f.past[1:]...)
	}
	f.log.Info("job ended", zap.String("job", s.Job), zap.Bool("ok", s.OK), zap.Int32("code", s.Code), zap.Duration("ran", s.Ended.Sub(s.Started)), zap.Any("traffic", s.Traffic))
	return &s
}

// abort fails a job because a rank asked for it; that rank hears it too, as an answer.
func (f *Forwarder) abort(b *job, code int32, rank uint32, reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail(b, code, rank, reason, nil)
}

// breach fails the job of a rank that broke the protocol.
func (f *Forwarder) breach(c *conn, m *member, reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.bridge != nil {
		f.fail(m.job, 1, wire.Nobody, fmt.Sprintf("the forwarder %s broke the protocol: %s", m.bridge.addr, reason), c)
		return
	}
	if m.job.table[m.rank].CompareAndSwap(c, nil) {
		f.fail(m.job, 1, m.rank, m.lostBy(c, fmt.Errorf("it broke the protocol: %s", reason)), c)
	}
}
