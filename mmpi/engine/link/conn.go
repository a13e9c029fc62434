package link

import (
	"context"
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/splice"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/limits"
	"github.com/leidenzipper/zipper/mmpi/engine/link/ready"
	"github.com/leidenzipper/zipper/mmpi/engine/sealing"
)

// conn is a rail's current link, with the optional features of the link and the segment lengths
// that suit it.
type conn struct {
	splicer
	link   transport.Link   // current link; nil: the rail has none
	lender transport.Lender // the link if it sends a segment as one piece; otherwise nil
	placer transport.Placer // the link if it sends and receives registered memory without copies; otherwise nil
	narrow transport.Narrow // the link if it knows the rate of its bottleneck; otherwise nil
	seal   sealing.Link     // at level sealed: keys for frames between this process and the forwarder
	// watched is the link's membership in Set.ready.
	watched ready.Entry

	most   int // largest payload of a segment in bytes, unless the flow is fast
	long   int // largest payload of a segment of a fast flow, in bytes
	crumb  int // largest rest of a message, in bytes, that is added to its last segment
	packet int // length of the link's packets in bytes; 0: unknown, or segments are sent as pieces
	head   int // length of a segment without its payload, in bytes
}

// attach takes link l into use, and sets the features and segment lengths that suit it. l is nil if
// the link is not open yet; keys is nil unless the level is sealed. direct says that the link leads
// to another process without a forwarder.
func (c *conn) attach(l transport.Link, keys *sealing.Keys, limit *limits.Limits, direct bool) {
	pipe := c.pipe
	*c = conn{link: l, head: wire.HeaderLen + wire.DataLen, most: limit.Segment}
	c.pipe = pipe
	c.narrow, _ = l.(transport.Narrow)
	if keys != nil { // Sealed frames are sent from the engine's own memory.
		c.head += wire.SealLen
		if !direct && l != nil {
			c.seal = keys.Link(l)
		}
	} else {
		c.lender, _ = l.(transport.Lender)
		c.placer, _ = l.(transport.Placer)
		c.piper, c.splices = l.(splice.Link)
	}
	c.long = min(longSegment*c.most, mostSegment(limit.DataWindow))
	if direct { // No forwarder stores segments, and frames of other pairs do not wait behind them.
		c.most = c.long
	}
	if p, ok := l.(transport.Packeted); ok && c.lender == nil {
		c.packet = p.Packet()
		c.most = fullPackets(c.most, c.packet, c.head)
		c.crumb = min(c.most/8, wire.MaxPayload-c.most)
	}
}

// close closes the link, if there is one, and its pipe.
func (c *conn) close() {
	if c.link != nil {
		c.watched.Remove()
		c.link.Close()
		c.link = nil
	}
	c.dropPipe()
}

// segmentSize returns how many of the left bytes of a message go into its next segment. A segment
// is longer than usual (longFor, longShare) if the flow is fast, many bytes are left, the length of
// the link's packets is known, and no other rail shares the message (shares is false). It is
// shorter (longFor) if the network is slow, because frames that overtake segments wait for the end
// of the current one.
func (c *conn) segmentSize(o *outbox, left int64, shares bool) int {
	n := c.most
	if c.narrow != nil {
		if rate := c.narrow.Bottleneck(); rate > 0 {
			n = min(n, max(leastSegment, int(rate*longFor.Seconds())))
		}
	}
	if c.long > n && c.packet > 0 && !shares {
		n = max(n, fullPackets(min(c.long, int(o.backlog/longShare), int(o.pace.Rate()*longFor.Seconds())), c.packet,
			c.head))
	}
	if left <= int64(n+c.crumb) {
		return int(left)
	}
	return n
}

// fullPackets returns the largest payload up to n bytes with which a segment fills packets of
// packet bytes. head is the length of the segment without its payload. If there is no such payload,
// it returns n.
func fullPackets(n, packet, head int) int {
	if packet <= head || packet > n+head {
		return n
	}
	return (n+head)/packet*packet - head
}

