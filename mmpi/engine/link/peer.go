package link

import (
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/flow"
	"github.com/leidenzipper/zipper/mmpi/engine/limits"
	"github.com/leidenzipper/zipper/mmpi/engine/link/demand"
	"github.com/leidenzipper/zipper/mmpi/engine/sealing"
)

// Peer is another process of the job, with the state of the flows to and from it.
type Peer struct {
	Rank int // rank of the process in the whole job, over all clusters
	// Ahead is the number of payload bytes, for each rail, of frames from the peer that may be
	// stored because earlier frames have not arrived.
	Ahead int

	core  *core   // state shared by all rails and peers
	rails []*rail // rails to forwarders that lead to the peer
	// index in rails of the rail for frames other than segments; another rail is used while that
	// one does not reach the peer
	preferred int
	direct    *rail  // direct rail to the peer; nil: the pair has had none, or cannot have one
	lanes     []lane // state of the flow over each rail; the index is rail.index
	distance
	demand   demand.Pair // decides when this process asks for a direct link to the peer
	keys     keys        // keys of this pair of processes at level sealed
	departed bool        // The peer has left the job: it needs nothing more, and sends nothing more.
	lost     bool        // The peer's cluster is lost: nothing is sent to it, and nothing from it is handled.

	numbers flow.Numbers // sequence numbers of the frames to the peer
	retained
	inbox

	out    outbox     // large messages to the peer
	dataIn flow.Grant // number of segment bytes, since the start, that the peer may send to this process
}

// lane is the state of the flow between this process and a peer over one rail, in both directions.
type lane struct {
	out      flow.Lane     // segments sent over the rail and not acknowledged
	in       flow.Arrivals // counts the segments that arrived over the rail
	enrolled bool          // The peer is in the ring of peers to which the rail sends segments (rail.bulk).
}

// enroll sets the flag enrolled, and nothing else. The caller puts the peer into the rail's ring of
// peers with segments to send (rail.bulk) if in is true, and takes it out otherwise.
func (l *lane) enroll(in bool) { l.enrolled = in }

// sent counts segment s as in flight since the time now, if it is tracked: the peer will
// acknowledge it.
func (l *lane) sent(s flow.Segment, now time.Duration, tracked bool) {
	if tracked {
		l.out.Send(s, now)
	}
}

// inbox holds the sequenced frames of a peer that have arrived and not been handled.
type inbox struct {
	// frames handled and acknowledged, by count, and complete frames that have arrived ahead of
	// their turn
	order      flow.Order[[]byte]
	aheadBytes int  // payload bytes of the frames ahead of their turn, complete or not
	ackDue     bool // The peer is in core.acks.
	// frame that is next in order and whose payload is being received, if there is one
	delivering    arrival
	deliveringDst []byte // destination of the payload of delivering
}

// Arriving returns the payload length, in bytes, of the frame that is next in order and whose
// payload is being received, or 0 if there is none.
func (i *inbox) Arriving() int { return i.delivering.n }

// distance tells how far away a peer is: the measured round trip of the path to it.
type distance struct {
	path *flow.Path     // measurements of the path, shared by all peers of a cluster
	long *limits.Limits // limits of the engine, whose LongPath says which paths are long
}

// Far reports whether the round trip of the path to the peer is known to be long (Limits.LongPath).
// Unlike Long it does not start a measurement.
func (d distance) Far() bool {
	trip := d.path.RoundTrip()
	return trip > 0 && trip >= d.long.LongPath
}

// RoundTrip returns the shortest measured round-trip time to the peer, or 0 until enough replies to
// Echo frames have arrived to know it.
func (d distance) RoundTrip() time.Duration { return d.path.RoundTrip() }

// keys holds the keys of this process and one peer at level sealed; they are nil before the first
// frame.
type keys struct{ pair *sealing.Pair }

