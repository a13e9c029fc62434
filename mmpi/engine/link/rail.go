package link

import (
	"slices"
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/mmpi/engine/link/demand"
	"github.com/leidenzipper/zipper/mmpi/engine/link/failover"
)

// rail is a path to a forwarder, or to one other process (direct.go): its current link, the frames
// and segments that wait to be sent, and the frame that is being received. Package failover owns
// its state (failover.Rail).
type rail struct {
	failover.Rail
	conn
	core *core // state shared by all rails and peers
	// index is the rail's index in Peer.lanes, and in core.forwarders if it leads to a forwarder.
	// All direct rails have the last index of Peer.lanes.
	index int
	peer  *Peer // process at the other end of a direct rail; nil: the rail leads to a forwarder

	tracked bool // Segments are acknowledged, because the job goes on when the rail is lost.
	shares  bool // Segments to a peer may take other rails as well.

	live    liveness // detects that the link has been silent for too long
	count   counter  // counts of the bytes sent and received over the link
	in      input    // bytes that have arrived over the link and are not handled, and the payload being received
	queue   queue    // frames to send, other than segments; they overtake segments, but do not interrupt one
	bulk    ring     // peers with segments to send over the rail; the first has the next turn
	seg     segment  // segment that is being written
	blocked bool     // The link takes no more bytes at the moment.
	// saysLost has the clusters that the forwarder has said to be lost over the current link, with
	// the reasons, by index of the cluster.
	saysLost  map[int]string
	lostsSent uint32   // number of Losts that were sent over the current link
	iov       [][]byte // scratch memory for a vectored write

	dialer
	onDemand
}

// onDemand is the part of a direct rail that is used only if its links are opened on demand.
type onDemand struct {
	wanted   bool          // The rail's links are opened on demand, and this end does not open them again.
	use      demand.Use    // records when the link was used last
	attempts int           // number of attempts of this end to open the link
	listened time.Duration // time at which a silent link was last asked whether it is cut off
}

// newRail returns a rail without a link, which the caller adds to the Tracker. direct is the
// process at the other end, or nil if that is a forwarder; open opens the link.
func newRail(c *core, index int, direct *Peer, open opener) *rail {
	return &rail{core: c, index: index, peer: direct, tracked: c.replays || direct != nil,
		shares: c.multi || direct != nil, dialer: dialer{open: open}}
}

// ring holds the peers with segments to send over a rail, in turn.
type ring []*Peer

// add appends a peer, whose turn comes after those of all others.
func (b *ring) add(p *Peer) { *b = append(*b, p) }

// next removes and returns the first peer in the ring, to which the rail sends the next segment.
// The ring must not be empty.
func (b *ring) next() *Peer {
	p := (*b)[0]
	copy(*b, (*b)[1:])
	*b = (*b)[:len(*b)-1]
	return p
}

// remove removes all turns of a peer from the ring.
func (b *ring) remove(p *Peer) { *b = slices.DeleteFunc(*b, func(o *Peer) bool { return o == p }) }

// attach sets the rail's link, and the features and segment lengths that suit it. nil: the link is
// not open yet.
func (r *rail) attach(l transport.Link) {
	r.conn.attach(l, r.core.seal, &r.core.limit, r.peer != nil)
	r.count = counter{due: l != nil}
	r.saysLost, r.lostsSent = nil, 0
}

// replace sets a link that was opened after the start as the rail's link, and begins to watch it
// for silence.
func (r *rail) replace(l transport.Link) {
	r.attach(l)
	r.in.ready()
	r.blocked = false
	r.live.reset(r.core.Now())
}

// detachLink closes the link, and discards everything that was to be sent over it or has arrived in
// part.
func (r *rail) detachLink() {
	r.close()
	r.drop()
	r.count = counter{}
	r.blocked = false
	if r.peer != nil {
		r.in.release()
		return
	}
	r.in.reset()
	r.core.Demands.offer(r.index, false)
}

// drop discards all frames and segments that wait to be sent over the rail.
func (r *rail) drop() {
	r.queue.drop()
	r.bulk = nil
	r.seg.drop()
}

// pending reports whether the rail has a link and something to write to it.
func (r *rail) pending() bool {
	return r.Linked() && (!r.queue.frames.Empty() || r.seg.active || len(r.bulk) > 0 || r.count.due)
}

// carries reports whether frames to a peer take this rail now. A direct link that is up carries all
// of them.
func (r *rail) carries(p *Peer) bool {
	if d := p.direct; d != nil && d.Reaches(p.Rank) {
		return r == d
	}
	return r.Reaches(p.Rank)
}

// enroll adds a peer to the bulk ring if it has segments to send over this rail. It does nothing if
// the peer is in the ring, or its segment is being written: wrote enrolls the peer after that. The
// peer's credit is checked at its turn.
func (r *rail) enroll(p *Peer) {
	if !p.out.empty() && !p.lanes[r.index].enrolled && r.carries(p) && !(r.seg.active && r.seg.peer == p) {
		p.lanes[r.index].enroll(true)
		r.bulk.add(p)
	}
}

// purge removes a peer's queued frames, and its turns to be sent segments, from the rail, whose
// link stays in use.
func (r *rail) purge(p *Peer) {
	r.queue.purge(&r.core.store, p.Rank)
	r.bulk.remove(p)
}

// detach separates the segment that is being written to a peer from its Source. The link must get
// all of the segment, but it no longer leads to the peer, so the segment is sent again over another
// rail.
func (r *rail) detach(p *Peer) {
	if s := &r.seg; s.active && s.peer == p && s.src != nil {
		src, first := s.src, s.first
		s.detach()
		if first {
			r.core.segmentDone(src)
		}
	}
}

// endSegment ends the current segment, which has been written or is no longer needed.
func (r *rail) endSegment() {
	if src := r.seg.end(); src != nil {
		r.core.segmentDone(src)
	}
}
