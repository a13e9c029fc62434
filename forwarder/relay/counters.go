package relay

import (
	"sync/atomic"
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// tally counts frames of one run before they are added to the shared counters.
type tally struct{ frames, messages, payload, header, again uint64 }

func (t *tally) add(h *wire.Header) {
	payload := uint64(h.Payload())
	t.frames++
	t.payload += payload
	t.header += wire.HeaderLen + uint64(h.Length) - payload
	if h.Type == wire.TypeEager || h.Type == wire.TypeRTS {
		t.messages++
	}
	if h.Flags&wire.FlagAgain != 0 {
		t.again++
	}
}

// counters are the shared counts of one direction. Safe for concurrent use.
type counters struct{ frames, messages, payload, header, again, passed, placed atomic.Uint64 }

func (c *counters) add(t *tally) {
	c.frames.Add(t.frames)
	if t.messages > 0 {
		c.messages.Add(t.messages)
	}
	if t.payload > 0 {
		c.payload.Add(t.payload)
	}
	c.header.Add(t.header)
	if t.again > 0 {
		c.again.Add(t.again)
	}
}

// Counts is what went from cluster to cluster, by the ranks' clusters. Safe for concurrent use.
type Counts struct {
	clusters  int
	clusterOf []int
	cells     []counters // from cluster * clusters + to cluster
}

// NewCounts makes counts of so many clusters; clusterOf has each rank's.
func NewCounts(clusters int, clusterOf []int) *Counts {
	return &Counts{clusters, clusterOf, make([]counters, clusters*clusters)}
}

// between are the counters of a frame's direction.
func (c *Counts) between(src, dst uint32) *counters {
	return &c.cells[c.clusterOf[src]*c.clusters+c.clusterOf[dst]]
}

// Count is what went in one direction.
type Count struct {
	Messages uint64 // Eager and RTS frames
	Payload  uint64 // bytes of the programs' data
	Header   uint64 // bytes of everything else
	Frames   uint64
	Again    uint64 // frames that were sent before, over a link that was lost
	Passed   uint64 // bytes of Payload that were sent from where they were received
	Placed   uint64 // bytes of Passed that were written into the receiving program's memory
}

// Read tells what went from the ranks of one cluster to those of another.
func (c *Counts) Read(from, to int) Count {
	n := &c.cells[from*c.clusters+to]
	return Count{n.messages.Load(), n.payload.Load(), n.header.Load(), n.frames.Load(), n.again.Load(), n.passed.Load(),
		n.placed.Load()}
}

// watched is what an output tells of its queue: how long frames wait there, how much waits when one
// comes, and for how long anything did. With output.mu. Frames that are written at once cost
// nothing here.
type watched struct {
	length, waited Observer
	blocked        *atomic.Int64 // nanoseconds; nil: nobody wants to know
	since          int64         // when the queue began to be there; 0: it is empty
}

// origin is what moments are counted from, so that they fit into a number.
var origin = time.Now()

func moment() int64 { return int64(time.Since(origin)) + 1 }

// noteQueued is for an entry that has been charged and is about to be queued.
func (o *output) noteQueued(e *entry) {
	if o.since == 0 && o.blocked != nil {
		o.since = moment()
	}
	if o.length != nil {
		e.at = moment()
		o.length.Observe(float64(o.depth.Load()))
	}
}

// noteGone is for an entry that is written, or given up.
func (o *output) noteGone(e *entry) {
	if e.at != 0 {
		o.waited.Observe(time.Duration(moment() - e.at).Seconds())
	}
}

// stillBlocked brings the sum up to date.
func (o *output) stillBlocked() {
	if o.since != 0 {
		now := moment()
		o.blocked.Add(now - o.since)
		o.since = now
	}
}

// unblocked is called when nothing waits any more.
func (o *output) unblocked() {
	o.stillBlocked()
	o.since = 0
}

// watch has the time for which something waits here added to a sum.
func (o *output) watch(sum *atomic.Int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unblocked()
	o.blocked = sum
	if sum != nil && o.pending() {
		o.since = moment()
	}
}
