package forwarder

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/wire"
)

// How a job ends:
//
//  1. a connection has ended (forget): it is taken out of everything; a rank's without Bye, or a
//     bridge's, is a loss (lost), which fails the job if it has no other forwarder
//     (fail), else rails.go tells the others;
//  2. or a rank asks for the end (abort), or breaks the protocol (breach): that fails the job;
//  3. a failed job's links get Abort and linger;
//  4. when its last link is closed the kernel takes back, aside, what it has opened for it
//     (finish);
//  5. then it has ended, and Config.JobEnd is told (bury).
//
// A transition that legalJob does not have is a defect of the forwarder: it ends that job, and the
// forwarder and its other jobs go on (job.broken).

// forget takes a connection that has ended out of everything.
func (f *Forwarder) forget(p *peer, cause error) {
	s := f.forgetLocked(p, cause)
	if s != nil && f.cfg.JobEnd != nil {
		f.cfg.JobEnd(*s)
	}
}

// forgetLocked returns the summary of the job that has ended with the connection; nil: none has.
func (f *Forwarder) forgetLocked(p *peer, cause error) (over *Summary) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.peers, p)
	f.strangers.Leave(p.guest)
	p.joining = nil
	if p.bridge != nil {
		p.bridge.lost(p, cause)
	}
	if m := p.member.Load(); m != nil {
		p.lost(m, cause)
		m.job.live--
		over = f.perhapsLast(m.job)
	} else {
		f.leave(p)
		if p.later { // its end may have been the end of a job that waited for it
			over = f.perhapsLast(p.bridge.job)
		}
		f.log.Debug("link closed before its job began", zap.Object("peer", p), zap.Error(cause))
	}
	if f.stopping && len(f.peers) == 0 {
		close(f.empty)
	}
	return over
}

// lost fails the job of a rank whose link ended without Bye. With Forwarder.mu.
func (p *peer) lost(m *member, cause error) {
	if m.bridge != nil {
		return // bridge.lost has seen to it
	}
	if !m.job.table[m.rank].CompareAndSwap(p.conn, nil) || m.job.state != running {
		return // departed, or replaced
	}
	if m.job.goesOn() {
		p.f.linkLost(m, m.lostBy(p, cause), cause)
		return
	}
	m.job.fail(m.rank, m.lostBy(p, cause), p)
}

// lost sees to a connection of a bridge that has ended. Without it the job fails, or goes on over
// the bridge's others, or its other rows. With f.mu.
func (br *bridge) lost(p *peer, cause error) {
	b, f := br.job, br.f
	if cause == nil {
		cause = errors.New("closed")
	}
	i := slices.Index(br.conns, p)
	if i < 0 {
		br.notComing(p, cause)
		return
	}
	br.conns = slices.Delete(slices.Clone(br.conns), i, i+1)
	reason := fmt.Sprintf("the link to the forwarder %s is lost: %v", br.addr, cause)
	switch {
	case b.state == gathering:
		delete(b.hops.bridges, br.zipper)
		f.giveUp(b, wire.RefuseShutdown, reason)
	case b.state == running && br.wanted() && !(br.said && p.byeCame):
		f.log.Error("a link between forwarders is lost", zap.String("job", b.id), zap.String("forwarder", br.addr),
			zap.Int("connection", p.number), zap.Int("left", len(br.conns)), zap.Error(cause))
		if b.goesOn() {
			br.goOn(p, i == 0, reason)
			return
		}
		if len(br.conns) > 0 {
			reason = fmt.Sprintf("a connection of the link to the forwarder %s is lost, and what was on it with it: %v",
				br.addr, cause)
		}
		b.fail(wire.Nobody, reason, p)
	case br.said && br.theirs: // nothing is missed that may have been on it
		br.heard = br.heard || br.byesCame()
		b.sayBye()
	}
}

// abort fails a job because a rank asked for it, with said; everybody but from hears of it, in a
// sealed job with that rank's own word.
func (f *Forwarder) abort(b *job, code int32, rank uint32, reason string, said *wire.Abort, from *peer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := abortFrame(code, rank, reason)
	if said.By != wire.Nobody {
		last = frame(wire.TypeAbort, said)
	}
	b.failWith(code, reason, last, from)
}

