package link

import (
	"context"
	"fmt"
	"time"

	"github.com/leidenzipper/zipper/internal/list"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/trickle"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/sealing"
)

// rail is a link to a forwarder, or to one other process (direct.go), with what waits to go out and
// the frame that is coming in.
type rail struct {
	set    *Set
	state  railState
	addr   string   // forwarder: as the job names it; empty: unknown
	index  int      // in Set.forwarders and Peer.lanes; the direct one is the last
	peer   *Peer    // direct: the process at the other end
	redial redialer // opens the link and hands it over; nil: never, or the other end does
	retry  func()   // ends the attempt to open it that is under way; nil: none is
	trying bool     // one is
	failed error    // why the last attempt to open it failed
	told   bool     // forwarder: the user knows that it is not in use
	leaves bool     // Bye is to be said again when the link is back

	// stopped: the forwarder ended the last link in order (Bye). It is dialled for the whole
	// patience, also while its host refuses connections, because an administrator may be restarting
	// it.
	stopped bool

	reborn  bool          // it has had another link: what comes may have come before
	losses  int           // of its links
	strikes int           // losses in a row, soon after the link was there and without anything new
	since   time.Duration // when the link was taken into use,
	had     uint64        // and Set.progress then
	lostAt  time.Duration // when it was lost,
	why     string        // and why

	link    transport.Link
	lender  transport.Lender // the link, if it has large pieces
	placer  transport.Placer // the link, if they need not be copied
	piper   transport.Piper  // the link, if it takes what is in
	narrow  transport.Narrow // nil: the link does not know
	pipe    *transport.Pipe  // which has pages of the segment at hand (splice.go); nil: there is none yet
	splices bool             // long segments go that way
	most    int              // bytes of payload in a segment,
	long    int              // in one of a fast flow,
	crumb   int              // and so few may be left for the last one to take too
	packet  int              // bytes; 0: unknown

	seal sealing.Link // at level sealed: for frames to and from the forwarder
	room []byte       // and for the segment at hand

	unreachable map[int]wire.RailState // what the forwarder says of virtual ranks to which it has no link
	in          input

	queue   list.List[*Frame] // control and eager frames: they overtake segments, but do not interrupt one
	bulk    []*Peer           // peers with segments to send, in turn
	seg     segment           // the Data frame that is being written
	unsent  int               // frames in queue that keep the engine busy
	blocked bool              // the link took nothing more
	iov     [][]byte

	count  counter
	slow   trickle.Detector
	fresh  bool          // something came since the last tick
	heard  time.Duration // tick at which something had come last
	pinged time.Duration // tick at which an unanswered ping was sent; 0: none
}

// redialer opens a link; leaves: to say good-bye there, and no more.
type redialer func(ctx context.Context, leaves bool) error

// railState is where a rail stands.
//
//	down ─reconnect→ dialling ─link there→ up          down ─the other end has dialled→ up
//	dialling ─refused, or too late→ down
//	up ─lost→ down      up ─Finish→ byeSent ─ByeAck→ closed      up ─Bye of the other process→ leaving
//	byeSent ─lost→ down, to say it again              leaving ─lost→ closed
//	any ─end of the job→ closed
type railState uint8

const (
	// No link, and this end opens none. Nothing is read or written; frames take other rails.
	down railState = iota
	// As down, but a goroutine tries to open the link.
	dialling
	// Frames go both ways.
	up
	// Bye is sent, ByeAck is still to come: reads and writes go on, nobody pings.
	byeSent
	// Direct: the other process is through. No new frames for it; the link is not opened again.
	leaving
	// The good-byes are over: nothing is read, what is queued goes out while the link is there.
	closed
)

var railStateNames = [...]string{"down", "dialling", "up", "byeSent", "leaving", "closed"}

func (s railState) String() string { return railStateNames[s] }

// railLegal[from] is the set of states that may follow.
var railLegal = [...]uint8{
	down:     1<<dialling | 1<<up | 1<<closed,
	dialling: 1<<up | 1<<down | 1<<closed,
	up:       1<<down | 1<<byeSent | 1<<leaving | 1<<closed,
	byeSent:  1<<down | 1<<closed,
	leaving:  1 << closed,
	closed:   1 << closed,
}

// to moves the rail to the next state.
func (r *rail) to(s railState) {
	if railLegal[r.state]&(1<<s) == 0 {
		panic(fmt.Sprintf("link: rail goes from %v to %v", r.state, s))
	}
	if r.set.trace != nil && r.state != s {
		r.set.trace(fmt.Sprintf("rail %s: %v -> %v", r.name(), r.state, s))
	}
	r.state = s
}

// name tells the rails of a process apart.
func (r *rail) name() string {
	if r.peer != nil {
		return fmt.Sprintf("to rank %d", r.peer.Rank)
	}
	return fmt.Sprint(r.index)
}

