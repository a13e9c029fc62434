package forwarder

import (
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/wire"
)

// In a job whose ranks join several forwarders, a lost link is not the end: the rank may have another one. The forwarder tells the others
// (RailState), who use another way and decide themselves when nobody can reach a rank any more; the rank may join again.
//
// In a row of a job of several hops the word goes over the bridges to those whose way to the rank leads through here. What such a row has lost, a link or
// a bridge, stays lost: the job has other rows.

// miss notes that a rank's link is lost. With f.mu.
func (f *Forwarder) miss(b *job, rank uint32, reason string) {
	f.log.Warn("link lost; the job has other forwarders", zap.String("job", b.id), zap.Uint32("virtual_rank", rank), zap.String("reason", reason))
	f.without(b, rank, reason, b.clusterOf[rank])
	if b.hops != nil {
		f.departedLocked(b)
	}
}

// cutOff takes a lost bridge out of use; the ranks behind it cannot be reached from here any more. With f.mu.
func (f *Forwarder) cutOff(br *bridge, reason string) {
	b := br.job
	delete(b.hops.bridges, br.zipper)
	for v := range b.table {
		if b.via[v] == br && b.table[v].CompareAndSwap(br.conn, nil) && !br.heard {
			f.without(b, uint32(v), reason, br.cluster)
		}
	}
	f.sayBye(b)
}

// without notes that a rank cannot be reached from here; network is the one on which it is, or the way to it begins: others there do not come through here. With f.mu.
func (f *Forwarder) without(b *job, rank uint32, reason string, network int) {
	b.absent[rank] = reason
	s := wire.RailState{Rank: rank, Reason: reason}
	f.tell(b, s)
	for _, br := range b.bridges() {
		if br.cluster != network && !br.said {
			br.send(wire.TypeRailState, &s)
		}
	}
}

// tell sends a RailState to all ranks here but the one it is about. With f.mu.
func (f *Forwarder) tell(b *job, s wire.RailState) {
	p, vec := railState(s), make([][]byte, 1)
	for i := range b.table {
		if c := b.table[i].Load(); c != nil && uint32(i) != s.Rank && (b.via == nil || b.via[i] == nil) {
			c.out.write(vec, wire.Nobody, p, nil)
		}
	}
}

func railState(s wire.RailState) []byte {
	return wire.AppendFrame(nil, wire.Header{Type: wire.TypeRailState, Src: wire.Nobody, Dst: wire.Nobody}, &s)
}

// again lets a rank back into a running job. On the link's own loop, with f.mu.
func (f *Forwarder) again(c *conn, b *job, j *wire.Join) {
	rank, refused := b.gather.Again(j)
	if refused != nil {
		c.joining.Refuse(refused.Code, refused.Reason)
		return
	}
	v := uint32(rank)
	if old := b.table[v].Load(); old != nil { // the rank knows sooner than we that the link is dead
		cause := errors.New("the rank has opened another link")
		f.lost(old, old.member.Load(), cause)
		old.loop.post(func() { old.end(cause) })
	}
	if _, ok := b.absent[v]; !ok {
		c.joining.Refuse(wire.RefuseTaken, fmt.Sprintf("virtual rank %d has left job %q", v, b.id))
		return
	}
	delete(b.absent, v)
	layout := b.layout
	layout.Rank = v
	c.joining.Admit(&layout, nil)
	f.drive(c)
	for r, reason := range b.absent {
		c.out.write(make([][]byte, 1), wire.Nobody, railState(wire.RailState{Rank: r, Reason: reason}), nil)
	}
	b.live++
	c.joining, c.waiting = nil, nil
	c.member.Store(&member{job: b, rank: v})
	b.table[v].Store(c)
	f.log.Info("rank is back", zap.Object("peer", c))
	f.tell(b, wire.RailState{Rank: v, Up: true})
}

// release ends the links of a job that goes on elsewhere: Bye tells its ranks so, to other forwarders it is a bridge that is lost. With f.mu.
func (f *Forwarder) release(b *job, reason string) {
	b.state, b.code, b.reason = failed, 1, reason
	for _, br := range b.bridges() {
		br.conn.loop.post(func() { br.conn.end(errors.New(reason)) })
	}
	for i := range b.table {
		if c := b.table[i].Swap(nil); c != nil && (b.via == nil || b.via[i] == nil) {
			c.loop.post(func() { c.linger(frame(wire.TypeBye)) })
		}
	}
}
