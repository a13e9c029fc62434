package engine

import (
	"fmt"

	"github.com/leidenzipper/zipper/mmpi/engine/flow"
	"github.com/leidenzipper/zipper/wire"
)

// Large messages travel as segments, each over whichever rail has room: over one rail they come in order; over several they come as they
// come, and after a loss some come twice. Every segment names its place, so that all that matters is which bytes have landed.

// lane is a flow's share of a rail, in both directions.
type lane struct {
	out      flow.Lane
	in       flow.Arrivals
	enrolled bool // the peer is in the rail's bulk ring
}

func newLanes(n int) []lane {
	l := make([]lane, n)
	for i := range l {
		l[i].out = flow.NewLane()
	}
	return l
}

// Bounds of what a lane may have on its way.
const (
	minOnWay    = 4         // segments: what keeps a slow rail measured
	landedEvery = 256 << 10 // bytes that may stay unacknowledged
)

// nextPiece chooses what a rail sends next to a peer: first what was lost, then what is new; nil: nothing may go there now.
func (e *Engine) nextPiece(r *rail, p *peer) (q *Request, s flow.Segment, first bool) {
	l := &p.lanes[r.index].out
	if r.tracked() && l.OnWay() >= max(e.share(r, p), minOnWay*e.limits.Segment) {
		return nil, s, false
	}
	for len(p.replay) > 0 {
		s, p.replay = p.replay[0], p.replay[1:]
		if q = e.find(s.Request); q != nil && q.peer == p && (q.state == clear2send || q.state == sent) {
			if r.tracked() {
				l.Send(s, e.now())
			}
			return q, s, false
		}
	}
	p.replay = nil
	if q = p.bulkHead; q == nil {
		return nil, s, false
	}
	n := r.take(p, q.clear-q.moved)
	if !p.dataOut.Take(uint64(n)) {
		return nil, s, false
	}
	s = flow.Segment{Request: q.handle(), Offset: q.moved, Bytes: n}
	q.moved += int64(n)
	p.backlog -= int64(n)
	q.writing++
	if q.moved == q.clear {
		if p.bulkHead = q.next; p.bulkHead == nil {
			p.bulkTail = nil
		}
		q.next = nil
	}
	if r.tracked() {
		l.Send(s, e.now())
	}
	return q, s, true
}

// share is how much of the window a rail may fill.
func (e *Engine) share(r *rail, p *peer) int {
	if r.peer != nil {
		return e.limits.DataWindow
	}
	lanes := e.ways.lanes[:0]
	for i, r := range e.forwarders {
		if r.reaches(p.rank) {
			lanes = append(lanes, &p.lanes[i].out)
		}
	}
	return flow.Share(e.limits.DataWindow, &p.lanes[r.index].out, lanes)
}

// checkSent notices that all of a send has been written.
func (e *Engine) checkSent(q *Request) {
	if q.state == clear2send && q.moved == q.clear && q.writing == 0 {
		e.to(q, sent)
	}
}

// detach makes what is left of the segment independent of its request, whose buffer may soon be the program's again.
func (s *segment) detach() {
	s.data = append([]byte(nil), s.data...)
	s.req = nil
}

// schedule gives a peer its turn on all rails that carry what is for it.
func (e *Engine) schedule(p *peer) {
	for _, r := range e.forwarders {
		r.enroll(p)
	}
	if p.direct != nil {
		p.direct.enroll(p)
	}
}

func (e *Engine) handleLanded(r *rail, p *peer, epoch uint16, body []byte) error {
	m, err := wire.ParseLanded(body)
	if err != nil {
		return err
	}
	if err := p.lanes[r.index].out.Landed(epoch, m.Bytes, e.now()); err != nil {
		return err
	}
	r.enroll(p)
	return nil
}

func (e *Engine) handleData(p *peer, body []byte, payload int) ([]byte, landing, error) {
	d, err := wire.ParseData(body)
	if err != nil {
		return nil, landing{}, err
	}
	l := landing{typ: wire.TypeData, peer: p, n: payload}
	r := e.find(d.Receiver)
	if r == nil || r.peer != p || r.state != cleared {
		if e.several(p) {
			return nil, l, nil // late, after a replay
		}
		return nil, landing{}, fmt.Errorf("no receive %x from it is under way", d.Receiver)
	}
	if payload == 0 || d.Offset > uint64(r.clear) || int64(payload) > r.clear-int64(d.Offset) || !e.several(p) && d.Offset != uint64(r.moved) {
		return nil, landing{}, fmt.Errorf("segment of %d bytes at %d, where %d of %d bytes have arrived", payload, d.Offset, r.moved, r.clear)
	}
	l.offset = int64(d.Offset)
	fresh := uint64(r.cover.Fresh(l.offset, l.offset+int64(payload)))
	if fresh == 0 {
		return nil, l, nil
	}
	if room := p.dataIn.Room(); fresh > room {
		return nil, landing{}, fmt.Errorf("%w: %d bytes where %d were allowed", flow.ErrOverrun, fresh, room)
	}
	l.req = r
	return r.buf[l.offset : l.offset+int64(payload)], l, nil
}

// segmentLanded counts a segment that is in place (or was thrown away, because its bytes were).
func (e *Engine) segmentLanded(l landing) error {
	p, r := l.peer, l.req
	over := false
	if r != nil {
		fresh, err := r.cover.Add(l.offset, l.offset+int64(l.n))
		if err == nil {
			err = p.dataIn.Receive(uint64(fresh))
		}
		if err != nil {
			return err
		}
		r.moved += fresh
		e.arrived(r)
		p.dataIn.Consume(uint64(fresh))
		if p.dataIn.Due() {
			e.sendCredit(p)
		}
		if over = r.moved == r.clear; over {
			for _, o := range e.rails {
				if o.in.busy && o.in.land.req == r {
					o.in.land.req = nil // it still counts as landed
					o.toScratch()
				}
			}
			e.sendFin(p, r.remote)
			e.received(r)
		}
	}
	if l.rail.tracked() && l.rail.up {
		a := &p.lanes[l.rail.index].in
		if a.Count(l.epoch, l.n); over || a.Untold() >= landedEvery {
			e.sendLanded(l.rail, p, a)
		}
	}
	return nil
}

func (e *Engine) sendLanded(r *rail, p *peer, a *flow.Arrivals) {
	f := e.newFrame(p, wire.TypeLanded, 0, wire.LandedLen, 0)
	epoch, n := a.Tell()
	m := wire.Landed{Bytes: n}
	f.buf = m.Append(f.buf)
	f.buf[2], f.buf[3] = byte(epoch), byte(epoch>>8)
	f.rail = r
	r.push(f)
}

// toScratch has the rest of the payload that is coming thrown away.
func (r *rail) toScratch() {
	r.in.skip += len(r.in.dst)
	r.in.dst = nil
}

// readsOpen reports whether the rail is reading the payload of the frame that the peer has open.
func (r *rail) readsOpen(p *peer) bool {
	l := &r.in.land
	return r.in.busy && l.peer == p && l.typ.Sequenced() && l.early == nil
}
