package link

import (
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/flow"
	"github.com/leidenzipper/zipper/mmpi/engine/limits"
	"github.com/leidenzipper/zipper/mmpi/engine/sealing"
)

// Peer is another process, with the flows to and from it.
type Peer struct {
	Rank  int // virtual rank
	Ahead int // bytes of payload that its frames may have ahead of their turn, for each rail

	core      *core
	rails     []*rail // rails to forwarders that lead to the peer
	preferred int     // place in rails of the one for everything but segments, if it reaches the peer
	direct    *rail   // rail that leads to this peer alone; nil: there is none
	lanes     []lane  // by rail
	distance
	keys     keys
	departed bool // The peer has left the job: it needs nothing more, and sends nothing more.

	// Frames.
	numbers flow.Numbers
	retained
	inbox

	// Bytes of large messages.
	out    outbox
	dataIn flow.Grant // what the peer may send
}

// lane is a flow's share of a rail, in both directions.
type lane struct {
	out      flow.Lane
	in       flow.Arrivals
	enrolled bool // The peer is in the rail's bulk ring.
}

func (l *lane) enroll(in bool) { l.enrolled = in }

// sent counts a segment, if it will be acknowledged.
func (l *lane) sent(s flow.Segment, now time.Duration, tracked bool) {
	if tracked {
		l.out.Send(s, now)
	}
}

// inbox has the sequenced frames of a peer that have arrived, and not been handled.
type inbox struct {
	order         flow.Order[[]byte] // complete frames ahead of their turn
	aheadBytes    int                // bytes of payload of these
	ackDue        bool               // The peer is in core.acks.
	delivering    arrival            // the frame whose turn it is and whose payload is arriving
	deliveringDst []byte             // where that payload goes
}

// Arriving returns how many bytes of payload the frame has that is next in order and has arrived in
// part.
func (i *inbox) Arriving() int { return i.delivering.n }

// distance is how far away a peer is.
type distance struct {
	path *flow.Path // shared by all peers of a cluster
	long *limits.Limits
}

// Far is Long without measuring.
func (d distance) Far() bool {
	trip := d.path.RoundTrip()
	return trip > 0 && trip >= d.long.LongPath
}

// RoundTrip returns the shortest time to the peer and back that has been measured; 0: none has.
func (d distance) RoundTrip() time.Duration { return d.path.RoundTrip() }

// keys are those of this process and a peer at level sealed, from the first frame on.
type keys struct{ pair *sealing.Pair }

// make makes the keys, unless there are some.
func (k *keys) make(p *Peer) (err error) {
	if k.pair == nil {
		k.pair, err = p.core.seal.Pair(p.Rank, p.core.slots)
	}
	return err
}

// Peer returns the peer of a virtual rank, which must be in range.
func (c *core) Peer(rank int) *Peer {
	p := c.peers.Get(rank)
	if p == nil {
		p = newPeer(c, rank)
		c.peers.Set(rank, p)
	}
	return p
}

func newPeer(c *core, rank int) *Peer {
	window := uint64(c.limit.DataWindow)
	cluster, _ := c.world.Place(rank)
	p := &Peer{Rank: rank, Ahead: c.limit.EagerWindow, core: c, rails: c.routes[cluster], distance: distance{&c.pathTo[cluster], &c.limit},
		lanes: make([]lane, c.slots), out: outbox{credit: flow.NewBudget(window)}, dataIn: flow.NewGrant(window)}
	p.preferred = p.preferredRail()
	for i := range p.lanes {
		p.lanes[i].out = flow.NewLane()
	}
	return p
}

// preferredRail returns the place in rails of the one that small messages take. It spreads pairs
// evenly, whether processes talk to all of another cluster or each to its counterpart, and both
// directions of a pair take the same rail.
func (p *Peer) preferredRail() int {
	lo, hi := min(p.Rank, p.core.world.Rank), max(p.Rank, p.core.world.Rank)
	_, first := p.core.world.Place(lo)
	_, second := p.core.world.Place(hi)
	n := len(p.rails)
	return (lo - first + (hi-second)/n) % n
}

// several reports whether more than one rail may lead to the peer, so that frames may overtake each
// other, and arrive twice.
func (p *Peer) several() bool { return p.core.multi || p.direct != nil }

// scattered reports whether frames from the peer may have overtaken each other: as in several, or
// because forwarders on the way have several connections between them (a trunk).
func (p *Peer) scattered() bool { return p.several() || p.core.hops }

// repeats reports whether frames may be sent to the peer twice over a rail: after the loss of a
// link on the way.
func (p *Peer) repeats(r *rail) bool {
	return p.several() || r.Replaced() || p.core.hops && p.core.replays
}

// rail returns the one for everything but segments; nil: none reaches the peer.
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

// railOf returns the rail of a lane.
func (p *Peer) railOf(lane int) *rail {
	if lane < len(p.core.forwarders) {
		return p.core.forwarders[lane]
	}
	return p.direct
}

// NewFrame starts a frame to the peer. The header is written but for its sums, with room for body
// and payload, which the caller appends to Buf. Then the caller must call Send with it, before
// another NewFrame for this peer.
func (p *Peer) NewFrame(t wire.Type, flags uint8, body, payload int) *Frame {
	return p.newFrame(t, flags, 1, body, payload)
}

