package forwarder

import (
	"errors"
	"maps"
	"slices"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/wire"
)

// In a job whose ranks join several forwarders, a lost link is not the end: the rank may have
// another one. The forwarder tells the others (RailState), who use another way and decide
// themselves when nobody can reach a rank any more; the rank may join again.
//
// In a row of a job of several hops the word goes over the bridges to those whose way to the rank
// leads through here. A rank's link that such a row has lost stays lost: the job has other rows. A
// bridge is opened again (trunk.go).

// linkLost notes that a rank's link is lost. With Forwarder.mu.
func (j *job) linkLost(rank uint32, reason string) {
	j.log.Warn("link lost; the job has other forwarders", zap.String("job", j.id),
		zap.Uint32("virtual_rank", rank), zap.String("reason", reason))
	j.markUnreachable(rank, reason, j.clusterOf[rank])
	if j.hops != nil {
		j.rankLeft()
	}
}

// unreachable takes another forwarder's word whether it can reach a rank behind it. Any loop.
func (br *bridge) unreachable(s *wire.RailState) {
	br.f.mu.Lock()
	defer br.f.mu.Unlock()
	b := br.job
	_, absent := b.absent[s.Rank]
	switch {
	case b.state != running || br.first() == nil:
	case s.Up && absent && b.table[s.Rank].CompareAndSwap(nil, br.first().conn):
		b.markReachable(s.Rank, br.network)
	case !s.Up && b.table[s.Rank].CompareAndSwap(br.first().conn, nil):
		b.markUnreachable(s.Rank, s.Reason, br.network)
	}
}

// markUnreachable notes that a rank cannot be reached from here; network is the one on which it is,
// or the way to it begins: others there do not come through here. With f.mu.
func (j *job) markUnreachable(rank uint32, reason string, network int) {
	j.absent[rank] = reason
	j.tell(&wire.RailState{Rank: rank, Reason: reason}, network)
}

// markReachable takes that back. With f.mu.
func (j *job) markReachable(rank uint32, network int) {
	delete(j.absent, rank)
	j.tell(&wire.RailState{Rank: rank, Up: true}, network)
}

// tell sends a RailState to all whose way to the rank leads through here. With f.mu.
func (j *job) tell(s *wire.RailState, network int) {
	j.tellRanks(s)
	for _, br := range j.bridges() {
		if br.network != network && !br.said {
			br.send(wire.TypeRailState, s)
		}
	}
}

// tellRanks sends a RailState to all ranks here but the one it is about. With f.mu.
func (j *job) tellRanks(s *wire.RailState) {
	state := frame(wire.TypeRailState, s)
	for v := range j.table {
		if c := j.table[v].Load(); c != nil && uint32(v) != s.Rank && (j.via == nil || j.via[v] == nil) {
			_ = c.Send(state) // a rank that reads nothing is found dead soon
		}
	}
}

// again lets a rank back into a running job, or says why not. On its own loop, with f.mu.
func (f *Forwarder) again(p *peer, b *job, j *wire.Join) *handshake.Refused {
	rank, refused := b.gather.Again(j)
	if refused != nil {
		return refused
	}
	v := uint32(rank)
	if old := peerOf(b.table[v].Load()); old != nil { // the rank knows sooner than we that the link is dead
		cause := errors.New("the rank has opened another link")
		if b.table[v].CompareAndSwap(old.conn, nil) {
			b.linkLost(v, old.member.Load().lostBy(old, cause))
		}
		old.end(cause)
	}
	if _, ok := b.absent[v]; !ok {
		return refusal(wire.RefuseTaken, "virtual rank %d has left job %q", v, b.id)
	}
	delete(b.absent, v)
	layout := b.layout
	layout.Rank = v
	p.conn.Seal(p.seal)
	p.joining.Admit(&layout, nil)
	p.say()
	for _, r := range slices.Sorted(maps.Keys(b.absent)) {
		_ = p.sendFrame(frame(wire.TypeRailState, &wire.RailState{Rank: r, Reason: b.absent[r]}))
	}
	b.live++
	p.run(&member{job: b, rank: v})
	b.table[v].Store(p.conn)
	f.log.Info("rank is back", zap.Object("peer", p))
	b.tellRanks(&wire.RailState{Rank: v, Up: true})
	return nil
}

// release ends the links of a job that goes on elsewhere: Bye tells its ranks so, to other
// forwarders it is a bridge that is lost. With Forwarder.mu.
func (j *job) release(reason string) {
	j.to(ending)
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
