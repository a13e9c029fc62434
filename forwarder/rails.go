package forwarder

import (
	"errors"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/forwarder/relay"
	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/wire"
)

// A lost link is not the end of a job: the rank may have another one, or opens it again (again).
// The forwarder tells the others (RailState). They use another way, and decide themselves when
// nobody can reach a rank any more. The rank may join again.
//
// In a job with one way between any two ranks, a rank whose link is lost opens it again (again),
// and what was on its way is sent again. How long that is waited for depends on the loss. If the
// link was closed, as a process's links are when it ends, it is a moment. If nothing was heard, it
// is as long as the job's patience lasts. Then the job fails, with the cause of the loss.
//
// In a job of several hops the forwarder also tells, over its bridges, those whose way to the rank
// leads through here; so it does when a rank has taken its leave. In a job of several rows a rank
// that has not come back in time is not taken back any more: the job has other rows. A bridge is
// opened again (trunk.go), also by a forwarder that was started again and gathers the job anew
// (anew.go).

// linkLost notes that a rank's link is lost, and why. With f.mu.
func (f *Forwarder) linkLost(m *member, reason string, cause error) {
	j := m.job
	j.log.Warn("link lost; the job goes on", zap.String("job", j.id),
		zap.Uint32("virtual_rank", m.rank), zap.String("reason", reason))
	j.losses++
	j.markUnreachable(m.rank, absence{reason: reason}, j.clusterOf[m.rank])
	if j.hops != nil || j.resumes() {
		j.await(f, m.rank, reason, cause)
	}
}

// unreachable takes another forwarder's word whether it can reach a rank behind it. Any loop.
func (br *bridge) unreachable(s *wire.RailState) {
	br.f.mu.Lock()
	defer br.f.mu.Unlock()
	b := br.job
	was, absent := b.absent[s.Rank]
	why := absence{s.Reason, s.Cut}
	switch {
	case b.state != running || br.first() == nil:
	case s.Gone:
		b.unsure = b.unsure || s.Reason != ""
		if !b.left[s.Rank] || s.Reason != "" { // what it has acknowledged may have been lost since
			b.markLeft(s.Rank, br.network)
		}
	case s.Up && absent && b.table[s.Rank].CompareAndSwap(nil, br.first().conn):
		b.markReachable(s.Rank, br.network)
	case s.Up:
	case b.table[s.Rank].CompareAndSwap(br.first().conn, nil), absent && was.cut != why.cut:
		if s.Reason != openedAgain { // which it does at once
			b.log.Warn("another forwarder does not reach a rank", zap.String("job", b.id),
				zap.Uint32("virtual_rank", s.Rank), zap.String("reason", s.Reason))
		}
		b.markUnreachable(s.Rank, why, br.network)
	}
}

// markUnreachable notes that a rank cannot be reached from here, and tells others. network is the
// one on which the rank is, or on which the way to it begins. Whoever is on that network does not
// reach the rank through here, and is not told. With f.mu.
func (j *job) markUnreachable(rank uint32, why absence, network int) {
	j.absent[rank], j.unsure = why, true
	j.tell(wire.RailState{Rank: rank, Reason: why.reason, Cut: why.cut}, network)
}

// markReachable takes that back. With f.mu.
func (j *job) markReachable(rank uint32, network int) {
	delete(j.absent, rank)
	j.tell(wire.RailState{Rank: rank, Up: true}, network)
}

// markLeft notes that a rank has taken its leave: what others have sent it, and do not know to have
// arrived, it does not need. Ranks here hear of it if something may have been lost on the way;
// where there is one hop, if they have had another link; and when they come back. With f.mu.
func (j *job) markLeft(rank uint32, network int) {
	j.left[rank] = true
	delete(j.absent, rank)
	gone := wire.RailState{Rank: rank, Gone: true}
	if j.hops == nil {
		for v := range j.table {
			if c := j.table[v].Load(); c != nil && j.cameBack[uint32(v)] {
				peerOf(c).sendState(gone)
			}
		}
		return
	}
	if j.unsure {
		j.tellRanks(gone)
		gone.Reason = openedAgain // so is whoever hears it there
	}
	tellBridges(j, gone, network)
}