// breach fails the job of a peer that broke the protocol.
func (p *peer) breach(m *member, reason string) {
	f := p.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.bridge != nil {
		m.job.fail(wire.Nobody, fmt.Sprintf("the forwarder %s broke the protocol: %s", m.bridge.addr, reason), p)
		return
	}
	if m.job.goesOn() && m.job.state == running && m.job.mayBeBad(m.rank, f.cfg.clock.Now()) {
		if m.job.table[m.rank].CompareAndSwap(p.conn, nil) {
			f.linkLost(m, m.lostBy(p, fmt.Errorf("what came over it was damaged: %s", reason)), nil)
		}
		return
	}
	if m.job.table[m.rank].CompareAndSwap(p.conn, nil) {
		m.job.fail(m.rank, m.lostBy(p, fmt.Errorf("it broke the protocol: %s", reason)), p)
	}
}

// fail ends a running job with status 1: everybody but the cause gets Abort. With Forwarder.mu.
func (j *job) fail(rank uint32, reason string, cause *peer) {
	j.failWith(1, reason, abortFrame(1, rank, reason), cause)
}

// failWith is fail with a frame that tells the others.
func (j *job) failWith(code int32, reason string, last []byte, cause *peer) {
	if j.state != running {
		return
	}
	j.to(ending)
	j.stopWaiting()
	j.code, j.reason = code, reason
	j.log.Error("job aborted", zap.String("job", j.id), zap.Int32("code", code), zap.String("reason", reason))
	told := map[*peer]bool{nil: true, cause: true}
	for i := range j.table {
		if p := peerOf(j.table[i].Swap(nil)); !told[p] {
			told[p] = true // a bridge stands there for many
			p.abortWith(last)
		}
	}
	for _, br := range j.bridges() { // also one that leads to nobody any more
		for _, p := range br.conns {
			if !told[p] {
				told[p] = true
				p.abortWith(last)
			}
		}
	}
}

// perhapsLast ends a job that has no links and waits for none; nil: it goes on, or the kernel has
// to take something back first. With f.mu.
func (f *Forwarder) perhapsLast(b *job) *Summary {
	if b.live > 0 || b.expects() || b.state != running && b.state != ending {
		return nil
	}
	return f.finish(b)
}

// finish ends a job without links. The summary is nil if the kernel has to take something back
// first. With f.mu.
func (f *Forwarder) finish(b *job) *Summary {
	if b.state == running {
		if len(b.absent) > 0 { // they may have lived on over another forwarder: here they never took their leave
			b.code, b.reason = 1, b.absent[slices.Min(slices.Collect(maps.Keys(b.absent)))].reason
		}
		b.to(ending)
	}
	if b.ways == nil {
		return f.bury(b)
	}
	if !b.to(closing) {
		return nil
	}
	f.aside(func() { b.closeWays(b.ways) }, func() {
		f.mu.Lock()
		s := f.bury(b)
		f.mu.Unlock()
		if s != nil && f.cfg.JobEnd != nil {
			f.cfg.JobEnd(*s)
		}
	})
	return nil
}

// bury forgets a job of which nothing is left. The summary is nil if the job has ended before. With
// f.mu.
func (f *Forwarder) bury(b *job) *Summary {
	if !b.to(ended) {
		return nil
	}
	last := b.status()
	f.totals.over(&last)
	for cluster := range b.suspended {
		b.resume(cluster)
	}
	f.jobs.remove(b)
	f.halves.Over(b.run(), f.cfg.clock.Now())
	f.drain.check(f.jobs)
	if b.hops != nil {
		b.hops.over()
		for _, br := range b.bridges() {
			br.noMore()
		}
	}
	b.drop(f.memory, b.kept)
	observe(f.cfg.Meters.Ran, f.cfg.clock.Now().Sub(b.started))
	s := b.summary(&last, f.cfg.clock.Now())
	if f.past = append(f.past, s); len(f.past) > keepSummaries {
		f.past = append(f.past[:0], f.past[1:]...)
	}
	f.log.Info("job ended", zap.String("job", s.Job), zap.String("user", s.User), zap.Strings("origins", b.origins()),
		zap.Bool("ok", s.OK), zap.Int32("code", s.Code),
		zap.Duration("ran", s.Ended.Sub(s.Started)), zap.Any("traffic", s.Traffic))
	return &s
}

// knew reports whether a job was here that is over. With f.mu.
func knew(past []Summary, j *wire.Join) bool {
	return slices.ContainsFunc(past, func(s Summary) bool { return s.Job == j.Job && s.key == j.PublicKey })
}
