package link

import (
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// MaxRails is the largest number of forwarders to which a process has links.
const MaxRails = 16

const (
	// WidestData bounds the window of segments that a pair's path may take, in bytes. Default 48
	// MiB: 1 Gbit/s at 200 ms one way, or 10 Gbit/s at 20 ms. Together with the widest window of
	// eager payload (pt2pt) it must not exceed wire.MaxWindow.
	WidestData = 48 << 20

	// inputSize is the size of the buffer into which a rail reads frames, in bytes. Default 64 KiB.
	inputSize = 64 << 10

	// turnSize is the number of bytes that a rail writes or reads before the other direction, or
	// another rail, has its turn. Default 1 MiB; where several forwarders lead to each process, a
	// rail writes two segments.
	turnSize = 1 << 20

	// batch is the largest number of slices in one vectored write. Default 16: each frame is one
	// slice; a segment before them is two, its head and its payload.
	batch = 16

	// longSegment is how many times as long as others the segments of direct links and of fast
	// flows may be. Default 4. Measured: docs/decisions/0013-long-segments-without-a-copy.md.
	longSegment = wire.LongSegment

	// longFor bounds the time that a segment takes, in nanoseconds. It applies to the longer
	// segments of a fast flow, and to all segments in a slow network. Default 100 µs: a forwarder
	// stores a segment whole, and no frame overtakes it.
	longFor = 100 * time.Microsecond

	// leastSegment is the length, in bytes, below which segments are not shortened in a slow
	// network (longFor). Default 16 KiB.
	leastSegment = 16 << 10

	// longShare is the divisor of the bytes left (outbox.backlog) that bounds the longer segments
	// of a fast flow. Default 16: a forwarder passes nothing on before it has the first one.
	longShare = 16

	// pipeSize is the capacity of the pipe for spliced segments, in bytes. Default 1 MiB: a slot
	// for each page of the longest segment and of its head.
	pipeSize = 1 << 20

	// part is the number of bytes of a message that are registered with a link at a time. Default 4
	// MiB. Trades the memory that is pinned, and the time for that, against the number of
	// registrations.
	part = 4 << 20

	// partsAhead is how many parts of a receive are registered at a time. Default 2.
	partsAhead = 2

	// minOnWay is the number of segments that a lane may always have in flight. Default 4: enough
	// to measure the rate of a slow rail.
	minOnWay = 4

	// landedEvery is the number of bytes that may arrive on a lane before they are acknowledged. It
	// is at most the bytes in half of minOnWay segments, so that the sender does not wait. Default
	// 256 KiB. Trades the number of acknowledgements against the number of bytes that are sent
	// again after a loss.
	landedEvery = 256 << 10

	// landedLazily is landedEvery where only one link leads to the peer, in bytes. Default 1 MiB:
	// the sender does not wait for that acknowledgement.
	landedLazily = 1 << 20

	// ackEvery is how many sequenced frames may arrive before they are acknowledged by a frame of
	// its own. Default 64. Trades the number of acknowledgements against the memory that a
	// sender retains.
	ackEvery = 64

	// fewDirect is the largest number of direct links that are read one by one. Default 1; with
	// more of them, one system call asks which are ready.
	fewDirect = 1

	// directUnheard is the time without an acknowledgement from the other host after which a direct
	// link on demand is given up, in nanoseconds. Default 500 ms, or four round trips if that is
	// more: the forwarders take its frames within a second. A longer time delays them when the
	// network fails, a shorter one gives links up when it is congested.
	directUnheard = 500 * time.Millisecond

	// listenEvery is the shortest time between two system calls that ask whether a silent link is
	// cut off, in nanoseconds. Default 100 ms.
	listenEvery = 100 * time.Millisecond

	// maxFailures is the number of failed attempts to open direct links on demand, in a row, at
	// which the user is told. Default 3: single ones fail on a busy host.
	maxFailures = 3

	// reportEvery is the shortest time between two reports of the traffic over direct links to a
	// forwarder, in nanoseconds. Default 1 s.
	reportEvery = time.Second

	// poolKeep is the size of the free buffers that a Pool keeps, in bytes. Default 16 MiB.
	poolKeep = 16 << 20
)

// mostSegment returns the largest payload of a segment, in bytes, for a data window of so many
// bytes: two segments fit into the window.
func mostSegment(window int) int { return min(wire.MaxPayload, window/2) }