// tell sends a RailState to all whose way to the rank leads through here. With f.mu.
func (j *job) tell(s wire.RailState, network int) {
	j.tellRanks(s)
	tellBridges(j, s, network)
}

func tellBridges(j *job, s wire.RailState, network int) {
	for _, br := range j.bridges() {
		if p := br.first(); p != nil && br.network != network && !br.said {
			p.sendState(s)
		}
	}
}

// tellRanks sends a RailState to all ranks here but the one it is about. With f.mu.
func (j *job) tellRanks(s wire.RailState) {
	for v := range j.table {
		if c := j.table[v].Load(); c != nil && uint32(v) != s.Rank && (j.via == nil || j.via[v] == nil) {
			peerOf(c).sendState(s)
		}
	}
}

// again lets a rank back into a running job, or says why not. On its own loop, with f.mu.
func (f *Forwarder) again(p *peer, b *job, j *wire.Join) *handshake.Refused {
	rank, refused := b.gather.Again(j)
	if refused == nil && b.hops != nil {
		refused = b.belongs(j)
	}
	if refused != nil {
		return refused
	}
	v := uint32(rank)
	if old := peerOf(b.table[v].Load()); old != nil { // the rank knows sooner than we that the link is dead
		cause := errors.New("the rank has opened another link")
		if b.table[v].CompareAndSwap(old.conn, nil) {
			f.linkLost(old.member.Load(), old.member.Load().lostBy(old, cause), nil)
		}
		old.end(cause)
	}
	if _, ok := b.absent[v]; !ok {
		return refusal(wire.RefuseTaken, "virtual rank %d has left job %q", v, b.id)
	}
	if b.hops != nil && b.waits[v] == nil {
		return refusal(wire.RefuseTaken, "virtual rank %d was not back in time", v)
	}
	delete(b.absent, v)
	if w := b.waits[v]; w != nil {
		w.timer.Stop()
		delete(b.waits, v)
	}
	layout := b.layout
	layout.Rank, layout.Namesake = v, b.namesakes[b.hosts[v]]
	p.conn.Seal(p.seal)
	p.joining.Admit(&layout, nil)
	p.say()
	for _, r := range slices.Sorted(maps.Keys(b.absent)) {
		why := b.absent[r]
		p.sendState(wire.RailState{Rank: r, Reason: why.reason, Cut: why.cut})
	}
	for _, r := range slices.Sorted(maps.Keys(b.left)) {
		p.sendState(wire.RailState{Rank: r, Gone: true})
	}
	b.live++
	b.cameBack[v] = true
	p.run(&member{job: b, rank: v})
	b.table[v].Store(p.conn)
	f.log.Info("rank is back", zap.Object("peer", p))
	b.tell(wire.RailState{Rank: v, Up: true}, b.clusterOf[v])
	return nil
}

// release ends the links of a running job that may go on without this forwarder: its ranks get Bye,
// which is a lost link to them, and other forwarders lose a bridge. With Forwarder.mu.
func (j *job) release(reason string) {
	if !j.to(ending) {
		return
	}
	j.stopWaiting()
	j.log.Info("job released: it may be resumed", zap.String("job", j.id))
	j.code, j.reason = 1, reason
	for _, br := range j.bridges() {
		br.end(errors.New(reason))
	}
	for v := range j.table {
		if p := peerOf(j.table[v].Swap(nil)); p != nil && (j.via == nil || j.via[v] == nil) {
			p.abortWith(frame(wire.TypeBye, nil))
		}
	}
}

// await gives a rank time to come back. With f.mu.
func (j *job) await(f *Forwarder, rank uint32, reason string, cause error) {
	d := j.patience()
	if !errors.Is(cause, relay.ErrSilent) {
		d = min(d, comesBack)
	}
	if j.over[j.clusterOf[rank]] {
		d = 0
	}
	w := &wait{since: f.cfg.clock.Now()}
	w.timer = f.cfg.clock.AfterFunc(d, func() { j.gaveUp(f, rank, w, reason) })
	j.waits[rank] = w
}

// wait is for one loss of a rank's link.
type wait struct {
	timer timer     // ends the wait
	since time.Time // when the link was lost
}

