// Package relay forwards bytes from one connection to another. It knows frames and routes but not
// jobs: a Control knows the job of a connection and the meaning of frames for the forwarder itself.
//
// A frame takes these steps, all on the event-loop thread of the connection that it arrives over:
//
//  1. the loop reports that the link is readable (handler.go), and the connection reads into the
//     loop's one buffer (input.go, fill);
//  2. split finds whole frames, and allowed (conn.go) checks their headers;
//  3. consecutive frames for the same rank are written, from where they are, to that rank's
//     connection (run.go; output.go, write); a large segment goes without a copy, from block to
//     block or, after another large one, through a pipe, once its head has been checked
//     (forward.go, pipe.go, send.go);
//  4. only bytes that the link does not accept are queued (queue.go); the other connection's own
//     loop writes them when epoll reports that its link is writable (output.go, flush).
//
// No function of this package blocks, and a rank that sends more than its credit loses its link.
// Held bytes are charged to the connection that they arrived over (buffer.go): a connection that
// has used up a budget is not read until it holds less, and TCP stops its sender. All other
// connections go on.
//
// Locks are taken in this order: those of a Control, sealing.mu (the keys of one connection),
// output.mu (its writing side), those of the pipes, of the loop (posted functions) and of package
// budget.
package relay

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leidenzipper/zipper/forwarder/budget"
	"github.com/leidenzipper/zipper/forwarder/loop"
	"github.com/leidenzipper/zipper/internal/wire"
)

// Control handles the events of one connection. All methods are called on the connection's loop
// without a lock held, and must not block.
type Control interface {
	// Frame handles a frame for the forwarder itself that Route allowed. It must not keep body.
	Frame(h wire.Header, body []byte)

	// Bad ends the connection because its input violates the protocol. The state is Joining or
	// Running.
	Bad(reason string)

	// EndIfLate reports whether the connection takes too long to join, and ends it in that case.
	EndIfLate(now time.Time) bool

	// Ended is the last call: the link is closed. cause is nil after a clean end.
	Ended(cause error)

	// Route returns the route that applies to a connection before Conn.Run. If the start of the job
	// is in progress, Route waits until that has given the connection its own.
	Route() *Route

	// MarshalLogObject logs the identity of the peer. It may be called on any thread.
	zapcore.ObjectMarshaler
}

// Route says where frames from a connection go. It does not change, except for the table's entries.
type Route struct {
	Memory *budget.Budget // the memory budget of the job's connections; nil: Config.Joining
	// the only source of frames from the connection, or wire.Nobody if there are several
	Rank uint32
	// the connection over which frames for each rank go, by rank in the whole job; nil if the rank
	// has departed or is out of reach
	Table  []atomic.Pointer[Conn]
	Counts *Counts // the counters of the job's traffic
	// Blocked is the sum, in nanoseconds, of the time for which connections with this route had
	// bytes queued; nil if it is not measured.
	Blocked *atomic.Int64
	// Patience replaces Config.PeerTimeout if it is longer.
	Patience time.Duration
	// Unreachable replaces Config.Unreachable if it is shorter, and shortens Config.PingInterval to
	// its share pingsWithin; 0 does neither.
	Unreachable time.Duration
	Classic     *Classic // the relay of a classic job; nil if frames are forwarded as they arrive

	// Allowed checks the header of a frame before the frame is handled or memory is allocated for
	// it. An error ends the connection. It is called for each frame, except those of a type that
	// goes between ranks from Rank to a rank of the table, which are allowed.
	Allowed func(h wire.Header) error
}

// Config has the settings of all connections.
type Config struct {
	ReadBuffer int // the greatest number of bytes that a loop reads at once
	// the bytes of payload, and of all else, that one rank may have queued for another
	FlowLimit, ControlLimit int

	Memory *budget.Budget // the memory budget of all connections; nil if unlimited
	// the part of Memory for connections without a route; nil if unlimited
	Joining *budget.Budget
	// the payload in bytes from which a pipe is used, and the capacity of a pipe in bytes
	PipeFrom, PipeSize int

	PingInterval time.Duration // the time without input after which a peer is pinged
	PeerTimeout  time.Duration // the time without input after which the connection to a pinged peer ends
	Unreachable  time.Duration // the time without contact to a host after which connections to it end
	// the time that a connection may take to close after its last frame
	Linger time.Duration

	// Waited receives the time that each frame waited in a queue, in seconds, and Length the bytes
	// queued for the destination when the frame was queued, including the frame. Both are nil if
	// they are not measured. They may be called on any thread.
	Waited, Length Observer

	Log *zap.Logger // receives errors of the system and, at level debug, changes of state
}

// Observer receives measured values, such as for a histogram. It is safe for concurrent use.
type Observer interface{ Observe(float64) }

// Observe gives the duration d, in seconds, to m, unless m is nil.
func Observe(m Observer, d time.Duration) {
	if m != nil {
		m.Observe(d.Seconds())
	}
}

// Relay has the state that the connections of one forwarder share. It is safe for concurrent use.
type Relay struct {
	cfg        Config
	pool       pool
	zerocopies sync.Pool // free values of type *zerocopy
	pipes      pipes
}

// New returns a relay without connections.
func New(cfg Config) *Relay {
	for _, b := range []**budget.Budget{&cfg.Memory, &cfg.Joining} {
		if *b == nil {
			*b = budget.New(math.MaxInt64)
		}
	}
	return &Relay{cfg: cfg}
}

// Joining returns the memory budget of all connections without a route. Its limit may be changed.
func (r *Relay) Joining() *budget.Budget { return r.cfg.Joining }

// Close frees the memory and pipes that are kept for reuse. All connections must have ended.
func (r *Relay) Close() { r.pipes.close() }

// Pipes returns the number of pipes in use and the number kept for reuse.
func (r *Relay) Pipes() (used, kept int) {
	r.pipes.mu.Lock()
	defer r.pipes.mu.Unlock()
	return r.pipes.used, len(r.pipes.free)
}

// Worker is a loop and the memory that its connections share: only one of them is read or written
// at a time.
type Worker struct {
	Loop *loop.Loop
	buf  []byte   // the buffer into which the loop reads from links
	one  [][]byte // scratch memory for a write of one piece
	vec  [][]byte // scratch memory for a write of several pieces (writev)
}

// Workers are the event loops of a forwarder.
type Workers []*Worker

// Close closes all loops, which must have ended.
func (w Workers) Close() {
	for _, one := range w {
		one.Loop.Close()
	}
}

// Worker returns a Worker, with new buffers, for the connections of loop l.
func (r *Relay) Worker(l *loop.Loop) *Worker {
	return &Worker{Loop: l, buf: make([]byte, r.cfg.ReadBuffer), one: make([][]byte, 1), vec: make([][]byte, maxIov)}
}