func (p *Peer) newFrame(t wire.Type, flags uint8, epoch uint16, body, payload int) *Frame {
	h := wire.Header{Type: t, Flags: flags, Epoch: epoch, Length: uint32(body + payload),
		Src: uint32(p.core.world.Rank), Dst: uint32(p.Rank), Ack: p.order.Ack()}
	if t.Sequenced() {
		h.Seq = p.numbers.Next()
	}
	return p.core.takeTo(&h)
}

// Send gives a frame to a rail that reaches the peer; Set.Flush puts it on the link. If there is
// none now, a sequenced frame waits for one. Any other is discarded, because its contents are sent
// again once there is a rail.
func (p *Peer) Send(f *Frame) {
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
	case f.seq == 0:
		p.core.release(f)
	}
}

// resend gives retained frames that a lane carried (nobody: that found none) to a rail that reaches
// the peer, and repeats what is not retained: credit and acknowledgement.
func (p *Peer) resend(from int) {
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
			wire.MarkAgain(f.Buf)
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

// laneLost replays what a rail carried to the peer, of which nothing is queued there any more.
func (p *Peer) laneLost(r *rail) {
	l := &p.lanes[r.index]
	l.enroll(false)
	r.detach(p)
	p.out.replay(l.out.Reset())
	p.resend(r.index)
}

// delivered counts a sequenced frame as handled. It is acknowledged by the next frame to the peer,
// after ackEvery frames, or by the next tick.
func (p *Peer) delivered() {
	p.core.advanced()
	p.order.Take()
	if p.order.Untold() >= ackEvery {
		p.Send(p.NewFrame(wire.TypeAck, 0, 0, 0))
		return
	}
	if !p.ackDue {
		p.ackDue = true
		p.core.owes(p)
	}
}

// FlushAcks sends all acknowledgements that are owed.
func (c *core) FlushAcks() {
	for _, p := range c.acks {
		p.flushAck()
	}
	c.ackedAll()
}

// flushAck acknowledges what has not been acknowledged.
func (p *Peer) flushAck() {
	p.ackDue = false
	if p.order.Untold() > 0 {
		p.Send(p.NewFrame(wire.TypeAck, 0, 0, 0))
	}
}

// acked takes the acknowledgement in a frame from the peer.
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

// depart notes that the peer has left the job.
func (p *Peer) depart() {
	p.departed = true
	p.core.retain(-p.retained.drop(&p.core.store))
}

// Bulk sends a Source that is not empty. When all of it is in links, Upper.Written is called. Its
// buffer is in use until Set.Abandon, since bytes may have to be sent again.
func (p *Peer) Bulk(src *Source) {
	p.out.add(src, p.core.Now())
	p.measure()
	p.schedule()
}

// schedule gives the peer its turn on all rails that carry what is for it.
func (p *Peer) schedule() {
	for _, r := range p.core.forwarders {
		r.enroll(p)
	}
	if p.direct != nil {
		p.direct.enroll(p)
	}
}

// Open prepares a Sink, whose exported fields are set, for what the peer will send. The peer does
// not know yet that it may.
func (p *Peer) Open(k *Sink) {
	k.open()
	p.register(k)
}

// register makes the next parts of a Sink known to the link over which they arrive, if that is the
// only one. After a loss something may arrive again over another link, and would be written into
// memory that is the program's again.
func (p *Peer) register(k *Sink) {
	if p.scattered() || p.core.zcopy.from == 0 {
		return
	}
	if r := p.rail(); r != nil && !r.Replaced() {
		k.register(&p.core.zcopy, &r.conn)
	}
}

// DataLimit returns how many bytes of segments the peer may send since the beginning.
// Upper.SendCredit tells the peer.
func (p *Peer) DataLimit() uint64 { return p.dataIn.Limit() }

// RaiseData takes the peer's DataLimit.
func (p *Peer) RaiseData(limit uint64) {
	if p.out.raise(limit, p.core.Now()) {
		p.schedule()
	}
}

// fitWindow widens the window of what the peer sends if its path takes more.
func (p *Peer) fitWindow() {
	trip := p.RoundTrip()
	if trip == 0 {
		return
	}
	if w := min(p.dataIn.Suits(p.core.Now(), trip), WidestData); w > p.dataIn.Window() {
		p.dataIn.Grow(w - p.dataIn.Window())
	}
}

// measure sends an echo to the peer if the path there is due to be measured.
func (p *Peer) measure() {
	if p.core.limit.LongPath < 0 {
		return
	}
	if now := p.core.Now(); p.path.Ask(now, p.core.limit.LongPath) {
		p.echo(0, wire.Echo{Sent: uint64(now)})
	}
}

func (p *Peer) echo(flags uint8, e wire.Echo) {
	f := p.NewFrame(wire.TypeEcho, flags, wire.EchoLen, 0)
	f.Buf = e.Append(f.Buf)
	p.Send(f)
}

// echoed handles an Echo frame.
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

// Long reports whether the path to the peer is known to be long. It is then measured again from
// time to time, because a process that is slow to answer makes its path look long.
func (p *Peer) Long() bool {
	if !p.Far() {
		return false
	}
	p.measure()
	return true
}