// patience returns how long a ping may stay unanswered before the link is given up. It may be
// longer (waits) while the network still reaches the other host: then the process there is stopped,
// or waits for a core. That holds for the only remaining link, and for those on demand, which are
// given up when the network fails (cutOff).
func (c *conn) patience(limit *limits.Limits, waits bool) time.Duration {
	if l, ok := c.link.(transport.Listening); ok && waits {
		if unheard, known := l.Unheard(); known && unheard < limit.Silence {
			return max(limit.Silence, limit.LastWay)
		}
	}
	return limit.Silence
}

// cutOff reports whether the other host has not acknowledged what was sent for longer than
// directUnheard, or four round trips. The host of a process that is stopped, or reads nothing,
// acknowledges.
func (c *conn) cutOff() bool {
	l, ok := c.link.(transport.Listening)
	if !ok {
		return false
	}
	unheard, known := l.Unheard()
	if !known || unheard <= directUnheard {
		return false
	}
	if l, ok := c.link.(transport.Distant); ok {
		if path, known := l.Path(); known {
			return unheard > 4*path.RoundTrip
		}
	}
	return true
}

// opener is a function that opens a rail's link, unless ctx ends before.
type opener func(ctx context.Context, a Attempt) (transport.Link, error)

// dialer opens a rail's link, and cancels attempts to open it.
type dialer struct {
	// open opens the link. It is called only if Rail.Dials returns true; nil: the links are opened
	// on demand (Demands.connect).
	open   opener
	cancel func() // cancels the last attempt to open the link; nil: no attempt was made
}

// abort cancels the attempt to open the link that is in progress, if there is one.
func (d *dialer) abort() {
	if d.cancel != nil {
		d.cancel()
	}
}

// splicer sends long segments (segmentSize) without copying them into the socket: the socket gets
// the program's pages through a pipe. The pages must not change before the receiver has their
// contents, because TCP may retransmit them, and a receiver on the same machine reads the pages
// themselves. A Source's buffer stays unchanged that long: the program gets it back at Set.Abandon,
// when the receiver has the whole message. Pages of the buffer may be on their way a second time
// then, because a segment was sent again: the receiver discards them, and does not verify their
// checksum (arrival.isDuplicate). If a segment is detached from its Source, the rest of it is sent
// from a copy, which is not spliced.
type splicer struct {
	piper   splice.Link  // the link if it sends the contents of a pipe; otherwise nil
	pipe    *splice.Pipe // pipe that holds pages of the current segment; nil: not created yet
	splices bool         // Long segments go through the pipe.
}

// begin puts the head of a segment into the pipe, which it creates if necessary. It returns false,
// and ends the use of pipes on this link, if that fails.
func (c *splicer) begin(head []byte) bool {
	if c.pipe == nil {
		pipe, err := splice.NewPipe(pipeSize)
		if err != nil { // The user's limit for pipes is reached.
			c.splices = false
			return false
		}
		pipe.Quiet()
		c.pipe = pipe
	}
	if err := c.pipe.Write(head); err != nil {
		c.splices = false
		c.dropPipe()
		return false
	}
	return true
}

// splice puts the pages of data into the pipe, and moves as many bytes as the link takes from the
// pipe to the link. head and data are the parts of the segment that have not been written; data is
// nil if only the bytes in the pipe are to be moved. The results are those of TryWrite, or 0 and
// nil if the pipe is empty because it cannot take data: the caller must then write the bytes
// without it.
func (c *splicer) splice(head, data []byte) (int, error) {
	if in := c.pipe.Len() - len(head); in < len(data) && c.splices {
		// A device's memory, which is not made of pages, must be copied: the rest of this segment,
		// and all that follow.
		c.splices = c.pipe.Give(data[in:]) == nil
	}
	if c.pipe.Len() == 0 {
		return 0, nil
	}
	return c.piper.TryDrain(c.pipe)
}

// dropPipe closes the pipe to the link, if there is one, and discards its contents.
func (c *splicer) dropPipe() {
	if c.pipe != nil {
		c.pipe.Close()
		c.pipe = nil
	}
}