// make derives the keys of this process and peer p, unless that has been done.
func (k *keys) make(p *Peer) (err error) {
	if k.pair == nil {
		k.pair, err = p.core.seal.Pair(p.Rank, p.core.slots)
	}
	return err
}

// Peer returns the peer with a rank in the whole job, which must be in range. It is created if
// necessary.
func (c *core) Peer(rank int) *Peer {
	p := c.peers.Get(rank)
	if p == nil {
		p = newPeer(c, rank)
		c.peers.Set(rank, p)
	}
	return p
}

// newPeer returns the peer for a rank in the whole job, in the state before any exchange of frames.
func newPeer(c *core, rank int) *Peer {
	window := uint64(c.limit.DataWindow)
	cluster, _ := c.world.Place(rank)
	p := &Peer{Rank: rank, Ahead: c.limit.EagerWindow, core: c, rails: c.routes[cluster], distance: distance{&c.pathTo[cluster], &c.limit},
		lanes: make([]lane, c.slots), out: outbox{credit: flow.NewBudget(window)}, dataIn: flow.NewGrant(window)}
	p.lost = c.Losses.Has(cluster)
	p.preferred = p.preferredRail()
	for i := range p.lanes {
		p.lanes[i].out = flow.NewLane()
	}
	return p
}

// preferredRail returns the index in rails of the rail for small messages. The choice spreads pairs
// evenly over the rails, whether processes communicate with all of another cluster or each with its
// counterpart. Both directions of a pair take the same rail.
func (p *Peer) preferredRail() int {
	lo, hi := min(p.Rank, p.core.world.Rank), max(p.Rank, p.core.world.Rank)
	_, first := p.core.world.Place(lo)
	_, second := p.core.world.Place(hi)
	n := len(p.rails)
	return (lo - first + (hi-second)/n) % n
}

// several reports whether more than one rail may lead to the peer, so that frames may overtake each
// other and arrive twice.
func (p *Peer) several() bool { return p.core.multi || p.direct != nil }

// scattered reports whether frames from the peer may overtake each other: because several rails
// lead to the peer, or because forwarders on the way have several connections between them (a
// trunk).
func (p *Peer) scattered() bool { return p.several() || p.core.hops }

// repeats reports whether the peer may receive frames over rail r a second time, because they are
// sent again after the loss of a link on the way.
func (p *Peer) repeats(r *rail) bool {
	return p.several() || r.Replaced() || p.core.hops && p.core.replays
}

// rail returns the rail over which frames other than segments go to the peer now, or nil if none
// reaches it.
func (p *Peer) rail() *rail {
	if d := p.direct; d != nil && d.Reaches(p.Rank) {
		return d
	}
	if !p.core.multi {
		if r := p.rails[p.preferred]; !p.core.replays || r.Reaches(p.Rank) {
			return r
		}
		return nil
	}
	for i := range p.rails {
		if r := p.rails[(p.preferred+i)%len(p.rails)]; r.Reaches(p.Rank) {
			return r
		}
	}
	return nil
}

// railOf returns the rail whose state is at index lane of Peer.lanes.
func (p *Peer) railOf(lane int) *rail {
	if lane < len(p.core.forwarders) {
		return p.core.forwarders[lane]
	}
	return p.direct
}

// NewFrame returns a frame to the peer that has its header, except for the checksums, and room for
// body and payload bytes, which the caller appends to Buf. The caller must then call Send with the
// frame, before another NewFrame for this peer.
func (p *Peer) NewFrame(t wire.Type, flags uint8, body, payload int) *Frame {
	return p.newFrame(t, flags, 1, body, payload)
}

// newFrame returns a frame to the peer. Its header is written except for its checksums, and Buf has
// room for the body and payload bytes that the caller appends. epoch goes into the header: that of
// a lane (flow.Lane) in a Landed frame, and 1 in all others.
func (p *Peer) newFrame(t wire.Type, flags uint8, epoch uint16, body, payload int) *Frame {
	h := wire.Header{Type: t, Flags: flags, Epoch: epoch, Length: uint32(body + payload),
		Src: uint32(p.core.world.Rank), Dst: uint32(p.Rank), Ack: p.order.Ack()}
	if t.Sequenced() {
		h.Seq = p.numbers.Next()
	}
	return p.core.takeTo(&h)
}

