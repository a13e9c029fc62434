// Package transport is the contract between the engine or the forwarder and whatever carries bytes.
//
// A Link is one established connection: an ordered, reliable, full-duplex stream of bytes with
// non-blocking calls and a file descriptor to wait on. Framing, flow control and replay are above
// it; TCP sockets, shared memory and verbs rings are below it.
//
// Sizes are bytes. What more a link may be able to do is an interface of its own here, asked for by
// a type assertion; transporttest checks all of it. Dialers and Listeners are safe for concurrent
// use.
package transport

import (
	"context"
	"errors"
	"net/netip"
	"time"
)

// ErrAgain: nothing could be moved now; wait for readiness on FD and call again.
var ErrAgain = errors.New("transport: try again")

// ErrClosed: the link was closed at this end.
var ErrClosed = errors.New("transport: link closed")

// Link is one connection.
//
// Concurrency: one reader and one writer at a time; reading and writing may happen at the same time
// on different threads; Close may be called at any time and from any thread.
type Link interface {
	// TryRead moves up to len(p) > 0 bytes into p without blocking. n > 0 with a nil error, or n ==
	// 0 with ErrAgain, io.EOF (the peer closed), ErrClosed or the cause of a failure (which is
	// final). p is not kept.
	TryRead(p []byte) (n int, err error)

	// TryWrite moves bytes from the slices, in order, without blocking. It may move only a part: n
	// counts the bytes taken over all slices. ErrAgain only with n == 0. Neither bufs nor its
	// slices are changed or kept.
	TryWrite(bufs ...[]byte) (n int, err error)

	// FD becomes readable (EPOLLIN) when TryRead may make progress. WriteFD becomes writable
	// (EPOLLOUT) when TryWrite may make progress after an ErrAgain; for a socket both are the same
	// descriptor. Level-triggered use.
	FD() int
	WriteFD() int

	// Arm is called before sleeping on the descriptors and reports whether there is already
	// something to read (then do not sleep). Sockets always answer false; rings in memory need it
	// to ask the peer for a wake-up.
	Arm() (ready bool)

	// Close frees everything at once; later calls return ErrClosed. Bytes not yet delivered may be
	// lost: the protocol's Bye makes sure that there are none. Closing twice is harmless.
	Close() error

	// Remote describes the peer for messages ("tcp 10.0.0.1:4000").
	Remote() string
}

// Listening is a Link whose network answers for the peer's host: it tells a peer that is cut off
// from one that is only stopped or busy.
type Listening interface {
	Link

	// Unheard is how long the peer's host has not answered, though something sent to it waits for
	// that and has been repeated; 0: it is there, if known. Safe to call at any time, from any
	// thread.
	Unheard() (d time.Duration, known bool)
}

// Packeted is a Link whose system cuts what is written into packets, and each costs the same,
// however short.
type Packeted interface {
	Link

	// Packet is how many bytes one takes, 0 if unknown: what is written leaves no short one behind
	// if it is a multiple.
	Packet() int
}

// Narrow is a Link that may be slower than what writes to it.
type Narrow interface {
	Link

	// Bottleneck is how fast the network takes what is written, in bytes per second, while more is
	// written than that and a queue stands before it; 0: none does. Where Link's writes are called.
	Bottleneck() float64
}

// Distant is a Link over a network that may be long.
type Distant interface {
	Link

	// Path is what the system knows of the way to the other end; known is false if that is nothing.
	// Any thread.
	Path() (p Path, known bool)

	// Far has the link sent as suits a long path, if the system lets it. Any thread.
	Far()
}

// Path is the way to a link's other end.
type Path struct {
	RoundTrip time.Duration // the shortest measured
	// Busy is how long something has waited to be sent or acknowledged, in all. Short is how much
	// of that was only for want of room, which the system gives the link at either end.
	Busy, Short time.Duration
	// Sent is how many packets with data were sent, and Repeated how many of them again.
	Sent, Repeated uint64
	Congestion     string // what controls the rate: "cubic", "bbr", …
}

// Carried is a Link whose bytes somebody else takes to the other site, over connections of its own
// of which nothing is known here. It is slower than a connection, and is taken where there is none.
type Carried interface {
	Link

	Carried() // says so
}

// Homed is a Link over an IP network.
type Homed interface {
	Link

	// Home is this end's and the other end's address.
	Home() (here, there netip.Addr)
}

// Lender is a Link that carries large pieces beside the stream's bytes, in order with them, which
// can be passed on from where they have arrived. TryRead reads them like any other bytes.
// Concurrency is that of Link.
type Lender interface {
	Link

	// TryBorrow returns the piece that is next to read, nil if something else is: then TryRead
	// reads it, and possibly more. Errors are those of TryRead.
	TryBorrow() (Block, error)

	// TrySend writes head and body as one piece, or nothing (ErrAgain). Together at most MaxPiece
	// bytes. Neither is kept.
	TrySend(head, body []byte) error

	// TryLend writes head and what is in b from offset from on, as one piece, or nothing
	// (ErrAgain). Together at most MaxPiece bytes. After success b belongs to the link, which reads
	// from it without copying if b's link is of the same kind.
	TryLend(head []byte, b Block, from int) error

	// MaxPiece is how many bytes a piece may have.
	MaxPiece() int
}

// Placer is a Lender that carries pieces from the caller's memory and into the reader's, with no
// copy at either end.
//
// The memory must not be Go's. It stays mapped until the Region is released and the caller knows
// that the peer has what was sent from it, or has sent all that is expected there. Errors of Pin
// and Expect end nothing: the caller does it with copies.
type Placer interface {
	Lender

	// Pin prepares memory for TrySendPinned.
	Pin(mem []byte) (Region, error)

	// TrySendPinned is TrySend with the n bytes from offset off of the region on as body, which the
	// link reads where they are, now or later.
	TrySendPinned(head []byte, r Region, off, n int) error

	// Expect lets the peer put what it has for key into mem, which are the bytes from offset from
	// on there; what is written after this call comes to the peer later. Each byte may come once,
	// in rising order; the peer may as well send it in an ordinary piece. ErrAgain: not now.
	// TryRead into the place itself moves such bytes without touching them, and into another place
	// is an error; a call returns what is before them alone.
	Expect(key uint64, from int64, mem []byte) (Region, error)

	// TryPlace is TryLend, for bytes that belong at offset at of what the peer expects for key; if
	// it expects them they go there, and placed is true.
	TryPlace(head []byte, b Block, from int, key uint64, at int64) (placed bool, err error)
}

// Region is memory that a link has been told of. It ends with the link at the latest.
type Region interface {
	// Release ends what it was made for; once, from any thread.
	Release()
}

// Block is a piece that has come, in memory of the link that it came over. Until Release that link
// has one place less for others. It stays when the link is closed.
type Block interface {
	// Bytes are what came. A hostile peer may still change them: copy what is checked before it is
	// used.
	Bytes() []byte

	// Scarce tells that few places are left at the block's link: release soon.
	Scarce() bool

	// Release gives the place back; once, from any thread.
	Release()
}

// Dialer opens links to one kind of address.
type Dialer interface {
	Dial(ctx context.Context, addr string) (Link, error)
}

// Listener takes incoming links.
type Listener interface {
	// Accept blocks for the next link; ErrClosed after Close.
	Accept() (Link, error)
	Addr() string
	Close() error
}
