package forwarder

import (
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/wire"
)

// In a job whose ranks join several forwarders, a lost link is not the end: the rank may have another one. The forwarder tells the others
// (RailState), who use another way and decide themselves when nobody can reach a rank any more; the rank may join again.

// miss notes that a rank's link is lost. With f.mu.
func (f *Forwarder) miss(b *job, rank uint32, reason string) {
	b.absent[rank] = reason
	f.log.Warn("link lost; the job has other forwarders", zap.String("job", b.id), zap.Uint32("virtual_rank", rank), zap.String("reason", reason))
	f.tell(b, wire.RailState{Rank: rank, Reason: reason})
}

// tell sends a RailState to all ranks but the one it is about. With f.mu.
func (f *Forwarder) tell(b *job, s wire.RailState) {
	p, vec := railState(s), make([][]byte, 1)
	for i := range b.table {
		if c := b.table[i].Load(); c != nil && uint32(i) != s.Rank {
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

// release ends the links of a job that goes on elsewhere: Bye tells its ranks so. With f.mu.
func (f *Forwarder) release(b *job, reason string) {
	b.state, b.code, b.reason = failed, 1, reason
	for i := range b.table {
		if c := b.table[i].Swap(nil); c != nil {
			c.loop.post(func() { c.linger(frame(wire.TypeBye)) })
		}
	}
}
