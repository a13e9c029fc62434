// Package flow has the bookkeeping of one flow, everything from one virtual rank to another:
// credit, sequence and acknowledgement. It does no I/O, knows no frames and is not safe for
// concurrent use.
package flow

import (
	"errors"
	"fmt"
	"time"
)

// ErrOverrun: more payload arrived than was granted. No honest peer does that.
var ErrOverrun = errors.New("flow: more bytes than credit")

// Budget is the sender's end of a credit window. All counts are bytes since the flow began.
type Budget struct {
	used  uint64 // never above limit
	limit uint64 // highest limit heard
}

// NewBudget starts with the limit both ends know without asking.
func NewBudget(limit uint64) Budget { return Budget{limit: limit} }

// Limit is the highest limit heard.
func (b *Budget) Limit() uint64 { return b.limit }

// Left is how much may be sent now.
func (b *Budget) Left() uint64 { return b.limit - b.used }

// Take uses n bytes if they fit.
func (b *Budget) Take(n uint64) bool {
	if n > b.Left() {
		return false
	}
	b.used += n
	return true
}

// Raise takes a limit that was heard; an old one changes nothing. It reports whether there is more
// now.
func (b *Budget) Raise(limit uint64) bool {
	if limit <= b.limit {
		return false
	}
	b.limit = limit
	return true
}

// Grant is the receiver's end of a credit window. received ≤ told ≤ consumed + window, and consumed
// ≤ received.
type Grant struct {
	received uint64
	consumed uint64
	told     uint64 // the limit the sender knows
	window   uint64 // bytes it may have unconsumed

	since   time.Duration // when the running measurement of what comes in a round trip began,
	counted uint64        // and what was consumed then
}

// NewGrant starts with a window both ends know without asking.
func NewGrant(window uint64) Grant { return Grant{told: window, window: window} }

// Receive counts arriving payload, or returns ErrOverrun.
func (g *Grant) Receive(n uint64) error {
	if n > g.told-g.received {
		return fmt.Errorf("%w: %d bytes where %d were allowed", ErrOverrun, n, g.told-g.received)
	}
	g.received += n
	return nil
}

// Room is how much more payload may come.
func (g *Grant) Room() uint64 { return g.told - g.received }

// Consume counts payload whose memory is free again.
func (g *Grant) Consume(n uint64) {
	if n > g.received-g.consumed {
		panic("flow: consumed more than received")
	}
	g.consumed += n
}

// Waiting is the payload received and not consumed.
func (g *Grant) Waiting() uint64 { return g.received - g.consumed }

// Window is the present window in bytes.
func (g *Grant) Window() uint64 { return g.window }

// Grow widens the window by n bytes.
func (g *Grant) Grow(n uint64) { g.window += n }

// Suits gives the window that the path needs: pathShare times what is consumed in a round trip, as
// far as the running measurement, of a round trip at least, knows. Called whenever credit is Due.
func (g *Grant) Suits(now, roundTrip time.Duration) uint64 {
	n, d := g.consumed-g.counted, now-g.since
	if d >= roundTrip {
		n = uint64(float64(n) * float64(roundTrip) / float64(d))
		g.since, g.counted = now, g.consumed
	}
	return pathShare * n
}

// Limit is the limit that the sender should hear of, and marks it as told.
func (g *Grant) Limit() uint64 {
	g.told = max(g.told, g.consumed+g.window)
	return g.told
}

// Due reports whether so much is free again that telling the sender is worth a frame: a quarter of
// the window, or an eighth if the path is long.
func (g *Grant) Due(long bool) bool {
	share := uint64(tellShare)
	if long {
		share = tellShareLong
	}
	return g.consumed+g.window >= g.told+g.window/share
}

// Owed reports whether the sender knows less than it may send.
func (g *Grant) Owed() bool { return g.consumed+g.window > g.told }