// Send gives a frame to a rail that reaches the peer; Set.Flush writes it. If no rail reaches the
// peer now, a sequenced frame is sent once one does. Any other frame is discarded, because its
// contents are sent again later: credit and acknowledgement once there is a rail, an Echo after
// some time. A frame to a peer whose cluster is lost is discarded.
func (p *Peer) Send(f *Frame) {
	if p.lost {
		p.core.release(f)
		return
	}
	p.core.sums(f)
	if f.seq != 0 {
		p.retained.add(f)
		p.core.retain(1)
	}
	r := p.rail()
	switch {
	case r != nil:
		f.over(r.index)
		r.queue.push(f)
		if f.seq != 0 {
			p.core.Demands.countFrame(p, r, f)
		}
	case f.seq == 0:
		p.core.release(f)
	}
}

// resend sends again, over a rail that reaches the peer, the unacknowledged frames that were given
// to the rail with index from in Peer.lanes. If from is nobody, it sends the frames for which there
// was no rail. If a rail reaches the peer, it also sends credit and acknowledgement, of which no
// copies are kept. Otherwise the frames wait until resend is called with nobody.
func (p *Peer) resend(from int) {
	if p.lost {
		return
	}
	to, lane := p.rail(), nobody
	if to != nil {
		lane = to.index
	}
	for n := p.frames.First(); n != nil; n = n.Next() {
		f := n.Of
		if f.lane != from || f.queued {
			continue
		}
		f.again(lane)
		if from != nobody {
			wire.MarkResent(f.Buf)
		}
		if to != nil {
			to.queue.push(f)
		}
	}
	if to != nil {
		p.core.upper.SendCredit(p)
		p.schedule()
	}
}

// resetLane sends again the frames and segments that rail r carried to the peer. The caller has
// removed the peer's frames from the queue of r.
func (p *Peer) resetLane(r *rail) {
	l := &p.lanes[r.index]
	l.enroll(false)
	r.detach(p)
	p.out.replay(l.out.Reset())
	p.resend(r.index)
}

// delivered counts the next sequenced frame from the peer as handled. It is acknowledged by the
// next frame to the peer, after ackEvery frames, or by the next tick.
func (p *Peer) delivered() {
	p.core.advanced()
	p.order.Take()
	if p.order.Unacknowledged() >= ackEvery {
		p.Send(p.NewFrame(wire.TypeAck, 0, 0, 0))
		return
	}
	if !p.ackDue {
		p.ackDue = true
		p.core.owes(p)
	}
}

// FlushAcks sends all acknowledgements of frames that this process has received and not
// acknowledged yet.
func (c *core) FlushAcks() {
	for _, p := range c.acks {
		p.flushAck()
	}
	c.ackedAll()
}

// flushAck sends the peer an acknowledgement of its frames that have been handled and not
// acknowledged, if there are any.
func (p *Peer) flushAck() {
	p.ackDue = false
	if p.order.Unacknowledged() > 0 {
		p.Send(p.NewFrame(wire.TypeAck, 0, 0, 0))
	}
}

// acked handles the acknowledgement in a frame from the peer, and releases the frames up to
// sequence number ack. An error means that the peer has acknowledged a frame that was not sent.
func (p *Peer) acked(ack uint64) error {
	news, err := p.numbers.Ack(ack)
	if err != nil || !news {
		return err
	}
	p.core.advanced()
	n, err := p.retained.release(ack, &p.core.store)
	p.core.retain(-n)
	return err
}

// depart records that the peer has left the job, and frees the memory of the frames to it that it
// has not acknowledged.
func (p *Peer) depart() {
	p.departed = true
	p.core.retain(-p.retained.drop(&p.core.store))
}

