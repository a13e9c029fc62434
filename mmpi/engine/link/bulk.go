package link

import (
	"fmt"
	"time"

	"github.com/leidenzipper/zipper/internal/list"
	"github.com/leidenzipper/zipper/mmpi/engine/flow"
)

// A large message travels as segments, each over whichever rail has room. Over one rail they arrive
// in order. Over several they arrive in any order, and after a loss some arrive twice. Every
// segment names its place in the message, so all that matters is which bytes have arrived.

// Source is a message that its receiver has cleared: its bytes go out as segments. Its owner keeps
// it in place until Set.Abandon.
type Source struct {
	Handle   uint64       // names the Source to Upper.Source
	Receiver uint64       // names the Sink at the other end
	Buf      []byte       // the bytes that were cleared; unchanged until Set.Abandon
	Zcopy    bool         // Buf may be registered with links.
	Owner    fmt.Stringer // names the message to the user

	node    list.Node[*Source] // in outbox.sources
	started int64              // bytes that have been given to a rail
	writing int                // number of segments that are being written
	mem     registration
}

// Release takes back what links know of the Source's memory.
func (src *Source) Release() { src.mem.release() }

// segmentDone counts a segment that has been written, or need not be any more. It reports whether
// that was the last one.
func (src *Source) segmentDone() bool {
	src.writing--
	return src.started == int64(len(src.Buf)) && src.writing == 0
}

// outbox has the bytes of large messages that a peer is to be sent.
type outbox struct {
	credit  flow.Budget        // what the peer takes
	sources list.List[*Source] // those with bytes left, in the order of their CTS
	backlog int64              // bytes left in sources
	pace    flow.Pace          // rate at which bytes are sent
	lost    []flow.Segment     // segments sent over a lost rail that may not have arrived: the replay queue
}

func (o *outbox) empty() bool { return o.sources.Empty() && len(o.lost) == 0 }

// add appends a Source.
func (o *outbox) add(src *Source, now time.Duration) {
	src.node.Of, src.mem.node.Of = src, &src.mem
	src.started, src.writing = 0, 0
	o.backlog += int64(len(src.Buf))
	if o.sources.Empty() {
		o.pace.Begin(o.credit.Limit(), now)
	}
	o.sources.Push(&src.node)
}

// raise takes a new limit of credit, and reports whether it is higher.
func (o *outbox) raise(limit uint64, now time.Duration) bool {
	if !o.credit.Raise(limit) {
		return false
	}
	o.pace.Acked(limit, now)
	return true
}

// replay queues segments that may not have arrived.
func (o *outbox) replay(lost []flow.Segment) { o.lost = append(o.lost, lost...) }

// nextLost takes a segment from the replay queue.
func (o *outbox) nextLost() (s flow.Segment, ok bool) {
	if len(o.lost) == 0 {
		o.lost = nil
		return s, false
	}
	s, o.lost = o.lost[0], o.lost[1:]
	return s, true
}

// next takes the next n bytes of the first Source, if the peer's credit allows it.
func (o *outbox) next(n int) (src *Source, s flow.Segment) {
	if !o.credit.Take(uint64(n)) {
		return nil, s
	}
	src = o.sources.First().Of
	s = flow.Segment{Request: src.Handle, Offset: src.started, Bytes: n}
	src.started += int64(n)
	o.backlog -= int64(n)
	src.writing++
	if src.started == int64(len(src.Buf)) {
		o.sources.Remove(&src.node)
	}
	return src, s
}

// left returns the bytes of the first Source that have not been given to a rail.
func (o *outbox) left() int64 {
	src := o.sources.First().Of
	return int64(len(src.Buf)) - src.started
}

// Sink is a receive that its sender has been told to fill. Its owner keeps it in place until
// Upper.Filled.
type Sink struct {
	Handle uint64       // names the Sink to Upper.Sink
	Buf    []byte       // where the bytes go that were cleared
	Zcopy  bool         // Buf may be registered with links.
	Owner  fmt.Stringer // names the message to the user

	arrived  int64      // bytes that have arrived
	cover    flow.Cover // which they are
	expected int64      // up to where Buf has been registered
	mem      registration
}

// Release takes back what links know of the Sink's memory.
func (k *Sink) Release() { k.mem.release() }

// open prepares the Sink for its first segment.
func (k *Sink) open() {
	k.arrived, k.cover, k.expected = 0, flow.Cover{}, 0
	k.mem.node.Of = &k.mem
}

func (k *Sink) full() bool { return k.arrived == int64(len(k.Buf)) }

// add counts n bytes at an offset that have arrived, and returns how many of them are new.
func (k *Sink) add(offset int64, n int) (fresh int64, err error) {
	fresh, err = k.cover.Add(offset, offset+int64(n))
	if err == nil {
		k.arrived += fresh
	}
	return fresh, err
}

// register makes further parts of the Sink known to the only link over which they arrive.
func (k *Sink) register(z *zcopy, c *conn) {
	if c != nil && c.placer != nil && z.may(k.Zcopy, &k.mem, len(k.Buf)) {
		k.expected = z.expect(c.placer, &k.mem, k.Handle, k.Buf, k.expected)
	}
}

// advance takes back the parts that have arrived completely.
func (k *Sink) advance() {
	k.mem.releaseUpTo(k.arrived)
	k.expected = max(k.expected, k.arrived)
}
