package relay

import (
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// How much is done for one connection before the next one has its turn. Larger: fewer calls for
// each byte; smaller: others wait less.
const (
	// ReadBuffer is how many bytes a loop reads at once; one buffer per loop, not per connection.
	// 260 KiB: two segments with all that is around them
	// (docs/decisions/0019-read-two-segments-at-once.md).
	ReadBuffer = 2*wire.SegmentSize + 4<<10

	// readTurns and writeTurns are how often a connection is read, or written, in one turn of the
	// loop.
	readTurns, writeTurns = 4, 4

	// maxIov is the most pieces of one vectored write.
	maxIov = 64

	// maxFlush is how many bytes one vectored write has, 512 KiB, and what is left of the last
	// piece.
	maxFlush = 512 << 10

	// bulkShare: after 1 MiB of small frames one bulk frame has its turn, so that neither class
	// starves.
	bulkShare = 1 << 20
)

// What may wait for a connection that does not read, by source: who sends more breaks the protocol,
// and its link ends. Larger: more memory that a hostile rank can take.
const (
	// FlowLimit is bytes of payload: as much as credit between ranks ever allows.
	FlowLimit = wire.MaxWindow

	// ControlLimit is bytes of all else: 64 MiB, two million headers.
	ControlLimit = 64 << 20
)

// Pipes for large segments over TCP (pipe.go).
const (
	// PipeFrom is from how many bytes of payload on a pipe pays: 96 KiB, so a whole segment
	// (docs/decisions/0018-splice-whole-segments.md).
	PipeFrom = wire.SegmentSize * 3 / 4

	// pipeTo is how many bytes of payload two pipes may take, 640 KiB: the longest segment of a
	// fast flow, and what is left of a message after it.
	pipeTo = wire.SegmentSize * (wire.LongSegment + 1)

	// PipeSize is how many bytes a pipe takes, 1 MiB: a place for each page. That is as much as an
	// ordinary user may give one.
	PipeSize = 1 << 20

	// MaxPipes is how many there are at most, 32: half of what an ordinary user may have (16384
	// pages).
	MaxPipes = 32
)

// storeLimit bounds what the classic protocol stores of one message, 16 MiB; a longer one goes on
// in pieces of this size. Below half of a window, so that the sender never waits for credit which
// the receiver can only give for what is stored here.
const storeLimit = 16 << 20

// classes are the capacities of buffers that are kept for reuse, in bytes. The slack takes a
// frame's header and body beside a payload of a round size; 144 KiB is a segment with the last few
// bytes of its message.
var classes = [...]int{4 << 10, 16 << 10, 64<<10 + 256, 144<<10 + 256, 256<<10 + 256, 1<<20 + 4096 + 256}

// chunk is the class that small queued frames are packed into.
const chunk = 1

// firstRing is how many places a queue has at first.
const firstRing = 16

// keepRing is how many places of a queue are kept when it is empty: an idle connection keeps little
// memory.
const keepRing = 1024

// When a connection is dead. Longer: a dead rank is noticed later; shorter: one that is only slow
// is taken for dead.
const (
	// PingInterval: who said nothing for 2 s is pinged.
	PingInterval = 2 * time.Second

	// joiningPings: who waits for others to join is pinged after three times that. Thousands may
	// wait, for as long as a batch system takes; a rank gives up a forwarder of which it hears
	// nothing for 10 s.
	joiningPings = 3

	// PeerTimeout: who said nothing for a minute, though pinged, is dead. So long may a process be
	// stopped, in a debugger.
	PeerTimeout = time.Minute

	// Unreachable: who is on a host that the network has not reached for 6 s is dead.
	Unreachable = 6 * time.Second

	// Linger: a connection is closed 5 s after its last frame, if the peer has not done so.
	Linger = 5 * time.Second
)
