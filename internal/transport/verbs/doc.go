// Package verbs is the transport over InfiniBand and RoCE.
//
// A link is two reliable connected queue pairs, one for each direction, so that reader and writer
// share nothing. The writer copies bytes into a registered slot and sends it. The reader has as
// many receives posted as the writer has credit. It copies the bytes out, posts the slot again, and
// returns credit in batches: a send without payload, whose immediate data have the number of slots.
// Every message has a number, by which the other end detects lost and repeated ones (immediate.go).
// There is no polling: completion channels have descriptors to wait on.
//
// Large pieces (transport.Lender) do not go through the slots. The writer puts them into one of the
// reader's blocks, by an RDMA write whose immediate data name the block. A credit message for the
// block returns it. A forwarder sends a block on from the memory in which it arrived, with the
// adapter of the other network, so it copies nothing (block.go). Ranks send from the program's
// memory, and have data written into it (transport.Placer, place.go). The reader sends the places
// to the writer in notes among its own messages.
//
// Links are made over TCP (hello.go, bytcp.go) or by the communication manager (private.go,
// bycm.go); control.go has all differences between the two. The address is that of the forwarder on
// the fabric's own IP network (IPoIB or RoCE). Two fabrics that are not joined may look alike (same
// subnet prefix, same LIDs). So before a link is used each end sends the other a random number over
// the queue pair, and the other end confirms it. Otherwise the link is refused. The connection over
// which a link was made carries nothing after that; its end shows that the peer has closed or died.
//
// Like a TCP connection, a link fails when the device gives up (retry exceeded), the port goes
// down, or the device disappears.
//
// Sizes are in bytes. An error with a method Permanent that returns true means that a retry does
// not help. Concurrency is that of transport.Link.
//
// The transport exists if the program is built with the tag rdma. Otherwise Listen and Dial return
// an error.
package verbs

import (
	"time"

	"github.com/leidenzipper/zipper/internal/transport/addr"
)

// Options are the options of links. Zero values mean the defaults in parentheses.
type Options struct {
	Slots    int // number of buffers of the receive ring, 4 to 4096 (64)
	SlotSize int // bytes of each, 256 to 1 MiB (8 KiB)
	// Blocks is the number of blocks for the peer's large pieces, 1 to 256 (8). BlockSize is their
	// size, 4 KiB to 8 MiB (132 KiB: a segment with its header). A link locks 2 · Slots · SlotSize
	// + Blocks · BlockSize bytes, and the peer's Blocks · BlockSize when it first sends a large
	// piece of its own.
	Blocks, BlockSize int
	// Timeout is the time limit of one acknowledgement, 4.096 µs · 2^Timeout (16: 0.27 s; on
	// soft-RoCE 19: 2.1 s). Retries, 1 to 7 (7), is the number of retransmissions of a packet
	// before the link fails. On soft-RoCE 7 means without end.
	Timeout, Retries uint8
	// Unmaps reports the memory that the program unmaps, which lets links keep registrations of the
	// program's memory. With nil no registration is kept.
	Unmaps Unmaps
	// Proof bounds the connection exchange at either end (20 s).
	Proof time.Duration
}

// at returns the options with those of the address.
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

// permanent marks an error for which a retry does not help.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// Permanent returns true.
func (permanent) Permanent() bool { return true }
