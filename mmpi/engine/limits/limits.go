// Package limits has the sizes and times that the layers of an engine are told, and their defaults.
// What a layer alone has to do with is in the limits.go of its package.
package limits

import (
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// Limits are sizes in bytes and times. Those marked * must be equal in all processes.
type Limits struct {
	Eager       int // longest message sent without asking; -1: none
	EagerWindow int // * eager payload that a process may have unconsumed at another at first
	DataWindow  int // * bytes of segments that a process may have in flight to another
	EagerPool   int // unconsumed eager payload granted to all others together, beyond first windows
	Segment     int // payload of a Data frame
	Orphans     int // number of envelopes kept per peer for communicators that are not known here yet

	Ping       time.Duration // silence after which a link is pinged
	Silence    time.Duration // time without an answer after which a link is lost
	LastWay    time.Duration // the same for the only link left, while the network reaches its other host
	NoRail     time.Duration // how long a job goes on when no rail is left, or none of several to some rank
	Standstill time.Duration // how long all processes wait before the user is warned
	LongPath   time.Duration // time there and back from which a path is long; -1: paths are not measured

	// Grace is how long the cluster's own launcher has to end this process when a rank of the
	// cluster ends the job. 0: the process ends at once.
	Grace time.Duration
}

const (
	// receiverPool is what all others together may have unconsumed at a process, of eager payload
	// and of segments each, in bytes. Default 64 MiB; half of it is granted on demand (EagerPool).
	// Trades memory against messages that wait. A window is a share of it, so windows shrink as the
	// world grows.
	receiverPool = 64 << 20

	// DefaultStandstill is how long all processes wait, without a message, before the user is
	// warned, in nanoseconds. Default 60 s, or the job's patience. Trades how soon a standstill is
	// named against warnings about programs that are slow.
	DefaultStandstill = time.Minute

	// DefaultSegment is the payload of a Data frame, in bytes. Default 128 KiB. Trades the wait of
	// what comes behind a segment, in a forwarder that stores it, against headers and turns.
	// Measured: docs/decisions/0018-splice-whole-segments.md.
	DefaultSegment = wire.SegmentSize

	// MaxDataWindow bounds a pair's window of segments at first, in bytes. Default 4 MiB,
	// MinDataWindow at least. Trades memory of forwarders against round trips until it is as wide
	// as the path takes.
	MaxDataWindow = 4 << 20

	// MinDataWindow is the least window of segments of a pair, in bytes. Default 256 KiB: two
	// segments.
	MinDataWindow = 256 << 10

	// DefaultLongPath is the time there and back from which on a path is long, in nanoseconds.
	// Default 2 ms. Longer than any way inside a site, or than a process there takes to answer.
	DefaultLongPath = 2 * time.Millisecond

	// DefaultPing is the silence after which a link is pinged, in nanoseconds. Default 2 s.
	DefaultPing = 2 * time.Second

	// DefaultSilence is the time without an answer after which a link is lost, in nanoseconds.
	// Default 6 s. Trades how soon a cut network is noticed against links that are lost because a
	// host is slow.
	DefaultSilence = 6 * time.Second

	// DefaultLastWay is DefaultSilence for the only way out, in nanoseconds. Default 1 min: the
	// process at the other end is stopped, or waits for a core.
	DefaultLastWay = time.Minute

	// DefaultNoRail is how long a job goes on without any rail, in nanoseconds. Default 10 s.
	// Trades surviving the restart of a forwarder against a job that hangs.
	DefaultNoRail = 10 * time.Second

	// DefaultEager is the longest message sent without asking, in bytes. Default 64 KiB. Trades a
	// copy at both ends against a round trip. A smaller one, measured:
	// docs/decisions/0010-alltoall-in-16-kib-chunks.md.
	DefaultEager = 64 << 10

	// MaxEagerWindow bounds a pair's first window of eager payload, in bytes. Default 256 KiB,
	// MinEagerWindow at least. Trades memory of receivers against messages that have to ask.
	MaxEagerWindow = 256 << 10

	// MinEagerWindow is the least first window of eager payload, in bytes, of very large jobs.
	// Default 1 KiB. Longer messages ask the first time; who asks gets a wider window (widen).
	MinEagerWindow = 1 << 10

	// DefaultOrphans is how many envelopes are kept per peer for communicators not known here yet.
	// Default 65536.
	DefaultOrphans = 1 << 16
)

// WithDefaults fills in the fields that are zero, in a world of so many processes. Windows shrink
// as the world grows, because a receiver must be able to take them from all others at once.
func (l Limits) WithDefaults(size int) Limits {
	share := receiverPool / max(1, size)
	set := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	last := func(p *time.Duration, v time.Duration) {
		if *p == 0 {
			*p = v
		}
	}
	set(&l.Eager, DefaultEager)
	set(&l.EagerWindow, min(max(share/2, MinEagerWindow), MaxEagerWindow))
	set(&l.DataWindow, min(max(share, MinDataWindow), MaxDataWindow))
	set(&l.EagerPool, receiverPool/2)
	set(&l.Segment, DefaultSegment)
	set(&l.Orphans, DefaultOrphans)
	last(&l.Ping, DefaultPing)
	last(&l.Silence, DefaultSilence)
	last(&l.LastWay, DefaultLastWay)
	last(&l.NoRail, DefaultNoRail)
	last(&l.Standstill, DefaultStandstill)
	last(&l.LongPath, DefaultLongPath)
	l.Eager = min(l.Eager, wire.MaxPayload)
	l.Segment = min(l.Segment, wire.MaxPayload, l.DataWindow/2)
	return l
}
