// Package flow has the state of one flow, everything from one virtual rank to another: credit,
// sequence and acknowledgement. It does no I/O, does not depend on frames and is not safe for
// concurrent use.
package flow

import (
	"errors"
	"fmt"
	"time"
)

// ErrOverrun means that more payload arrived than was granted. No honest peer sends that.
var ErrOverrun = errors.New("flow: more bytes than credit")

// Budget is the sender's end of a credit window. All counts are bytes since the flow began.
type Budget struct {
	used  uint64 // bytes sent; never above limit
	limit uint64 // highest limit received
}

// NewBudget starts with the limit that both ends know initially.
func NewBudget(limit uint64) Budget { return Budget{limit: limit} }

// Limit returns the highest limit received.
func (b *Budget) Limit() uint64 { return b.limit }

// Available returns the number of bytes that may be sent now.
func (b *Budget) Available() uint64 { return b.limit - b.used }

// Take uses n bytes of the budget and returns true, if they fit.
func (b *Budget) Take(n uint64) bool {
	if n > b.Available() {
		return false
	}
	b.used += n
	return true
}

// Raise handles a received limit; an old one changes nothing. It reports whether the budget has
// grown.
func (b *Budget) Raise(limit uint64) bool {
	if limit <= b.limit {
		return false
	}
	b.limit = limit
	return true
}

// Grant is the receiver's end of a credit window, with received ≤ granted ≤ consumed + window, and
// consumed ≤ received.
type Grant struct {
	received uint64 // payload bytes that have arrived
	consumed uint64 // payload bytes whose memory is free again
	granted  uint64 // limit that the sender knows
	window   uint64 // largest number of unconsumed bytes

	since   time.Duration // start of the running measurement of the bytes consumed in a round trip
	counted uint64        // value of consumed at that time
}

// NewGrant starts with a window that both ends know initially.
func NewGrant(window uint64) Grant { return Grant{granted: window, window: window} }

// Receive counts arriving payload, or returns ErrOverrun.
func (g *Grant) Receive(n uint64) error {
	if n > g.granted-g.received {
		return fmt.Errorf("%w: %d bytes where %d were allowed", ErrOverrun, n, g.granted-g.received)
	}
	g.received += n
	return nil
}

// Room returns the number of payload bytes that may still arrive.
func (g *Grant) Room() uint64 { return g.granted - g.received }

// Consume counts payload whose memory is free again.
func (g *Grant) Consume(n uint64) {
	if n > g.received-g.consumed {
		panic("flow: consumed more than received")
	}
	g.consumed += n
}

// Waiting returns the number of payload bytes received and not consumed.
func (g *Grant) Waiting() uint64 { return g.received - g.consumed }

// Window returns the current window in bytes.
func (g *Grant) Window() uint64 { return g.window }

// Grow widens the window by n bytes.
func (g *Grant) Grow(n uint64) { g.window += n }

// Suits returns the window that the path needs: pathShare times the bytes consumed in a round trip,
// according to the running measurement, which takes at least a round trip. It must be called when
// credit is Due.
func (g *Grant) Suits(now, roundTrip time.Duration) uint64 {
	n, d := g.consumed-g.counted, now-g.since
	if d >= roundTrip {
		n = uint64(float64(n) * float64(roundTrip) / float64(d))
		g.since, g.counted = now, g.consumed
	}
	return pathShare * n
}

// Limit returns the limit to send, and records it as granted.
func (g *Grant) Limit() uint64 {
	g.granted = max(g.granted, g.consumed+g.window)
	return g.granted
}

// Due reports whether enough of the window is free again for a frame to the sender: a quarter, or
// an eighth if the path is long.
func (g *Grant) Due(long bool) bool {
	share := uint64(tellShare)
	if long {
		share = tellShareLong
	}
	return g.consumed+g.window >= g.granted+g.window/share
}

// CreditDue reports whether the sender may send more than it knows.
func (g *Grant) CreditDue() bool { return g.consumed+g.window > g.granted }
