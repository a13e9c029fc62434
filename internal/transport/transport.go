// Package transport is the interface between the engine or the forwarder and the networks that
// carry their bytes.
//
// A Link is one established connection: an ordered, reliable, full-duplex stream of bytes with
// nonblocking calls and a file descriptor to wait on. Framing, flow control and replay are above
// it; TCP sockets, shared memory and verbs rings are below it.
//
// Sizes are in bytes. Optional capabilities of links have interfaces of their own here, which are
// found by a type assertion; transporttest checks all of them. Dialers and Listeners are safe for
// concurrent use.
package transport

import (
	"context"
	"errors"
	"net/netip"
	"time"
)

// ErrAgain means that no byte could be moved now. The caller has to wait for readiness of FD and
// call again.
var ErrAgain = errors.New("transport: try again")

// ErrClosed means that the link was closed at this end.
var ErrClosed = errors.New("transport: link closed")

// Link is one connection.
//
// Concurrency: there may be one reader and one writer at a time. Reading and writing may happen at
// the same time on different threads. Close may be called at any time and from any thread.
type Link interface {
	// TryRead moves up to len(p) > 0 bytes into p without blocking. It returns n > 0 with a nil
	// error, or n == 0 with ErrAgain, io.EOF (the peer closed), ErrClosed or the cause of a failure
	// (which is final). p is not kept.
	TryRead(p []byte) (n int, err error)

	// TryWrite moves bytes from the slices, in order, without blocking. It may move only a part: n
	// counts the bytes taken over all slices. It returns ErrAgain only with n == 0. Neither bufs
	// nor its slices are changed or kept.
	TryWrite(bufs ...[]byte) (n int, err error)

	// FD becomes readable (EPOLLIN) when TryRead may make progress. WriteFD becomes writable
	// (EPOLLOUT) when TryWrite may make progress after an ErrAgain; for a socket both are the same
	// descriptor. Level-triggered use.
	FD() int
	WriteFD() int

	// Arm must be called before sleeping on the descriptors. It reports whether there already is
	// something to read; then the caller must not sleep. Sockets always return false. Rings in
	// memory use the call to ask the peer for a wake-up.
	Arm() (ready bool)

	// Close frees everything at once. Later calls return ErrClosed. Bytes not yet delivered may be
	// lost: the protocol's Bye makes sure that there are none. Closing twice is harmless.
	Close() error

	// Remote returns a description of the peer for messages ("tcp 10.0.0.1:4000").
	Remote() string
}

// Listening is a Link whose network answers for the peer's host. It distinguishes a peer that is
// cut off from one that is only stopped or busy.
type Listening interface {
	Link

	// Unheard returns for how long the peer's host has not answered, though something sent to it
	// has been repeated. 0 means that the host answers, as far as is known. It may be called at any
	// time, from any thread.
	Unheard() (d time.Duration, known bool)
}

// Packeted is a Link whose system cuts written bytes into packets with a cost of their own,
// whatever their length.
type Packeted interface {
	Link

	// Packet returns the number of bytes in a full packet, or 0 if it is unknown. A write of a
	// multiple leaves no short packet behind.
	Packet() int
}

// Narrow is a Link that may be slower than its writer.
type Narrow interface {
	Link

	// Bottleneck returns the drain rate of the network in bytes per second while the send queue is
	// backlogged, or 0 if it is not. It must be called like Link's writes.
	Bottleneck() float64
}

// Distant is a Link over a network that may be long.
type Distant interface {
	Link

	// Path returns the system's measurements of the path to the other end. known is false if there
	// are none. Any thread may call it.
	Path() (p Path, known bool)

	// UseLongPath makes the link send in a way that suits a long path, if the system permits. Any
	// thread may call it.
	UseLongPath()
}

