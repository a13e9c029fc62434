// Package relay brings bytes from one connection to another. It knows frames and routes, not jobs:
// who a connection belongs to, and what frames for the forwarder itself mean, its Control knows.
//
// The way of a frame, all on the event-loop thread of the connection that it comes over:
//
//  1. the loop says that the link is readable (handler.go), and the connection reads into the
//     loop's one buffer (input.go, fill);
//  2. whole frames are found and their headers checked (split; conn.go, allowed);
//  3. frames in a row for the same rank are written, where they stand, to that rank's connection
//     (run.go; output.go, write); a large segment goes without a copy, from block to block or,
//     after another one, through a pipe, once its head has been checked (forward.go, pipe.go,
//     send.go);
//  4. only what the link does not take is queued (queue.go); the other connection's own loop writes
//     it when epoll says that its link is writable (output.go, flush).
//
// Nothing here blocks, and a rank that sends more than its credit loses its link. What is kept is
// booked to the connection that it came over (buffer.go): one that has more than what is left of
// the budgets is not read until less waits, and TCP tells the sender. All others go on.
//
// Locks, in the order in which they may be taken: what a Control takes, output.mu (one connection's
// writing side), then the loop's (work posted to it).
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

// Control decides what becomes of one connection. All of it is called on the connection's loop,
// with no lock held, and must not block.
type Control interface {
	// Frame handles a frame for the forwarder itself that Route allowed. body is not kept.
	Frame(h wire.Header, body []byte)

	// Bad ends the connection because of what came over it; the state is Joining or Running.
	Bad(reason string)

	// Late reports, while the connection joins, that this takes too long, and sees to its end.
	Late(now time.Time) bool

	// Ended is the last call: the link is closed. cause is nil after a clean end.
	Ended(cause error)

	// Route says what may come over a connection that has none yet. It waits until a start that is
	// under way is through, which gives the connection its own (Conn.Run).
	Route() *Route

	// MarshalLogObject says who is at the other end. Any thread.
	zapcore.ObjectMarshaler
}

// Route is where frames from a connection go. It does not change, but for the table's entries.
type Route struct {
	Memory *budget.Budget         // what the job's connections may keep together; nil: any amount
	Rank   uint32                 // the only source of frames that come over it; wire.Nobody: there are several
	Table  []atomic.Pointer[Conn] // by destination; nil: departed or dead
	Counts *Counts
	// Blocked is how many nanoseconds connections with this route had something that the other end
	// did not take; nil: nobody wants to know.
	Blocked *atomic.Int64
	// Patience is how long the other end may say nothing, if that is more than Config.PeerTimeout.
	Patience time.Duration
	Classic  *Classic // nil: frames go on as they come

	// Allowed checks a header that is not one of a frame from Rank to a rank of the table, before
	// anything is done, or memory taken, for the frame.
	Allowed func(h wire.Header) error
}

// Config is what holds for all connections.
type Config struct {
	ReadBuffer              int // bytes a loop reads at once
	FlowLimit, ControlLimit int // bytes of payload, and of all else, from one rank that may wait for another

	Memory             *budget.Budget // what all connections may keep together; nil: any amount
	Joining            *budget.Budget // of this: those without a route; nil: any amount
	PipeFrom, PipeSize int            // bytes of payload from which on a pipe is used; bytes a pipe takes

	PingInterval time.Duration // who said nothing for so long is pinged
	PeerTimeout  time.Duration // who said nothing for so long, though pinged, is dead
	Unreachable  time.Duration // whose host the network has not reached for so long is dead
	Linger       time.Duration // how long a connection may take to close after its last frame

	// Waited is told how long each frame waited in a queue, in seconds, and Length how many bytes
	// wait for the destination then, with it; nil both: nobody wants to know. Any thread.
	Waited, Length Observer

	Log *zap.Logger
}

// Observer takes measured values. Safe for concurrent use.
type Observer interface{ Observe(float64) }

// Relay is what the connections of one forwarder share. Safe for concurrent use.
type Relay struct {
	cfg        Config
	pool       pool
	zerocopies sync.Pool // of *zerocopy
	pipes      pipes
}

// New makes a relay without connections.
func New(cfg Config) *Relay {
	for _, b := range []**budget.Budget{&cfg.Memory, &cfg.Joining} {
		if *b == nil {
			*b = budget.New(math.MaxInt64)
		}
	}
	return &Relay{cfg: cfg}
}

// Joining is the budget of connections without a route, whose limit may be changed.
func (r *Relay) Joining() *budget.Budget { return r.cfg.Joining }

// Close frees what is kept for reuse. All connections have ended.
func (r *Relay) Close() { r.pipes.close() }

// Pipes tells how many pipes are in use, and how many are kept for reuse.
func (r *Relay) Pipes() (used, kept int) {
	r.pipes.mu.Lock()
	defer r.pipes.mu.Unlock()
	return r.pipes.used, len(r.pipes.free)
}

// Worker is a loop and the memory that its connections share, since one at a time is read or
// written.
type Worker struct {
	Loop *loop.Loop
	buf  []byte   // what is being read
	one  [][]byte // for a write of one piece
	vec  [][]byte // for a write of many
}

// Worker gives a loop what connections need.
func (r *Relay) Worker(l *loop.Loop) *Worker {
	return &Worker{Loop: l, buf: make([]byte, r.cfg.ReadBuffer), one: make([][]byte, 1), vec: make([][]byte, maxIov)}
}
