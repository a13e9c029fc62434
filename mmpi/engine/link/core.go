package link

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leidenzipper/zipper/internal/sparse"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
	"github.com/leidenzipper/zipper/mmpi/engine/flow"
	"github.com/leidenzipper/zipper/mmpi/engine/limits"
	"github.com/leidenzipper/zipper/mmpi/engine/link/demand"
	"github.com/leidenzipper/zipper/mmpi/engine/link/failover"
	"github.com/leidenzipper/zipper/mmpi/engine/sealing"
	"github.com/leidenzipper/zipper/mmpi/engine/wait"
	"github.com/leidenzipper/zipper/mmpi/engine/world"
)

// Upper is the layer above the links, for which they carry frames and large messages. Its methods
// are called with the lock held.
type Upper interface {
	// Frame handles the header and body of a frame whose turn it is. It returns the destination of
	// the payload, beyond which bytes are discarded, and done, which is called when the payload is
	// complete; nil: nothing is called. Frame must not keep body. An error means that the peer
	// violates the protocol.
	Frame(p *Peer, h wire.Header, body []byte, payload int) (dst []byte, done Payload, err error)
	// Source returns the send with a handle; nil if it is complete, or was never cleared for
	// sending.
	Source(p *Peer, handle uint64) *Source
	// Sink returns the receive with a handle; nil if it is complete, or was never the receive of a
	// large message from this peer.
	Sink(p *Peer, handle uint64) *Sink
	// Written reports that all bytes of a Source, a large message that is being sent, have been
	// written to links. If a link is lost before the peer has acknowledged the bytes, they are sent
	// again without another report.
	Written(*Source)
	// Filled reports that all bytes of a Sink, a large message that is being received, have
	// arrived. Links no longer use its buffer.
	Filled(*Sink)
	// SendCredit sends the peer the current limits of its bytes in flight, among them that of
	// segment bytes (Peer.DataLimit). The peer may not know them: they are higher than before, or
	// the frame with them may be lost.
	SendCredit(*Peer)
	// Lost reports that a cluster is lost, for a reason that is shown to the user. No frame from or
	// to its ranks is handled any more.
	Lost(cluster int, reason string)
	// Fatal ends the job with an exit status, shows the reason to the user, and calls Set.Close.
	Fatal(code fault.Code, status int, reason string)
}

// Payload is a frame that an Upper has begun to handle and whose payload is being received.
type Payload interface {
	// Landed reports that all n bytes of the payload are in place.
	Landed(n int) error
}

// core is the state that all rails and peers of a Set share.
type core struct {
	store
	world  *world.World  // clusters of the job, and this process's rank
	upper  Upper         // layer above the links
	limit  limits.Limits // limits of the engine, which callers may change
	system wait.System   // clock, sleep and goroutines
	// start is the system's time at which Now would return 0. It lies before the first event,
	// because a recorded time of 0 means never.
	start time.Duration
	lock  sync.Locker   // held by callers of the Set's methods (Config.Lock)
	woken func()        // wakes sleeping threads when there are new descriptors (Config.Woken); nil: no thread sleeps
	seal  *sealing.Keys // keys at level sealed; nil at other levels

	// Memory records memory of the program that could not be accessed. Each Step tries the access
	// again. A fault is not recorded while a caller of Take accesses the memory (until Release).
	Memory fault.Memory
	// Losses has the clusters that are lost.
	Losses Losses
	// Demands has the state of direct links that are opened on demand.
	Demands Demands

	checked bool // Frames carry checksums of their bodies and payloads.
	multi   bool // More than one forwarder leads to each process.
	replays bool // The job goes on when a link to a forwarder is lost.
	hops    bool // The job has several hops: not every forwarder leads to every process.
	size    int  // number of ranks in the whole job, over all clusters
	slots   int  // length of Peer.lanes: number of forwarders, plus one if there may be direct links
	turn    int  // number of bytes that a rail writes before other rails have their turn
	// number of segment bytes that may arrive on a lane before they are acknowledged, where several
	// rails lead to the peer, unless a message ends before; elsewhere landedLazily bytes may arrive
	landedEvery int
	pathTo      []flow.Path // measured round trip to each cluster, by index of the cluster

	tracker *failover.Tracker // decides what happens when links are lost or opened
	// all rails (paths of this process): first those to forwarders, then those directly to other
	// processes
	rails      railList
	forwarders []*rail   // rails to forwarders; the index is rail.index
	routes     [][]*rail // rails to forwarders that lead to each cluster, by index of the cluster
	// other processes, by rank in the whole job; an entry is nil until it is first used
	peers sparse.Table[*Peer]

	acks     []*Peer      // peers to which this process owes an acknowledgement
	unacked  int          // number of frames to all peers that are kept until they are acknowledged
	progress uint64       // counter that rises when something new arrives or is acknowledged
	lanes    []*flow.Lane // scratch memory of Peer.share
	zcopy    zcopy        // program memory that is registered with links
	ended    bool         // The links have been closed.

	ctx     context.Context    // context that ends when the links are closed
	cancel  context.CancelFunc // function that ends ctx
	changed chan struct{}      // receives a value when a direct link has been opened, or could not be opened
}

