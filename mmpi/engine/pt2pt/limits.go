package pt2pt

import "github.com/leidenzipper/zipper/internal/wire"

const (
	// longEager is the longest message sent without asking over a long path, in bytes. Default 1
	// MiB, the most that a frame takes. Trades what waits behind it, for 8 ms at 1 Gbit/s, against
	// two delays.
	longEager = wire.MaxPayload

	// longKept is how many bytes that went to a peer over a long path may be kept for replay. With
	// more, no further long message goes without asking. Default 8 MiB. Trades memory of senders
	// against the rate of blocking sends: as much goes in a round trip.
	longKept = 8 << 20

	// shortQueue is the longest queue of receives or unexpected messages that is searched by a walk
	// through it, 64; growth, how many lists a longer one has at first for each entry, 4;
	// keptLists, how many it keeps at most when it is empty, 4096. Trades the time of a hash
	// against that of the walk, and memory, 16 bytes a list, against putting all in anew. Measured:
	// docs/decisions/0015-long-queues-use-hashing.md.
	shortQueue = 64
	growth     = 4
	keptLists  = 4096

	// widestEager bounds how far demand widens one peer's eager window, in bytes. Default 16 MiB.
	widestEager = 16 << 20
)