// Bulk sends a Source, a large message, which must not be empty, to the peer. Upper.Written is
// called when all of its bytes have been written to links. The buffer stays in use after that,
// because bytes may have to be sent again, until the owner calls Set.Abandon for the Source: it
// does so once the receiver has all of the message, or wants none of it.
func (p *Peer) Bulk(src *Source) {
	p.out.add(src, p.core.Now())
	p.measure()
	p.schedule()
}

// Resume continues to send segments to a peer after a Source's Missing has become lower.
func Resume(p *Peer) { p.schedule() }

// schedule gives the peer a turn to be sent segments on each rail that carries its segments.
func (p *Peer) schedule() {
	for _, r := range p.core.forwarders {
		r.enroll(p)
	}
	if p.direct != nil {
		p.direct.enroll(p)
	}
}

// Open prepares a Sink, whose exported fields are set, for segments of a large message from the
// peer. The caller tells the peer to send (CTS) afterwards.
func (p *Peer) Open(k *Sink) {
	k.open()
	p.register(k)
}

// register registers the next parts of a Sink with the link over which its segments arrive. It does
// nothing if segments may overtake each other (scattered), or the rail has had another link: then a
// duplicate could be written into memory that the program uses again.
func (p *Peer) register(k *Sink) {
	if p.scattered() || p.core.zcopy.from == 0 {
		return
	}
	if r := p.rail(); r != nil && !r.Replaced() {
		k.register(&p.core.zcopy, &r.conn)
	}
}

// DataLimit returns the number of segment bytes that the peer may send, counted since the start of
// the job, and records that the peer has been sent that limit. The caller must send it to the peer,
// as Upper.SendCredit does.
func (p *Peer) DataLimit() uint64 { return p.dataIn.Limit() }

// RaiseData sets the number of segment bytes that this process may send to the peer, which is the
// DataLimit that the peer has sent.
func (p *Peer) RaiseData(limit uint64) {
	if p.out.raise(limit, p.core.Now()) {
		p.schedule()
	}
}

// fitWindow widens the window of segment bytes from the peer, up to WidestData, if the path can
// hold more bytes in flight. It does nothing until the round trip is known.
func (p *Peer) fitWindow() {
	trip := p.RoundTrip()
	if trip == 0 {
		return
	}
	if w := min(p.dataIn.Suits(p.core.Now(), trip), WidestData); w > p.dataIn.Window() {
		p.dataIn.Grow(w - p.dataIn.Window())
	}
}

// measure sends an Echo request to the peer if the round trip of the path is due to be measured.
func (p *Peer) measure() {
	if p.core.limit.LongPath < 0 {
		return
	}
	if now := p.core.Now(); p.path.Ask(now, p.core.limit.LongPath) {
		p.echo(0, wire.Echo{Sent: uint64(now)})
	}
}

// echo sends an Echo frame, with flags and body e, to the peer.
func (p *Peer) echo(flags uint8, e wire.Echo) {
	f := p.NewFrame(wire.TypeEcho, flags, wire.EchoLen, 0)
	f.Buf = e.Append(f.Buf)
	p.Send(f)
}

// echoed handles an Echo frame from the peer: it answers a request, or measures the round trip from
// a reply. An error means that the frame is malformed.
func (p *Peer) echoed(flags uint8, body []byte) error {
	e, err := wire.ParseEcho(body)
	if err != nil {
		return err
	}
	if flags&wire.FlagReply == 0 {
		p.echo(wire.FlagReply, e)
		return nil
	}
	p.path.Back(time.Duration(e.Sent), p.core.Now())
	p.measure()
	return nil
}

// Long reports whether the round trip of the path to the peer is known to be long
// (Limits.LongPath). It measures a long path again from time to time, because a process that is
// slow to answer makes its path look long.
func (p *Peer) Long() bool {
	if !p.Far() {
		return false
	}
	p.measure()
	return true
}
