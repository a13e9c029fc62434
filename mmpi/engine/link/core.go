package link

import (
	"context"
	"sync"
	"time"

	"github.com/leidenzipper/zipper/internal/sparse"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/fault"
	"github.com/leidenzipper/zipper/mmpi/engine/flow"
	"github.com/leidenzipper/zipper/mmpi/engine/limits"
	"github.com/leidenzipper/zipper/mmpi/engine/link/failover"
	"github.com/leidenzipper/zipper/mmpi/engine/sealing"
	"github.com/leidenzipper/zipper/mmpi/engine/wait"
	"github.com/leidenzipper/zipper/mmpi/engine/world"
)

// Upper is the layer for which links carry frames. Its methods are called with the lock.
type Upper interface {
	// Frame acts on a frame whose turn it is, apart from its payload. It returns where the payload
	// goes (what does not fit is discarded), and what is called once it is there; nil: nothing.
	// body is not kept. An error means that the peer breaks the protocol.
	Frame(p *Peer, h wire.Header, body []byte, payload int) (dst []byte, done Payload, err error)
	// Source returns the send that a handle names; nil: it is over, or was never cleared.
	Source(p *Peer, handle uint64) *Source
	// Sink returns the receive that a handle names; nil: it is over, or was never one of a large
	// message from this peer.
	Sink(p *Peer, handle uint64) *Sink
	// Written reports that all of a Source has been given to links.
	Written(*Source)
	// Filled reports that all of a Sink has arrived. Links no longer use it.
	Filled(*Sink)
	// SendCredit tells the peer how much it may send (Peer.DataLimit), because it may not know.
	SendCredit(*Peer)
	// Fatal ends the job, and calls Set.Close.
	Fatal(code fault.Code, status int, reason string)
}

// Payload is a frame of an Upper whose payload is arriving.
type Payload interface {
	// Landed reports that its n bytes are in place.
	Landed(n int) error
}

// core is what the rails and peers of a Set share.
type core struct {
	store
	world  *world.World
	upper  Upper
	limit  limits.Limits
	system wait.System
	start  time.Duration // the system's time at which Now would be 0; where times are kept, 0 means never
	lock   sync.Locker
	woken  func() // Config.Woken
	seal   *sealing.Keys

	// Memory has memory of the program that could not be accessed. After it was taken the access is
	// tried again in the next Step.
	Memory fault.Memory

	checked     bool        // Bodies and payloads have checksums.
	multi       bool        // More than one forwarder leads to each process.
	replays     bool        // The job goes on when a link to a forwarder is lost.
	hops        bool        // Not every forwarder leads to every process.
	size        int         // number of virtual ranks
	slots       int         // number of rails that may lead to one process
	turn        int         // bytes that a rail writes at a time
	landedEvery int         // bytes of segments that may stay unacknowledged on a lane
	pathTo      []flow.Path // by cluster

	tracker    *failover.Tracker
	rails      []*rail // those to forwarders, then the direct ones
	forwarders []*rail
	routes     [][]*rail           // by cluster, the rails to forwarders that lead there
	peers      sparse.Table[*Peer] // by virtual rank; nil until first used

	acks     []*Peer // those that are owed an acknowledgement
	unacked  int     // number of retained frames of all peers
	progress uint64  // rises with everything new that arrives or is acknowledged
	lanes    []*flow.Lane
	zcopy    zcopy
	ended    bool // The links have been closed.

	ctx     context.Context // ends when the links are closed
	cancel  context.CancelFunc
	changed chan struct{} // receives when a direct link has been opened, or could not be
}

// Now returns the time since the start.
func (c *core) Now() time.Duration { return c.system.Now() - c.start }

// Limit returns the limits, which may be changed with the lock.
func (c *core) Limit() *limits.Limits { return &c.limit }

// Unacked returns how many sequenced frames no peer has acknowledged yet.
func (c *core) Unacked() int { return c.unacked }

// advanced counts something new that has arrived or was acknowledged.
func (c *core) advanced() { c.progress++ }

// retain counts frames that have been retained; negative: released.
func (c *core) retain(n int) { c.unacked += n }

// owes notes that a peer is owed an acknowledgement.
func (c *core) owes(p *Peer) { c.acks = append(c.acks, p) }

// ackedAll notes that no peer is owed an acknowledgement any more.
func (c *core) ackedAll() { c.acks = c.acks[:0] }

// directChanged tells a caller of AwaitDirect that a direct link has been opened, or could not be.
func (c *core) directChanged() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// segmentDone counts a segment of a Source that has been written, or need not be any more.
func (c *core) segmentDone(src *Source) {
	if src.segmentDone() {
		c.upper.Written(src)
	}
}

// wake has threads that sleep do so on the new descriptors.
func (c *core) wake() {
	if c.woken != nil {
		c.woken()
	}
}

// blames reports whether an error of a link is about the program's memory (fault.Memory.Blames).
func (c *core) blames(err error, mem []byte, writes bool, owner func() string) bool {
	yes, fatal := c.Memory.Blames(err, mem, writes, owner)
	if fatal != nil {
		c.upper.Fatal(fault.Arg, 1, fatal.Error())
	}
	return yes
}

// sums writes the checksums into a complete frame.
func (c *core) sums(f *Frame) *Frame {
	f.sum(c.checked)
	return f
}