// Path describes the path to a link's other end.
type Path struct {
	RoundTrip time.Duration // shortest measured round trip
	// Busy is the total time for which bytes have waited to be sent or acknowledged. Short is the
	// part of it for lack of room in the buffers of either end.
	Busy, Short time.Duration
	// Sent is the number of packets with data that were sent, and Repeated the number of those that
	// were sent again.
	Sent, Repeated uint64
	Congestion     string // algorithm that controls the rate: "cubic", "bbr", …
}

// Carried is a Link whose bytes another program takes to the other site, over its own connections
// of which nothing is known here. It is slower than a connection, and is used where there is none.
type Carried interface {
	Link

	Carried() // it marks the type
}

// Homed is a Link over an IP network.
type Homed interface {
	Link

	// Home returns the addresses of this end and of the other end.
	Home() (here, there netip.Addr)
}

// Lender is a Link that carries large pieces beside the stream's bytes, in order with them. A piece
// can be passed on from the memory in which it has arrived. TryRead reads pieces like any other
// bytes. Concurrency is that of Link.
type Lender interface {
	Link

	// TryBorrow returns the piece that is next to read, or nil if other bytes are next: then
	// TryRead reads them, and possibly more. Errors are those of TryRead.
	TryBorrow() (Block, error)

	// TrySend writes head and body as one piece, or nothing (ErrAgain). Together they have at most
	// MaxPiece bytes. Neither is kept.
	TrySend(head, body []byte) error

	// TryLend writes head and the bytes of b from offset from on, as one piece, or nothing
	// (ErrAgain). Together they have at most MaxPiece bytes. After success b belongs to the link,
	// which reads from it without copying if b's link is of the same kind.
	TryLend(head []byte, b Block, from int) error

	// MaxPiece returns the largest size of a piece in bytes.
	MaxPiece() int
}

// Placer is a Lender that carries pieces from the caller's memory and into the reader's, without a
// copy at either end.
//
// The memory must not be Go's. It must stay mapped until the Region is released and the caller
// knows that the peer has received everything sent from it, or has sent everything expected there.
// Errors of Pin and Expect are not fatal: the caller then uses copies.
type Placer interface {
	Lender

	// Pin prepares memory for TrySendPinned.
	Pin(mem []byte) (Region, error)

	// TrySendPinned is TrySend with the n bytes from offset off of the region as body. The link
	// reads them in place, now or later.
	TrySendPinned(head []byte, r Region, off, n int) error

	// Expect lets the peer put its data for key into mem, which is for the bytes from offset from
	// on. The peer knows of the place before it reads any byte that is written after this call.
	// Each byte may arrive once, in rising order; the peer may also send it in an ordinary piece.
	// ErrAgain means that it is not possible now. TryRead into the place itself moves such bytes
	// without copying them, and into another place is an error. A call returns only the bytes
	// before them.
	Expect(key uint64, from int64, mem []byte) (Region, error)

	// TryPlace is TryLend for bytes that belong at offset at of the data that the peer expects for
	// key. If the peer expects them they are put there, and placed is true.
	TryPlace(head []byte, b Block, from int, key uint64, at int64) (placed bool, err error)
}

// Region is memory that a link may use. It ends with the link at the latest.
type Region interface {
	// Release ends the use of the region. It must be called once, from any thread.
	Release()
}

// Block is a piece that has arrived, in memory of its link. Until Release that link has one place
// less for other pieces. A block remains valid when the link is closed.
type Block interface {
	// Bytes returns the bytes of the piece. A hostile peer may still change them: they must be
	// copied before they are checked.
	Bytes() []byte

	// Scarce reports that few places are left at the block's link, so that the block should be
	// released soon.
	Scarce() bool

	// Release returns the place. It must be called once, from any thread.
	Release()
}

// Dialer opens links to one kind of address.
type Dialer interface {
	Dial(ctx context.Context, addr string) (Link, error)
}

// Listener accepts incoming links.
type Listener interface {
	// Accept blocks until the next link, and returns ErrClosed after Close.
	Accept() (Link, error)
	Addr() string
	Close() error
}
