package link

import (
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// MaxRails bounds the forwarders of a job.
const MaxRails = 16

const (
	// WidestData bounds the window of segments that a pair's path may take, in bytes. Default 48
	// MiB: 1 Gbit/s at 200 ms one way, or 10 Gbit/s at 20 ms. With the widest one of eager payload
	// (pt2pt) no more than wire.MaxWindow.
	WidestData = 48 << 20

	// inputSize is the buffer of a rail that frames are cut from, in bytes. Default 64 KiB.
	inputSize = 64 << 10

	// turnSize is what a rail writes or reads before the other direction, or another rail, has its
	// turn, in bytes. Default 1 MiB; with several rails two segments.
	turnSize = 1 << 20

	// batch is how many frames go into one vectored write. Default 16.
	batch = 16

	// longSegment is how many times as long as others segments of direct links, and of fast flows,
	// are. Default 4. Measured: docs/decisions/0013-long-segments-without-a-copy.md.
	longSegment = wire.LongSegment

	// longFor bounds the time that a segment takes, in nanoseconds: a longer one where the flow is
	// fast, and any one where the network is slow. Default 100 µs: a forwarder stores a segment
	// whole, and nothing overtakes it.
	longFor = 100 * time.Microsecond

	// leastSegment is the shortest segment of a message that is longer, in bytes. Default 16 KiB.
	leastSegment = 16 << 10

	// longShare: a longer segment is no more than one of so many parts of what is left. Default 16:
	// nothing goes out of the forwarder before the first is there.
	longShare = 16

	// pipeSize is the pipe of spliced segments, in bytes. Default 1 MiB: a place for each page of
	// the longest segment and of its head.
	pipeSize = 1 << 20

	// part is how much of a message is registered with a link at a time, in bytes. Default 4 MiB.
	// Trades the memory that is pinned, and the time that takes, against how often it is done.
	part = 4 << 20

	// partsAhead is how many parts of a receive are registered at a time. Default 2.
	partsAhead = 2

	// minOnWay is how many segments a lane may always have on its way. Default 4: what keeps a slow
	// rail measured.
	minOnWay = 4

	// landedEvery is what may stay unacknowledged on a lane, in bytes, but no more than half of
	// minOnWay, or the sender would wait for it. Default 256 KiB. Trades frames against what is
	// sent again after a loss.
	landedEvery = 256 << 10

	// landedLazily is the same where only one link leads to the peer, which then does not wait for
	// it, in bytes. Default 1 MiB.
	landedLazily = 1 << 20

	// ackEvery is how many sequenced frames may stay unacknowledged without waiting for something
	// to carry the acknowledgement. Default 64. Trades frames against what a sender keeps.
	ackEvery = 64

	// fewDirect is how many direct links are read one by one. Default 2; of more, one system call
	// asks which are ready.
	fewDirect = 2

	// poolKeep is how much a Pool keeps for later, in bytes. Default 16 MiB.
	poolKeep = 16 << 20
)

// mostSegment bounds Limits.Segment.
func mostSegment(window int) int { return min(wire.MaxPayload, window/2) }