// Now returns the time since the Set was made, by the clock of Config.System. It is never 0.
func (c *core) Now() time.Duration { return c.system.Now() - c.start }

// Limit returns the limits of the engine, such as timeouts. A caller that holds the lock may change
// them.
func (c *core) Limit() *limits.Limits { return &c.limit }

// Unacked returns the number of sequenced frames that have been sent and not acknowledged, to all
// peers.
func (c *core) Unacked() int { return c.unacked }

// advanced raises the counter of progress, because something new has arrived or was acknowledged.
func (c *core) advanced() { c.progress++ }

// retain adds n to the number of frames that are kept until they are acknowledged. n is negative
// when frames are released.
func (c *core) retain(n int) { c.unacked += n }

// owes records that this process must send peer p an acknowledgement.
func (c *core) owes(p *Peer) { c.acks = append(c.acks, p) }

// ackedAll records that this process has sent all acknowledgements that it must send.
func (c *core) ackedAll() { c.acks = c.acks[:0] }

// directChanged wakes a caller of AwaitDirect, because a direct link has been opened, or could not
// be opened.
func (c *core) directChanged() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// segmentDone counts a segment of a Source as written or no longer needed. After the last one it
// calls Upper.Written.
func (c *core) segmentDone(src *Source) {
	if src.segmentDone() {
		c.upper.Written(src)
	}
}

// wake wakes sleeping threads, so that they also wait for the descriptors of new links.
func (c *core) wake() {
	if c.woken != nil {
		c.woken()
	}
}

// blames reports whether err, which a link returned for an access to mem, is a fault of the
// program's memory rather than of the link (fault.Memory.Blames). writes says that the access
// writes to mem; owner returns the name of the message. After too many faults at one place, blames
// ends the job.
func (c *core) blames(err error, mem []byte, writes bool, owner func() string) bool {
	yes, fatal := c.Memory.Blames(err, mem, writes, owner)
	if fatal != nil {
		c.upper.Fatal(fault.Arg, 1, fatal.Error())
	}
	return yes
}

// sums writes the checksums of a complete frame into its header, and returns the frame.
func (c *core) sums(f *Frame) *Frame {
	f.sum(c.checked)
	return f
}

// Losses has the clusters that are lost for a process, in a job that outlives clusters
// (Config.OnLoss). The caller must hold the lock.
type Losses struct {
	core   *core
	onLoss bool   // The job goes on when a cluster is lost.
	lost   []bool // whether each cluster is lost, by index of the cluster; nil: none is
}

// Has reports whether a cluster is lost.
func (l *Losses) Has(cluster int) bool { return l.lost != nil && l.lost[cluster] }

// railList is a list of rails.
type railList []*rail

// add appends rail r, unless the list has it. The elements of the old list stay as they are,
// because loops over it may be under way.
func (l *railList) add(r *rail) {
	if !slices.Contains(*l, r) {
		*l = append((*l)[:len(*l):len(*l)], r)
	}
}

// remove removes rail r. The elements of the old list stay as they are, because loops over it may
// be under way.
func (l *railList) remove(r *rail) {
	if i := slices.Index(*l, r); i >= 0 {
		*l = slices.Concat((*l)[:i], (*l)[i+1:])
	}
}

// WayOpener opens the direct link to the rank in a forwarder's Way. It makes one attempt.
type WayOpener func(ctx context.Context, w wire.Way) (transport.Link, error)

// Demands has the state of direct links that are opened on demand. The caller must hold the lock.
type Demands struct {
	core    *core
	open    WayOpener  // opens a link; nil: this process has no direct links on demand
	offers  []bool     // whether the forwarder of each rail opens ways, by rail.index
	offered bool       // At least one of offers is true.
	due     []*Peer    // peers to which this process has sent enough, over forwarders, since the last tick
	ways    []wire.Way // Ways that have arrived since the last tick
	// claims has the peers for which a place among the links is taken although there is no link
	// yet, with the times at which the places are free again.
	claims   map[*Peer]time.Duration
	failures int // number of attempts in a row that have failed; maxFailures: the user was told

	traffic    wire.Moved    // amount that was sent over links on demand
	reported   wire.Moved    // value of traffic at the last report to a forwarder
	shares     []share       // reports to each forwarder, by rail.index
	reportedAt time.Duration // time of that report
}

