package pt2pt

import "github.com/leidenzipper/zipper/internal/wire"

const (
	// longEager is the longest message sent without asking over a long path, in bytes. Default 1
	// MiB, the most that a frame takes. Trades the wait of the messages behind it, 8 ms at 1
	// Gbit/s, against two delays.
	longEager = wire.MaxPayload

	// longKept is the most bytes sent to a peer over a long path that are kept for replay while
	// long messages go without asking. Default 8 MiB. Trades memory of senders against the rate of
	// blocking sends, which is this number of bytes in a round trip.
	longKept = 8 << 20

	// shortQueue is the longest queue of receives or unexpected messages that is searched by a walk
	// through it, 64 entries; growth is the number of lists that a longer queue has at first for
	// each entry, 4; keptLists is the most lists that it keeps when it is empty, 4096. Trades the
	// time of a hash against that of the walk, and memory, 16 bytes a list, against inserting all
	// entries again. Measured: docs/decisions/0015-long-queues-use-hashing.md.
	shortQueue = 64
	growth     = 4
	keptLists  = 4096

	// widestEager bounds how far demand widens one peer's eager window, in bytes. Default 16 MiB.
	widestEager = 16 << 20

	// leastShare bounds from below what a demand widens an eager window by: the first window over
	// this number, 4. Trades the demands of senders of short messages, one for each 64 KiB by
	// default, against memory of receivers.
	leastShare = 4
)