// end names what is at the other end of the rail.
func (r *rail) end() string {
	if r.peer != nil {
		return fmt.Sprintf("rank %d", r.peer.Rank)
	}
	return "forwarder"
}

// linked reports whether there is a link.
func (r *rail) linked() bool { return r.state >= up && r.link != nil }

// reads reports whether what comes is read. Nobody sleeps on a link of which it is not: once the
// other end has closed it, it would be ready for ever.
func reads(r *rail) bool { return r.linked() && r.state != closed }

// open reports whether frames for others may be put on the rail.
func (r *rail) open() bool { return r.state == up || r.state == byeSent }

// tracked reports whether segments over this rail are acknowledged, because the job goes on when it
// is lost.
func (r *rail) tracked() bool { return r.set.replays || r.peer != nil }

// shares reports whether a peer's segments may go over other rails as well.
func (r *rail) shares() bool { return r.set.multi || r.peer != nil }

// attach gives the rail its link, which may be nil.
func (r *rail) attach(l transport.Link) {
	r.link = l
	r.count = counter{due: l != nil}
	r.lender, _ = l.(transport.Lender)
	r.placer, _ = l.(transport.Placer)
	r.piper, r.splices = l.(transport.Piper)
	r.narrow, _ = l.(transport.Narrow)
	if r.set.seal != nil { // all of it is made anew in memory of our own
		r.lender, r.placer, r.piper, r.splices = nil, nil, nil, false
		if r.peer == nil && l != nil {
			r.seal = r.set.seal.Link(l)
		}
	}
	r.most, r.crumb, r.packet = r.set.limit.Segment, 0, 0
	r.long = min(longSegment*r.most, mostSegment(r.set.limit.DataWindow))
	if r.peer != nil { // nobody stores them on the way, and nobody else's messages wait
		r.most = r.long
	}
	if p, ok := l.(transport.Packeted); ok && r.lender == nil {
		r.packet = p.Packet()
		r.most = fullPackets(r.most, r.packet, segmentHead(r.set))
		r.crumb = min(r.most/8, wire.MaxPayload-r.most)
	}
}

// takeIntoUse makes a link that has been opened the rail's.
func (r *rail) takeIntoUse(l transport.Link) {
	r.attach(l)
	if r.in.buf == nil {
		r.in.buf = make([]byte, inputSize)
	}
	r.to(up)
	r.unreachable, r.blocked, r.failed = nil, false, nil
	r.fresh, r.heard, r.pinged = true, r.set.Now(), 0
	r.since, r.had = r.heard, r.set.progress
	r.reborn, r.stopped, r.slow = true, false, trickle.Detector{}
}

// push queues a frame.
func (r *rail) push(f *Frame) {
	f.queued = true
	if !f.background {
		r.unsent++
	}
	r.queue.Push(&f.out)
}

// pop takes the first frame from the queue.
func (r *rail) pop() *Frame {
	f := r.queue.First().Of
	r.queue.Remove(&f.out)
	f.unseal(r.set)
	f.queued = false
	if !f.background {
		r.unsent--
	}
	return f
}

// fail notes that the link is of no use any more.
func (r *rail) fail() {
	// Whether the forwarder has read Bye nobody knows. If it has not it tells others that this
	// process is lost.
	r.leaves = r.state == byeSent && r.set.replays && r.redial != nil && r.peer == nil
	if r.state == up || r.leaves {
		r.to(down)
	} else {
		r.to(closed) // one end is through
	}
	r.drop()
}

// drop forgets what waits to go out.
func (r *rail) drop() { r.queue, r.unsent, r.bulk, r.seg.active = list.List[*Frame]{}, 0, nil, false }

// close ends the link.
func (r *rail) close() {
	if r.link != nil {
		r.link.Close()
		r.link, r.count = nil, counter{}
	}
	r.dropPipe()
}

// pending reports whether there is something to write.
func (r *rail) pending() bool {
	return r.linked() && (!r.queue.Empty() || r.seg.active || len(r.bulk) > 0 || r.count.due)
}

// fullPackets is how long segments of about n bytes are that leave no short packet behind.
// Besides payload they have head bytes.
func fullPackets(n, packet, head int) int {
	if packet <= head || packet > n+head {
		return n
	}
	return (n+head)/packet*packet - head
}

// Now is the time since the start.
func (s *Set) Now() time.Duration { return s.system.Now() - s.start }

// toScratch has the rest of the payload that is coming thrown away.
func (r *rail) toScratch() {
	r.in.skip += len(r.in.dst)
	r.in.all, r.in.dst, r.in.lax = nil, nil, true
}

// segmentHead is how many bytes a segment has beside its payload.
func segmentHead(s *Set) int {
	if s.seal != nil {
		return wire.HeaderLen + wire.DataLen + wire.SealLen
	}
	return wire.HeaderLen + wire.DataLen
}
