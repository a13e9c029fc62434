package link

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/leidenzipper/zipper/internal/list"
	"github.com/leidenzipper/zipper/mmpi/engine/flow"
)

// A large message travels as segments, each over whichever rail has room. Over one rail they arrive
// in order, unless two forwarders on the way have several connections between them. Over several
// rails they arrive in any order, and after a loss some arrive twice. Every segment names its place
// in the message, so all that matters is which bytes have arrived.

// Source is a large message that its receiver has cleared for sending (CTS): its bytes go out as
// segments. Its owner keeps it in place until Set.Abandon.
type Source struct {
	Handle   uint64       // number by which Upper.Source finds the Source
	Receiver uint64       // number by which the receiver knows its Sink for this message
	Buf      []byte       // bytes that the receiver has cleared; unchanged until Set.Abandon
	Zcopy    bool         // Buf may be registered with links, to be sent without a copy.
	Owner    fmt.Stringer // name of the message in errors shown to the user
	// Missing is the number of bytes at the end of the message that are not in memory yet, which
	// any thread lowers (Resume). Nil: all are there. Beyond is the number of bytes of the
	// message after Buf.
	Missing *int64
	Beyond  int64

	node    list.Node[*Source] // element of the list outbox.sources
	started int64              // number of bytes that have been given to rails, from the start of Buf
	// number of segments, without replays, that have been given to a rail and are not completely
	// written
	writing int
	mem     registration // parts of Buf that are registered with links
}

// Release deregisters the Source's buffer from all links.
func (src *Source) Release() { src.mem.release() }

// ready returns the number of bytes that are in memory and have not been given to rails.
func (src *Source) ready() int64 {
	n := int64(len(src.Buf))
	if src.Missing != nil {
		n = min(n, n+src.Beyond-atomic.LoadInt64(src.Missing))
	}
	return max(n-src.started, 0)
}

// segmentDone counts one segment of the Source as written or no longer needed. It returns true if
// that was the last one: no other segment is being written, and all bytes have been given to rails.
func (src *Source) segmentDone() bool {
	src.writing--
	return src.started == int64(len(src.Buf)) && src.writing == 0
}

// outbox holds the large messages to one peer whose bytes have not all been sent.
type outbox struct {
	credit  flow.Budget        // number of segment bytes that the peer still accepts
	sources list.List[*Source] // Sources with bytes that no rail has been given, in the order of their CTS
	backlog int64              // number of bytes in sources that no rail has been given
	pace    flow.Pace          // rate at which the peer receives bytes, measured from its grants of credit
	lost    []flow.Segment     // replay queue: segments sent over a lost rail that may not have arrived
}

// empty reports whether there are neither new bytes nor lost segments to send.
func (o *outbox) empty() bool { return o.sources.Empty() && len(o.lost) == 0 }

// add appends a Source, none of whose bytes have been sent. If the outbox had no Sources, the
// measurement of the peer's rate starts at the time now.
func (o *outbox) add(src *Source, now time.Duration) {
	src.node.Of, src.mem.node.Of = src, &src.mem
	src.started, src.writing = 0, 0
	o.backlog += int64(len(src.Buf))
	if o.sources.Empty() {
		o.pace.Begin(o.credit.Limit(), now)
	}
	o.sources.Push(&src.node)
}

// raise sets the limit of credit, the number of segment bytes since the start that the peer
// accepts, and reports whether it is higher than before. A lower limit is ignored. now is the time
// of the arrival, from which the rate is measured.
func (o *outbox) raise(limit uint64, now time.Duration) bool {
	if !o.credit.Raise(limit) {
		return false
	}
	o.pace.Acked(limit, now)
	return true
}

// replay appends segments that were sent over a lost rail and may not have arrived to those that
// are sent again.
func (o *outbox) replay(lost []flow.Segment) { o.lost = append(o.lost, lost...) }

// nextLost removes and returns the first segment of the replay queue; ok is false if the queue is
// empty.
func (o *outbox) nextLost() (s flow.Segment, ok bool) {
	if len(o.lost) == 0 {
		o.lost = nil
		return s, false
	}
	s, o.lost = o.lost[0], o.lost[1:]
	return s, true
}

// next assigns the next n bytes of the first Source to a segment, and returns both. It returns a
// nil Source if the peer's credit does not cover n bytes.
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

// ready returns the number of bytes of the first Source that can be given to a rail, or 0 if there
// is no Source.
func (o *outbox) ready() int64 {
	if o.sources.Empty() {
		return 0
	}
	return o.sources.First().Of.ready()
}

// Sink is the receive of a large message that the sender has been told to send (CTS). Its owner
// keeps it in place until Upper.Filled.
type Sink struct {
	Handle uint64       // number by which Upper.Sink finds the Sink
	Buf    []byte       // destination of the bytes that the sender was cleared to send
	Zcopy  bool         // Buf may be registered with links, to be received into without a copy.
	Owner  fmt.Stringer // name of the message in errors shown to the user
	// Arrived, unless it is nil, is set to the number of bytes at the front of Buf that have
	// arrived. Any thread may read it.
	Arrived *int64

	arrived  int64        // number of bytes that have arrived, without duplicates
	cover    flow.Cover   // ranges of Buf that have arrived
	expected int64        // end of the part of Buf that has been registered, as an offset in bytes
	mem      registration // parts of Buf that are registered with links
}

// Release deregisters the Sink's buffer from all links.
func (k *Sink) Release() { k.mem.release() }

// open clears what the Sink counts, before the first segment of its message.
func (k *Sink) open() {
	k.arrived, k.cover, k.expected = 0, flow.Cover{}, 0
	k.mem.node.Of = &k.mem
}

// full reports whether all bytes of the message have arrived in the Sink's buffer.
func (k *Sink) full() bool { return k.arrived == int64(len(k.Buf)) }

// add counts the n bytes at offset in the message as arrived, and returns how many of them are new.
// An error means that the range lies outside the message.
func (k *Sink) add(offset int64, n int) (fresh int64, err error) {
	fresh, err = k.cover.Add(offset, offset+int64(n))
	if err == nil {
		k.arrived += fresh
		if k.Arrived != nil {
			atomic.StoreInt64(k.Arrived, k.cover.Front())
		}
	}
	return fresh, err
}

// register registers the next parts of the Sink with link c, which must be the only link over which
// its segments arrive. It does nothing if the link or the message does not allow that.
func (k *Sink) register(z *zcopy, c *conn) {
	if c != nil && c.placer != nil && z.may(k.Zcopy, &k.mem, len(k.Buf)) {
		k.expected = z.expect(c.placer, &k.mem, k.Handle, k.Buf, k.expected)
	}
}

// advance deregisters the parts of the buffer whose bytes have all arrived, and lets the next
// registration begin after them.
func (k *Sink) advance() {
	k.mem.releaseUpTo(k.arrived)
	k.expected = max(k.expected, k.arrived)
}
