package relay

import (
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// Shares of one connection in a turn of the loop. A larger share takes fewer calls for each byte; a
// smaller one makes the other connections wait less.
const (
	// ReadBuffer is the number of bytes that a loop reads at once, 260 KiB: two segments with their
	// headers. Each loop has one buffer; connections have none
	// (docs/decisions/0019-read-two-segments-at-once.md).
	ReadBuffer = 2*wire.SegmentSize + 4<<10

	// readTurns and writeTurns are the most reads and writes of a connection in one turn of the
	// loop.
	readTurns, writeTurns = 4, 4

	// maxIov is the maximum number of pieces of one vectored write.
	maxIov = 64

	// maxFlush is the number of bytes after which one vectored write takes no further piece, 512
	// KiB.
	maxFlush = 512 << 10

	// bulkShare is the number of bytes of small frames after which one bulk frame is sent, 1 MiB,
	// so that neither class starves.
	bulkShare = 1 << 20
)

// Bounds of the bytes that one source may have queued for a connection that does not read. A source
// that exceeds one violates the protocol and loses its link. A larger bound lets a hostile rank
// take more memory.
const (
	// FlowLimit is the bound for payload, in bytes: the most that credit between ranks ever allows.
	FlowLimit = wire.MaxWindow

	// ControlLimit is the bound for all other bytes: 64 MiB, or one and a half million headers.
	ControlLimit = 64 << 20
)

// Pipes for large segments over TCP (pipe.go).
const (
	// PipeFrom is the payload from which a pipe pays, 96 KiB, so whole segments use pipes
	// (docs/decisions/0018-splice-whole-segments.md).
	PipeFrom = wire.SegmentSize * 3 / 4

	// pipeTo is the maximum payload for two pipes, 640 KiB: the longest segment of a fast flow and
	// the rest of a message after it.
	pipeTo = wire.SegmentSize * (wire.LongSegment + 1)

	// PipeSize is the capacity of a pipe, 1 MiB, with one slot for each page. An ordinary user may
	// not set a larger one.
	PipeSize = 1 << 20

	// MaxPipes is the maximum number of pipes, 32: they take half of the 16384 pages that an
	// ordinary user may have in pipes.
	MaxPipes = 32
)

// storeLimit bounds the bytes that the classic protocol stores of one message, 16 MiB; a longer
// message is forwarded in pieces of this size. It is less than half of a window, so that the sender
// never waits for credit that the receiver can only give for bytes stored here.
const storeLimit = 16 << 20

// classes are the capacities of buffers that are kept for reuse, in bytes. The slack is for a
// frame's header and body beside a payload of a round size; 144 KiB is a segment with the last few
// bytes of its message.
var classes = [...]int{4 << 10, 16 << 10, 64<<10 + 256, 144<<10 + 256, 256<<10 + 256, 1<<20 + 4096 + 256}

// chunk is the index of the class into which small queued frames are packed.
const chunk = 1

// firstRing is the initial number of slots of a queue.
const firstRing = 16

// keepRing is the maximum number of slots that an empty queue keeps, so that an idle connection
// takes little memory.
const keepRing = 1024

// Times after which a connection is dead. A longer time detects a dead rank later; with a shorter
// one a slow rank is taken for dead.
const (
	// PingInterval is the silence after which a peer is pinged, 2 s.
	PingInterval = 2 * time.Second

	// joiningPings is the number of PingIntervals of silence after which a rank that waits for
	// others to join is pinged. Thousands of ranks may wait, for as long as a batch system takes. A
	// rank gives up a forwarder from which nothing arrives for 1 min, or for 10 s when it rejoins
	// its only one.
	joiningPings = 3

	// PeerTimeout is the silence after which a pinged peer is dead, 1 min. A process may be stopped
	// in a debugger for as long.
	PeerTimeout = time.Minute

	// Unreachable is the time after which a peer is dead if the network does not reach its host, 6
	// s.
	Unreachable = 6 * time.Second

	// pingsWithin is the least number of pings within Route.Unreachable, 4. With fewer, a cut
	// network is noticed later than it need be; with more, idle links carry more frames.
	pingsWithin = 4

	// Linger is the time after the last frame at which a connection is closed if the peer has not
	// closed it, 5 s.
	Linger = 5 * time.Second
)
