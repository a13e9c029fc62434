package verbs

import "time"

// These are the defaults of Options. Each link locks 2 · Slots · SlotSize + Blocks · BlockSize
// bytes of memory.
const (
	// defaultSlots is the number of slots of the receive ring, 64, and defaultSlotSize their size,
	// 8 KiB: half a megabyte of small messages and heads without returned credit. Fewer slots stop
	// the writer sooner, more slots lock memory for every link.
	defaultSlots    = 64
	defaultSlotSize = 8 << 10

	// defaultBlocks is the number of blocks for the peer's large pieces, 8, and defaultBlockSize
	// their size, 132 KiB: a segment of the engine (128 KiB) with its head. Eight blocks cover the
	// pieces in flight while the forwarder sends earlier ones on.
	defaultBlocks    = 8
	defaultBlockSize = 132 << 10

	// defaultTimeout is the exponent for the time limit of one acknowledgement, 4.096 µs · 2^16:
	// 0.27 s. softTimeout, 2.1 s, is that of soft-RoCE. It may damage retransmitted packets
	// (docs/howto/infiniband.md), so a busy peer must not cause retransmissions.
	defaultTimeout = 16
	softTimeout    = 19

	// defaultRetries is the number of retransmissions of a packet before the link fails, the
	// largest possible one: a peer that is cut off is detected after about 2 s.
	defaultRetries = 7

	// defaultProof is the time limit of the exchange that makes a link.
	defaultProof = 20 * time.Second
)

// These are bounds of the values that a peer may ask for, whatever its Options.
const (
	minSlots, maxSlots       = 4, 4096
	minSlotSize, maxSlotSize = 256, 1 << 20
	minBlocks, maxBlocks     = 1, 256
	minBlock, maxBlock       = 4 << 10, 8 << 20
)

const (
	// maxMessage is the longest message of the exchange over TCP in bytes.
	maxMessage = 1024

	// handshakes is the number of exchanges that a listener runs at a time. More dialers wait in
	// the kernel.
	handshakes = 64

	// maxPlaces is the largest number of receives of a link that may be expected at a time
	// (transport.Placer). It bounds the memory that a peer can use up at this end.
	maxPlaces = 512
)

// These are the times for which one end waits for the other when a link begins or ends.
const (
	// resolveLimit is the time limit of one step of address and route resolution by the
	// communication manager.
	resolveLimit = 10 * time.Second

	// refuseLimit is the time limit for sending a refusal over TCP.
	refuseLimit = time.Second

	// partingLimit is the time for which close waits for the answer of the peer's communication
	// manager. A lost message is sent again only as long as its sender exists.
	partingLimit = 2 * time.Second

	// flushLimit is the time for which a closed link delivers written bytes.
	flushLimit = 5 * time.Second
)

// These bound a cache of registrations for later uses. More kept registrations cost locked memory,
// and time when the program unmaps memory; with fewer, memory is registered again more often
// (docs/howto/infiniband.md).
const (
	maxKept      = 128
	maxKeptBytes = 256 << 20
)
