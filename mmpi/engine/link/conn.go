package link

import (
	"context"
	"time"

	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/limits"
	"github.com/leidenzipper/zipper/mmpi/engine/sealing"
)

// conn is a rail's link, with what it can do and how long segments are that suit it.
type conn struct {
	splicer
	link   transport.Link
	lender transport.Lender // the link, if it has large pieces
	placer transport.Placer // the link, if these need not be copied
	narrow transport.Narrow // the link, if it knows its bottleneck's rate
	seal   sealing.Link     // at level sealed: for frames to and from the forwarder

	most   int // longest segment, in bytes of payload
	long   int // longest segment of a fast flow, in bytes of payload
	crumb  int // the last segment also takes a rest of so many bytes
	packet int // length of the link's packets in bytes; 0: unknown
	head   int // bytes of a segment beside its payload
}

// attach takes a link. l nil: there is none yet. direct says that it leads to another process
// without a forwarder.
func (c *conn) attach(l transport.Link, keys *sealing.Keys, limit *limits.Limits, direct bool) {
	pipe := c.pipe
	*c = conn{link: l, head: wire.HeaderLen + wire.DataLen, most: limit.Segment}
	c.pipe = pipe
	c.narrow, _ = l.(transport.Narrow)
	if keys != nil { // What is sealed is written to memory of our own, and sent from there.
		c.head += wire.SealLen
		if !direct && l != nil {
			c.seal = keys.Link(l)
		}
	} else {
		c.lender, _ = l.(transport.Lender)
		c.placer, _ = l.(transport.Placer)
		c.piper, c.splices = l.(transport.Piper)
	}
	c.long = min(longSegment*c.most, mostSegment(limit.DataWindow))
	if direct { // No forwarder stores segments, and no other messages wait behind them.
		c.most = c.long
	}
	if p, ok := l.(transport.Packeted); ok && c.lender == nil {
		c.packet = p.Packet()
		c.most = fullPackets(c.most, c.packet, c.head)
		c.crumb = min(c.most/8, wire.MaxPayload-c.most)
	}
}

// close closes the link.
func (c *conn) close() {
	if c.link != nil {
		c.link.Close()
		c.link = nil
	}
	c.dropPipe()
}

// segmentSize returns how many of the bytes that are left of a message go into its next segment. A
// segment is longer than usual (longFor, longShare) where the flow is fast, much is left, and no
// other rail shares the message. It is shorter (longFor) where the network is slow, because frames
// that overtake segments wait for the end of one.
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

// fullPackets returns the length of segments of about n bytes of payload that leave no short packet
// behind. Besides payload they have head bytes.
func fullPackets(n, packet, head int) int {
	if packet <= head || packet > n+head {
		return n
	}
	return (n+head)/packet*packet - head
}

// patience returns how long a ping may go unanswered. The only link left (alone) is given up late
// while the network still reaches the other host: the process there is stopped, or waits for a
// core.
func (c *conn) patience(limit *limits.Limits, alone bool) time.Duration {
	if l, ok := c.link.(transport.Listening); ok && alone {
		if unheard, known := l.Unheard(); known && unheard < limit.Silence {
			return max(limit.Silence, limit.LastWay)
		}
	}
	return limit.Silence
}

// opener opens a link; leaves: only to send Bye.
type opener func(ctx context.Context, leaves bool) (transport.Link, error)

// dialer opens a rail's link.
type dialer struct {
	open   opener // is used only if failover.Rail.Dials
	cancel func() // ends the last attempt; nil: there was none
}

// abort ends the attempt that is in progress.
func (d *dialer) abort() {
	if d.cancel != nil {
		d.cancel()
	}
}

// splicer sends long segments (segmentSize) without copying them into the socket: it gets the
// program's pages, through a pipe. The pages may change only when the receiver has their contents,
// because TCP may send them again, and a receiver on the same machine reads the pages themselves. A
// Source's buffer does stay unchanged that long: it is the program's again at Set.Abandon. When a
// segment is detached from its Source before that, its receiver has the bytes already or gets them
// another way, and discards these.
type splicer struct {
	piper   transport.Piper // the link, if it takes what is in a pipe
	pipe    *transport.Pipe // has pages of the segment at hand; nil: there is none yet
	splices bool            // Long segments take the pipe.
}

// begin puts the head of a segment into the pipe, and reports whether it is there.
func (c *splicer) begin(head []byte) bool {
	if c.pipe == nil {
		pipe, err := transport.NewPipe(pipeSize)
		if err != nil { // The user has too many.
			c.splices = false
			return false
		}
		c.pipe = pipe
	}
	if err := c.pipe.Write(head); err != nil {
		c.splices = false
		c.dropPipe()
		return false
	}
	return true
}

// splice writes as much of the rest of a segment as the link takes. Its results are those of
// TryWrite.
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

func (c *splicer) dropPipe() {
	if c.pipe != nil {
		c.pipe.Close()
		c.pipe = nil
	}
}
