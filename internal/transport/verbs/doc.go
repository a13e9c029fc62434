// Package verbs is the transport over InfiniBand and RoCE.
//
// A link is two reliable connected queue pairs, one for each direction, so that reader and writer
// share nothing. The writer copies bytes into a registered slot and sends it. The reader has as
// many receives posted as the writer has credit. It copies the bytes out, posts the slot again, and
// returns credit in batches: a send without payload, whose immediate data count the slots. Every
// message has a number, by which the other end sees that none is lost or comes twice
// (immediate.go). Nothing is polled for: completion channels' descriptors tell.
//
// Large pieces (transport.Lender) do not go through the slots. The writer puts them into one of the
// reader's blocks, by an RDMA write whose immediate data name the block; a credit of its own gives
// the block back. A forwarder sends a block on from where it came in, with the adapter of the other
// network, so it copies nothing (block.go). Ranks send from the program's memory, and have what
// comes written into it (transport.Placer, place.go). The reader tells the writer where that is, by
// notes among its own messages.
//
// Links are made over TCP (hello.go, bytcp.go) or by the communication manager (private.go,
// bycm.go); control.go is all that the two have to differ in. The address is that of the forwarder
// on the fabric's own IP network (IPoIB or RoCE). Two fabrics that are not joined may look alike
// (same subnet prefix, same LIDs). So before a link is used each end sends the other a random
// number over the queue pair, and is told that it came; else the link is refused. The connection
// that it was made over carries nothing after that; its end tells that the peer has closed or died.
//
// A link fails, as a TCP connection does, when the device gives up (retry exceeded), the port goes
// down, or the device is gone.
//
// Sizes are bytes. An error with a method Permanent that is true says that trying again does not
// help. Concurrency is that of transport.Link.
//
// It is there when the program is built with the tag rdma; else Listen and Dial say so.
package verbs

import (
	"time"

	"github.com/leidenzipper/zipper/internal/transport/addr"
)

// Options of the links. The zero value means the defaults in parentheses.
type Options struct {
	Slots    int // buffers of the receive ring, 4 to 4096 (64)
	SlotSize int // bytes of each, 256 to 1 MiB (8 KiB)
	// Blocks for the peer's large pieces, 1 to 256 (8), of BlockSize bytes, 4 KiB to 8 MiB (132
	// KiB: a segment with its header). A link locks 2 · Slots · SlotSize + Blocks · BlockSize
	// bytes, and the peer's Blocks · BlockSize when it first sends a large piece of its own.
	Blocks, BlockSize int
	// Timeout is of one acknowledgement, 4.096 µs · 2^Timeout (16: 0.27 s; on soft-RoCE 19: 2.1 s),
	// and Retries, 1 to 7 (7), how often a packet is sent again before the link fails. Soft-RoCE
	// takes 7 for without end.
	Timeout, Retries uint8
	// Unmaps makes a link keep registrations of the program's memory, and tells when they end. nil:
	// none is kept.
	Unmaps Unmaps
	// Proof bounds the connection exchange at either end (20 s).
	Proof time.Duration
}

// at are the options with what the address says.
func (o Options) at(a addr.Verbs) Options {
	if a.Timeout != 0 {
		o.Timeout = a.Timeout
	}
	return o.withDefaults()
}

func (o Options) withDefaults() Options {
	if o.Slots == 0 {
		o.Slots = defaultSlots
	}
	if o.SlotSize == 0 {
		o.SlotSize = defaultSlotSize
	}
	if o.Blocks == 0 {
		o.Blocks = defaultBlocks
	}
	if o.BlockSize == 0 {
		o.BlockSize = defaultBlockSize
	}
	if o.Retries == 0 {
		o.Retries = defaultRetries
	}
	if o.Proof == 0 {
		o.Proof = defaultProof
	}
	return o
}

// permanent marks an error that trying again does not cure.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// Permanent is true.
func (permanent) Permanent() bool { return true }
