package link

import (
	"slices"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/mmpi/engine/link/failover"
)

// rail is a link to a forwarder, or to one other process (direct.go), with what waits to be sent
// and the frame that is arriving. Fail-over owns its state (failover.Rail).
type rail struct {
	failover.Rail
	conn
	core  *core
	index int   // place in core.forwarders and Peer.lanes; a direct rail has the last of these
	peer  *Peer // direct: the process at the other end; nil: a forwarder is

	tracked bool // Segments are acknowledged, because the job goes on when the rail is lost.
	shares  bool // A peer's segments may take other rails as well.

	live    liveness
	count   counter
	in      input
	queue   queue // control and eager frames: they overtake segments, but do not interrupt one
	bulk    ring  // peers with segments to send
	seg     segment
	blocked bool // The link took nothing more.
	iov     [][]byte

	dialer
}

// newRail returns a rail without a link, which is to be added to the Tracker. direct is the process
// at its other end, if that is no forwarder; open opens the link.
func newRail(c *core, index int, direct *Peer, open opener) *rail {
	return &rail{core: c, index: index, peer: direct, tracked: c.replays || direct != nil,
		shares: c.multi || direct != nil, dialer: dialer{open: open}}
}

// ring has the peers with segments to send over a rail, in turn.
type ring []*Peer

func (b *ring) add(p *Peer) { *b = append(*b, p) }

// next takes the next peer's turn.
func (b *ring) next() *Peer {
	p := (*b)[0]
	copy(*b, (*b)[1:])
	*b = (*b)[:len(*b)-1]
	return p
}

// remove takes out all of a peer's turns.
func (b *ring) remove(p *Peer) { *b = slices.DeleteFunc(*b, func(o *Peer) bool { return o == p }) }

// attach gives the rail its link; nil: it has none yet.
func (r *rail) attach(l transport.Link) {
	r.conn.attach(l, r.core.seal, &r.core.limit, r.peer != nil)
	r.count = counter{due: l != nil}
}

// replace gives the rail another link.
func (r *rail) replace(l transport.Link) {
	r.attach(l)
	r.in.ready()
	r.blocked = false
	r.live.reset(r.core.Now())
}

// detachLink closes the link, and forgets what was to be sent over it and has arrived in part.
func (r *rail) detachLink() {
	r.close()
	r.drop()
	r.count = counter{}
	r.blocked = false
	r.in.reset()
}

// drop forgets what waits to be sent.
func (r *rail) drop() {
	r.queue.drop()
	r.bulk = nil
	r.seg.drop()
}

// pending reports whether there is something to write.
func (r *rail) pending() bool {
	return r.Linked() && (!r.queue.frames.Empty() || r.seg.active || len(r.bulk) > 0 || r.count.due)
}

// carries reports whether frames for a peer take this rail now. A direct link takes all of them.
func (r *rail) carries(p *Peer) bool {
	if d := p.direct; d != nil && d.Reaches(p.Rank) {
		return r == d
	}
	return r.Reaches(p.Rank)
}

// enroll gives a peer a place in the bulk ring if it has something to send. Credit is checked when
// its turn has come.
func (r *rail) enroll(p *Peer) {
	if !p.out.empty() && !p.lanes[r.index].enrolled && r.carries(p) && !(r.seg.active && r.seg.peer == p) {
		p.lanes[r.index].enroll(true)
		r.bulk.add(p)
	}
}

// purge takes a peer's frames and turns from the rail, whose link goes on.
func (r *rail) purge(p *Peer) {
	r.queue.purge(&r.core.store, p.Rank)
	r.bulk.remove(p)
}

// detach makes the segment that is being written to a peer independent of its Source. The link must
// get all of the frame, but it will not reach the peer: its replay counts.
func (r *rail) detach(p *Peer) {
	if s := &r.seg; s.active && s.peer == p && s.src != nil {
		src, first := s.src, s.first
		s.detach()
		if first {
			r.core.segmentDone(src)
		}
	}
}

// endSegment ends the segment, which has been written or need not be.
func (r *rail) endSegment() {
	if src := r.seg.end(); src != nil {
		r.core.segmentDone(src)
	}
}