// share is the part of a process's traffic over links on demand that one forwarder was told.
type share struct {
	wire.Moved
	informed bool // A report was sent over the current link.
}

// offer records whether the forwarder of the rail with an index opens ways.
func (d *Demands) offer(index int, on bool) {
	if d.open != nil {
		d.offers[index], d.shares[index].informed = on, false
		d.offered = slices.Contains(d.offers, true)
	}
}

// relayed counts n bytes for a peer that were given to rail r. If r leads to a forwarder and the
// pair has exchanged enough, the next tick asks for a direct link.
func (d *Demands) relayed(p *Peer, r *rail, n int) {
	if d.offered && r.peer == nil && p.demand.Relayed(n, d.core.limit.DirectAfter) {
		d.due = append(d.due, p)
	}
}

// countFrame counts a new sequenced frame to a peer that was given to rail r.
func (d *Demands) countFrame(p *Peer, r *rail, f *Frame) {
	switch {
	case r.peer == nil:
		d.relayed(p, r, len(f.Buf))
	case r.wanted:
		switch wire.Type(f.Buf[0]) {
		case wire.TypeEager:
			d.traffic.Messages++
			d.traffic.Bytes += uint64(len(f.Buf) - wire.HeaderLen - wire.EnvelopeLen)
		case wire.TypeRTS:
			d.traffic.Messages++
		}
	}
}

// countBulk counts n new bytes of a large message to a peer that were given to rail r.
func (d *Demands) countBulk(p *Peer, r *rail, n int) {
	if d.relayed(p, r, n); r.wanted {
		d.traffic.Bytes += uint64(n)
	}
}

// report tells a forwarder that opens ways how much was sent over links on demand, if that has
// changed. Each forwarder is told only what no other one was told, so that sums over all of them
// count nothing twice. A forwarder of which that is nothing is told so once: it knows by that that
// ranks can use ways.
func (d *Demands) report() {
	if d.traffic == (wire.Moved{}) {
		return
	}
	for _, r := range d.core.forwarders {
		share := &d.shares[r.index]
		if !d.offers[r.index] || r.State() != failover.Up || share.informed && d.traffic == d.reported {
			continue
		}
		share.Messages += d.traffic.Messages - d.reported.Messages
		share.Bytes += d.traffic.Bytes - d.reported.Bytes
		share.informed = true
		d.reported, d.reportedAt = d.traffic, d.core.Now()
		r.queue.push(d.core.takeControl(wire.TypeMoved, &share.Moved))
	}
}

// up begins to use the new link of rail r, if that is one on demand.
func (d *Demands) up(r *rail) {
	if r.wanted {
		now := d.core.Now()
		r.use.Begin(now)
		r.peer.demand.Up(now)
		delete(d.claims, r.peer)
		d.failures = 0
		d.core.rails.add(r)
	}
}

// down ends the use of the link of rail r, which is lost, if that is one on demand.
func (d *Demands) down(r *rail) {
	if r.wanted {
		r.peer.demand.Down(d.core.Now())
		d.core.rails.remove(r)
	}
}

// failed records that an attempt to open the link of rail r has failed, if that is one on demand.
// The first rank of a cluster tells the user when several have failed in a row.
func (d *Demands) failed(r *rail, err error) {
	if !r.wanted || d.core.ended || r.Linked() { // The other end may have opened the link meanwhile.
		return
	}
	delete(d.claims, r.peer)
	if d.failures == maxFailures || errors.Is(err, errNotTaken) || errors.Is(err, context.Canceled) {
		return
	}
	if d.failures++; d.failures == maxFailures {
		d.core.tracker.Say(fmt.Sprintf("no direct link to rank %d: %v; messages go through the forwarder (reported once; docs/howto/direct-links.md has the conditions for the zipper node's kernel)",
			r.peer.Rank, err))
	}
}

// room reports whether a direct link to a peer can be taken, if necessary in place of an idle one.
func (d *Demands) room(now time.Duration, p *Peer) bool {
	n := 0
	for _, r := range d.core.rails[len(d.core.forwarders):] {
		if r.wanted && r.peer != p && !demand.MayClose(r.use.Idle(now)) {
			n++
		}
	}
	for o, end := range d.claims {
		if now >= end {
			delete(d.claims, o)
		} else if o != p {
			n++
		}
	}
	return n < demand.MaxLinks
}
