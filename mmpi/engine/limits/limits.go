// Package limits has the limits on sizes and times that several layers of an engine use, and their
// defaults. A limit that only one layer uses is in the limits.go of its package.
package limits

import (
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
)

// Limits has sizes, in bytes, and times. EagerWindow and DataWindow must be equal in all processes.
type Limits struct {
	Eager       int // the longest message sent without asking; -1: all messages ask
	EagerWindow int // the eager payload that a process may have unconsumed at another at first
	DataWindow  int // the bytes of segments that a process may have in flight to another at first
	EagerPool   int // the unconsumed eager payload granted to all others together, beyond first windows
	Segment     int // the payload of a Data frame
	Orphans     int // the number of envelopes kept per peer for communicators that are not known here yet
	DirectAfter int // the weight of the frames after which a pair asks for a direct link (package demand)

	Ping       time.Duration // the silence after which a link is pinged
	Silence    time.Duration // the time without an answer after which a link is lost
	LastWay    time.Duration // Silence of the only link left, while the network reaches its other host
	NoRail     time.Duration // the time that a job goes on without any rail, or without any to some rank
	Standstill time.Duration // the time that all processes wait before the user is warned
	LongPath   time.Duration // the round-trip time from which a path is long; -1: paths are not measured

	// DirectPause is the pause after the first request of a pair for a direct link. It doubles with
	// each request, until a link lasts.
	DirectPause time.Duration

	// Grace is the time that the cluster's own launcher has to end this process when a rank of the
	// cluster ends the job. 0: the process ends at once.
	Grace time.Duration
}

const (
	// receiverPool is the eager payload, and also the payload of segments, that all others together
	// may have unconsumed at a process, in bytes. Default 64 MiB; half of it is granted on demand
	// (EagerPool). Trades memory against messages that wait. A window is a share of it, so windows
	// shrink as the world grows.
	receiverPool = 64 << 20

	// DefaultStandstill is the time that all processes wait, without a message, before the user is
	// warned, in nanoseconds. Default 60 s, or the job's patience. Trades the delay of the warning
	// against warnings about programs that are slow.
	DefaultStandstill = time.Minute

	// DefaultSegment is the payload of a Data frame, in bytes. Default 128 KiB. Trades the wait of
	// frames behind a segment, in a forwarder that stores it, against headers and turns. Measured:
	// docs/decisions/0018-splice-whole-segments.md.
	DefaultSegment = wire.SegmentSize

	// MaxDataWindow bounds a pair's window of segments at first, in bytes. Default 4 MiB,
	// MinDataWindow at least. Trades memory of forwarders against round trips until the window fits
	// the path.
	MaxDataWindow = 4 << 20

	// MinDataWindow is the least window of segments of a pair, in bytes. Default 256 KiB: two
	// segments.
	MinDataWindow = 256 << 10

	// DefaultLongPath is the round-trip time from which on a path is long, in nanoseconds. Default
	// 2 ms, which is longer than any path inside a site, and than the answer of a process there.
	DefaultLongPath = 2 * time.Millisecond

	// DefaultPing is the silence after which a link is pinged, in nanoseconds. Default 2 s.
	DefaultPing = 2 * time.Second

	// DefaultSilence is the time without an answer after which a link is lost, in nanoseconds.
	// Default 6 s. Trades the time until a cut network is detected against links that are lost
	// because a host is slow.
	DefaultSilence = 6 * time.Second

	// DefaultLastWay is DefaultSilence for the only way out, in nanoseconds. Default 1 min: the
	// process at the other end is stopped, or waits for a core.
	DefaultLastWay = time.Minute

	// DefaultNoRail is the time that a job goes on without any rail, in nanoseconds. Default 10 s.
	// Trades surviving the restart of a forwarder against a job that hangs.
	DefaultNoRail = 10 * time.Second

	// DefaultEager is the longest message sent without asking, in bytes. Default 64 KiB. Trades a
	// copy at both ends against a round trip. A smaller limit was measured in
	// docs/decisions/0010-alltoall-in-16-kib-chunks.md.
	DefaultEager = 64 << 10

	// MaxEagerWindow bounds a pair's first window of eager payload, in bytes. Default 256 KiB,
	// MinEagerWindow at least. Trades memory of receivers against messages that have to ask.
	MaxEagerWindow = 256 << 10

	// MinEagerWindow is the least first window of eager payload, in bytes, of very large jobs.
	// Default 1 KiB. Longer messages ask the first time, and the answer widens the window (widen).
	MinEagerWindow = 1 << 10

	// DefaultDirectAfter is the weight of frames after which a pair asks for a direct link, in
	// bytes. Default 2 MiB. Trades the time over the forwarder against links that are hardly used.
	DefaultDirectAfter = 2 << 20

	// DefaultDirectPause is the pause after a pair's first request for a direct link, in
	// nanoseconds. Default 1 s.
	DefaultDirectPause = time.Second

	// DefaultOrphans is the number of envelopes kept per peer for communicators not known here yet.
	// Default 65536.
	DefaultOrphans = 1 << 16
)

// pingsWithin is the least number of pings within the time of Limits.Notice. Default 4. With fewer,
// a cut network is noticed later than it need be; with more, idle links carry more frames.
const pingsWithin = 4

// Notice shortens Ping and Silence, where their defaults are longer, so that a link that is silent
// for the time d is given up soon afterwards.
func (l *Limits) Notice(d time.Duration) {
	l.Ping, l.Silence = min(DefaultPing, d/pingsWithin), min(DefaultSilence, d)
}

// WithDefaults returns the limits with defaults for the fields that are zero, in a world of size
// processes. Windows shrink as the world grows, because a receiver must be able to take them from
// all others at once.
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
	set(&l.DirectAfter, DefaultDirectAfter)
	last(&l.Ping, DefaultPing)
	last(&l.Silence, DefaultSilence)
	last(&l.LastWay, DefaultLastWay)
	last(&l.NoRail, DefaultNoRail)
	last(&l.Standstill, DefaultStandstill)
	last(&l.LongPath, DefaultLongPath)
	last(&l.DirectPause, DefaultDirectPause)
	l.Eager = min(l.Eager, wire.MaxPayload)
	l.Segment = min(l.Segment, wire.MaxPayload, l.DataWindow/2)
	return l
}
