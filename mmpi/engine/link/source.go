package link

import (
	"fmt"

	"github.com/leidenzipper/zipper/internal/list"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/flow"
)

// Large messages travel as segments, each over whichever rail has room: over one rail they come in
// order; over several they come as they come, and after a loss some come twice. Every segment names
// its place, so that all that matters is which bytes have landed. This is the sending end, sink.go
// the other.

// Source is a message whose receiver has cleared it: its bytes go out as segments. Its owner keeps
// it in place until Abandon.
type Source struct {
	Handle   uint64       // by which Upper.Source finds it again
	Receiver uint64       // names the Sink at the other end
	Buf      []byte       // what was cleared; unchanged until Abandon
	Zcopy    bool         // Buf may be registered with links
	Owner    fmt.Stringer // names the message to the user

	node    list.Node[*Source] // in Peer.bulk
	started int64              // bytes given to a rail
	writing int                // segments being written
	mem     registration
}

// Bulk sends a Source that is not empty. When all of it is in links Upper.Written is called; its
// buffer is in use until Abandon, since bytes may have to be sent again.
func (p *Peer) Bulk(src *Source) {
	src.node.Of, src.mem.node.Of = src, &src.mem
	src.started, src.writing = 0, 0
	p.backlog += int64(len(src.Buf))
	if p.bulk.Empty() {
		p.pace.Begin(p.dataOut.Limit(), p.set.Now())
	}
	p.bulk.Push(&src.node)
	p.measure()
	p.schedule()
}

// Abandon takes away what links have of a Source that has been Written: the receiver has all of it.
// What is half written goes on as a copy.
func (s *Set) Abandon(src *Source) {
	for _, r := range s.rails { // replays that were not needed
		if r.seg.active && r.seg.src == src {
			r.seg.detach()
		}
	}
}

// Release takes away what links know of a Source's memory.
func (src *Source) Release(s *Set) { s.zcopy.unpin(&src.mem) }

// DataLimit is how many bytes of segments the peer may send since the beginning; it is told of it
// (Upper.SayCredit).
func (p *Peer) DataLimit() uint64 { return p.dataIn.Limit() }

// RaiseData takes the peer's DataLimit.
func (p *Peer) RaiseData(limit uint64) {
	if p.dataOut.Raise(limit) {
		p.pace.Acked(limit, p.set.Now())
		p.schedule()
	}
}

// schedule gives a peer its turn on all rails that carry what is for it.
func (p *Peer) schedule() {
	for _, r := range p.set.forwarders {
		r.enroll(p)
	}
	if p.direct != nil {
		p.direct.enroll(p)
	}
}

// nextBytes chooses what a rail sends next to a peer: first what was lost, then what is new; nil:
// nothing may go there now.
func (r *rail) nextBytes(p *Peer) (src *Source, s flow.Segment, first bool) {
	l := &p.lanes[r.index].out
	if r.shares() && l.OnWay() >= max(r.share(p), minOnWay*r.set.limit.Segment) {
		return nil, s, false
	}
	for len(p.replay) > 0 {
		s, p.replay = p.replay[0], p.replay[1:]
		if src = r.set.upper.Source(p, s.Request); src != nil {
			if r.tracked() {
				l.Send(s, r.set.Now())
			}
			return src, s, false
		}
	}
	p.replay = nil
	if p.bulk.Empty() {
		return nil, s, false
	}
	src = p.bulk.First().Of
	n := r.segmentSize(p, int64(len(src.Buf))-src.started)
	if !p.dataOut.Take(uint64(n)) {
		return nil, s, false
	}
	s = flow.Segment{Request: src.Handle, Offset: src.started, Bytes: n}
	src.started += int64(n)
	p.backlog -= int64(n)
	src.writing++
	if src.started == int64(len(src.Buf)) {
		p.bulk.Remove(&src.node)
	}
	if r.tracked() {
		l.Send(s, r.set.Now())
	}
	return src, s, true
}

// segmentDone counts a segment of a Source that is written, or need not be any more.
func (s *Set) segmentDone(src *Source) {
	src.writing--
	if src.started == int64(len(src.Buf)) && src.writing == 0 {
		s.upper.Written(src)
	}
}

// share is how much of the window a rail may fill: of what the peer has granted and what is on its
// way over all of them.
func (r *rail) share(p *Peer) int {
	s := r.set
	window := int(p.dataOut.Left())
	for i := range p.lanes {
		window += p.lanes[i].out.OnWay()
	}
	window = max(window, s.limit.DataWindow)
	if r.peer != nil {
		return window
	}
	lanes := s.lanes[:0]
	for i, o := range s.forwarders {
		if o.reaches(p.Rank) {
			lanes = append(lanes, &p.lanes[i].out)
		}
	}
	return flow.Share(window, &p.lanes[r.index].out, lanes)
}

// segmentSize is how many of the bytes that are left of a message go into the next segment to a
// peer. It is longer than usual (longFor, longShare) where the flow is fast and much is left. It is
// shorter (longFor) where the network is slow: what overtakes others waits for the end of a
// segment.
func (r *rail) segmentSize(p *Peer, left int64) int {
	n := r.most
	if r.narrow != nil {
		if rate := r.narrow.Bottleneck(); rate > 0 {
			n = min(n, max(leastSegment, int(rate*longFor.Seconds())))
		}
	}
	if r.long > n && r.packet > 0 && !r.shares() {
		n = max(n, fullPackets(min(r.long, int(p.backlog/longShare), int(p.pace.Rate()*longFor.Seconds())), r.packet,
			segmentHead(r.set)))
	}
	if left <= int64(n+r.crumb) {
		return int(left)
	}
	return n
}

// landed takes the acknowledgement of segments that a rail carried.
func (p *Peer) landed(r *rail, epoch uint16, body []byte) error {
	m, err := wire.ParseLanded(body)
	if err != nil {
		return err
	}
	if err := p.lanes[r.index].out.Landed(epoch, m.Bytes, p.set.Now()); err != nil {
		return err
	}
	r.enroll(p)
	return nil
}

// detach makes what is left of the segment independent of its Source, whose buffer may soon be the
// program's again.
func (s *segment) detach() {
	s.data = append([]byte(nil), s.data...)
	s.src = nil
}
