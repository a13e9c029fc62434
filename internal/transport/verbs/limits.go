package verbs

import "time"

// Defaults of Options. Each link locks 2 · Slots · SlotSize + Blocks · BlockSize bytes of memory.
const (
	// defaultSlots of defaultSlotSize bytes are the receive ring, 64 of 8 KiB: half a megabyte of
	// small messages and heads without a credit coming back. Fewer stop the writer sooner, more
	// lock memory for every link.
	defaultSlots    = 64
	defaultSlotSize = 8 << 10

	// defaultBlocks of defaultBlockSize bytes take the peer's large pieces, 8 of 132 KiB: each a
	// segment of the engine (128 KiB) with its head. Eight cover what is on its way while the
	// forwarder sends earlier ones on.
	defaultBlocks    = 8
	defaultBlockSize = 132 << 10

	// defaultTimeout is of one acknowledgement, 4.096 µs · 2^16: 0.27 s. softTimeout, 2.1 s, is
	// soft-RoCE's: it may spoil what it sends again (docs/howto/infiniband.md), so it is not to do
	// that because the peer's host is busy.
	defaultTimeout = 16
	softTimeout    = 19

	// defaultRetries is how often a packet is sent again before the link fails, the most there is:
	// a peer that is cut off is noticed after about 2 s.
	defaultRetries = 7

	// defaultProof bounds the exchange that makes a link.
	defaultProof = 20 * time.Second
)

// Bounds of what a peer may ask for, whatever its Options.
const (
	minSlots, maxSlots       = 4, 4096
	minSlotSize, maxSlotSize = 256, 1 << 20
	minBlocks, maxBlocks     = 1, 256
	minBlock, maxBlock       = 4 << 10, 8 << 20
)

const (
	// maxMessage is the longest message of the exchange over TCP in bytes.
	maxMessage = 1024

	// handshakes is how many exchanges a listener runs at a time: more dialers wait in the kernel.
	handshakes = 64

	// maxPlaces is how many receives of a link may be expected at a time (transport.Placer): a peer
	// cannot make this end remember more.
	maxPlaces = 512
)

// How long one end waits for the other where a link begins or ends.
const (
	// resolveLimit is for one step of the communication manager's finding the way.
	resolveLimit = 10 * time.Second

	// refuseLimit is for a refusal over TCP to be taken.
	refuseLimit = time.Second

	// partingLimit is how long close waits until the peer's communication manager has heard of it:
	// a message of it that is lost is sent again only as long as its sender is there.
	partingLimit = 2 * time.Second

	// flushLimit is how long a closed link stays to deliver what was written.
	flushLimit = 5 * time.Second
)

// What a cache of registrations keeps for those who may come back. More kept costs locked memory,
// and time where the program unmaps; fewer are registered again (docs/howto/infiniband.md).
const (
	maxKept      = 128
	maxKeptBytes = 256 << 20
)
