package relay

import (
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/leidenzipper/zipper/internal/wire"
)

// tally counts the frames of one run before they are added to the shared counters.
type tally struct{ frames, messages, payload, header, again uint64 }

// add counts one forwarded frame, whose header is h.
func (t *tally) add(h *wire.Header) {
	payload := uint64(h.Payload())
	t.frames++
	t.payload += payload
	t.header += wire.HeaderLen + uint64(h.Length) - payload
	if h.Type == wire.TypeEager || h.Type == wire.TypeRTS {
		t.messages++
	}
	if h.Flags&wire.FlagResent != 0 {
		t.again++
	}
}

// counters has the counts of the frames from one cluster to another, which several loops share. It
// is safe for concurrent use.
type counters struct{ frames, messages, payload, header, again, passed, placed atomic.Uint64 }

// add adds the counts in t to the shared counters.
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

// Counts has the traffic between each pair of clusters. It is safe for concurrent use.
type Counts struct {
	clusters  int
	clusterOf []int
	// the counters of each direction, at index (sender's cluster * clusters + receiver's cluster)
	cells []counters
}

// NewCounts returns counters for the traffic between a number of clusters. clusterOf has the index
// of each rank's cluster.
func NewCounts(clusters int, clusterOf []int) *Counts {
	return &Counts{clusters, clusterOf, make([]counters, clusters*clusters)}
}

// Bytes returns the number of bytes of memory of the counters.
func (c *Counts) Bytes() int64 { return int64(len(c.cells)) * int64(unsafe.Sizeof(counters{})) }

// between returns the counters of the direction from the cluster of src to that of dst, two ranks
// in the whole job.
func (c *Counts) between(src, dst uint32) *counters {
	return &c.cells[c.clusterOf[src]*c.clusters+c.clusterOf[dst]]
}

// Count is the traffic from the ranks of one cluster to those of another.
type Count struct {
	Messages uint64 // the number of messages, which is that of Eager and RTS frames
	Payload  uint64 // the number of bytes of the programs' data
	Header   uint64 // the number of bytes of headers and control frames
	Frames   uint64 // the number of frames
	Again    uint64 // the number of retransmitted frames
	Passed   uint64 // the bytes of Payload that were forwarded without a copy
	Placed   uint64 // the bytes of Passed that were written into the receiving program's memory
}

// Read returns the traffic so far from one cluster to another. Both are given by index.
func (c *Counts) Read(from, to int) Count {
	n := &c.cells[from*c.clusters+to]
	return Count{n.messages.Load(), n.payload.Load(), n.header.Load(), n.frames.Load(), n.again.Load(), n.passed.Load(),
		n.placed.Load()}
}

// watched has the statistics of an output's queue: the time that frames wait, the length when a
// frame is queued, and the time for which the queue was not empty. output.mu guards it. Frames that
// are written at once cost nothing here.
type watched struct {
	length, waited Observer // the sinks of queue lengths in bytes and waiting times in seconds, or nil
	// the sum of the time for which the queue was not empty, in nanoseconds, or nil
	blocked *atomic.Int64
	// the moment up to which blocked has been updated, or 0 while the queue is empty
	since int64
}

// origin is the zero point of moments, so that a moment fits into an integer.
var origin = time.Now()

// moment returns the number of nanoseconds since origin, plus 1: it is never 0.
func moment() int64 { return int64(time.Since(origin)) + 1 }

// noteQueued updates the statistics because entry e is about to be queued; its bytes have been
// charged already.
func (o *output) noteQueued(e *entry) {
	if o.since == 0 && o.blocked != nil {
		o.since = moment()
	}
	if o.length != nil {
		e.at = moment()
		o.length.Observe(float64(o.depth.Load()))
	}
}

// noteDequeued updates the statistics because entry e has been written or dropped.
func (o *output) noteDequeued(e *entry) {
	if e.at != 0 {
		o.waited.Observe(time.Duration(moment() - e.at).Seconds())
	}
}

// addBlocked adds the time since the last update to blocked, if the queue has not been empty
// since then.
func (o *output) addBlocked() {
	if o.since != 0 {
		now := moment()
		o.blocked.Add(now - o.since)
		o.since = now
	}
}

// unblocked updates blocked, the time for which the queue was not empty, because the queue has
// become empty.
func (o *output) unblocked() {
	o.addBlocked()
	o.since = 0
}

// watch adds to sum, from now on, the time for which the queue is not empty; nil ends that.
func (o *output) watch(sum *atomic.Int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unblocked()
	o.blocked = sum
	if sum != nil && o.pending() {
		o.since = moment()
	}
}