// gaveUp fails the job of a rank that has not come back, or goes on without it here.
func (j *job) gaveUp(f *Forwarder, rank uint32, w *wait, reason string) {
	f.thenPerhapsLast(j, func() {
		if j.waits[rank] != w || j.state != running {
			return
		}
		delete(j.waits, rank)
		if j.resumes() {
			j.fail(rank, reason, nil)
		} else {
			j.rankLeft()
		}
	})
}

// thenPerhapsLast does, with the lock, what may be the last thing that a job without links waited
// for.
func (f *Forwarder) thenPerhapsLast(j *job, do func()) {
	f.mu.Lock()
	do()
	over := f.perhapsLast(j)
	f.mu.Unlock()
	if over != nil && f.cfg.JobEnd != nil {
		f.cfg.JobEnd(*over)
	}
}

// expects reports whether a job without links waits for ranks, or other forwarders, to come back.
// With Forwarder.mu.
func (j *job) expects() bool {
	return j.state == running && (len(j.waits) > 0 ||
		slices.ContainsFunc(j.bridges(), func(br *bridge) bool { return br.first() == nil && br.wanted() }))
}

// stopWaiting ends the waiting for ranks. With Forwarder.mu.
func (j *job) stopWaiting() {
	for rank, w := range j.waits {
		w.timer.Stop()
		delete(j.waits, rank)
	}
}

// departs takes the route to a rank that has said Bye out of the table and counts its departure. It
// ignores a Bye over a connection that is no longer the route: the job has ended, or the rank has
// opened another connection, over which it says Bye again. All entries of the table are written
// with f.mu held. Any loop.
func (p *peer) departs(m *member) {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	if !m.job.table[m.rank].CompareAndSwap(p.conn, nil) {
		return
	}
	if m.job.goesOn() {
		m.job.markLeft(m.rank, m.job.clusterOf[m.rank])
	}
	if m.job.hops != nil {
		m.job.rankLeft()
	}
}

// byeHeard notes that the other end has said Bye over a connection, and reports whether we have,
// too. Any loop.
func (br *bridge) byeHeard(p *peer) (both bool) {
	br.f.mu.Lock()
	defer br.f.mu.Unlock()
	p.byeCame, br.theirs = true, true
	if !br.heard && br.byesCame() {
		br.heard = true
		br.allLeft()
	}
	br.job.sayBye()
	return br.said
}

// allLeft notes that whoever is behind the bridge has taken its leave, as Bye says. That they have
// said so may have been lost with a connection. In a job of several rows they may be in others.
// With f.mu.
func (br *bridge) allLeft() {
	b := br.job
	if b.state != running || !b.resumes() {
		return
	}
	for v := range b.table {
		if b.via[v] == br && !b.left[uint32(v)] {
			b.markLeft(uint32(v), br.network)
		}
	}
}

// bad counts damaged frames.
type bad struct {
	since time.Time
	n     int
}

// mayBeBad notes a damaged frame of a rank, and reports whether that can be a bad line: of a rank
// from which too many come the job fails. With Forwarder.mu.
func (j *job) mayBeBad(rank uint32, now time.Time) bool {
	b := j.bad[rank]
	may := b.more(now)
	j.bad[rank] = b
	j.badFrames++
	return may
}

// more counts one more, and reports whether they are few.
func (b *bad) more(now time.Time) bool {
	if now.Sub(b.since) > badTime {
		*b = bad{since: now}
	}
	b.n++
	return b.n <= maxBad
}

// mayBeBad is job.mayBeBad for the link to another forwarder.
func (br *bridge) mayBeBad() bool {
	br.f.mu.Lock()
	defer br.f.mu.Unlock()
	if !br.job.goesOn() || br.job.state != running {
		return false
	}
	br.job.badFrames++
	return br.trunk.bad.more(br.f.cfg.clock.Now())
}

// startWithout has the ranks of a job that starts know who has left before, also those that reach
// them through here: the forwarder that was here before may not have passed it on. With f.mu.
func startWithout(j *job) {
	if j.hops == nil {
		return
	}
	for _, v := range slices.Sorted(maps.Keys(j.hops.left)) {
		j.unsure = true
		network := j.clusterOf[v]
		if br := j.via[v]; br != nil {
			network = br.network
		}
		j.markLeft(v, network)
	}
}
