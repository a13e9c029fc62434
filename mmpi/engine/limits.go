package engine

import (
	"time"

	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/mmpi/engine/link"
	"github.com/leidenzipper/zipper/mmpi/engine/pt2pt"
)

// Limits are sizes in bytes and times; their defaults are those of packages link and pt2pt. Those
// marked * must be equal in all processes.
type Limits struct {
	Eager       int           // longest message sent without asking; -1: none
	EagerWindow int           // * eager payload a process may have unconsumed at another at first
	DataWindow  int           // * rendezvous payload a process may have on its way to another
	EagerPool   int           // unconsumed eager payload a process grants to all others together, beyond first windows
	Segment     int           // payload of a Data frame
	Orphans     int           // envelopes kept per peer for communicators not known here yet
	Ping        time.Duration // silence after which a link is pinged
	Silence     time.Duration // time without an answer after which a link is lost
	LastWay     time.Duration // the same for the only link left, as long as the network reaches its other host
	NoRail      time.Duration // how long a job of several rails goes on when none is left, or none to some rank
	Standstill  time.Duration // how long all processes wait before the user is warned
	LongPath    time.Duration // there and back, from which on a path is long; -1: paths are not measured
	// of the cluster's own launcher to end this process when a rank of it ends the job; zero: none
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

	// maxCall is the longest name of an MPI function in a report about waiting, in bytes. Default
	// 64; MPI_Neighbor_alltoallw_init_c has 30.
	maxCall = 64

	// lockSpins is how often the lock is tried before the thread sleeps for it. Default 100.
	lockSpins = 100

	// coalesceMost is how many small messages go out with one write at most. Default 32. Trades
	// their latency against system calls.
	coalesceMost = 32

	// coalesceBytes is how many bytes of small messages are held at most, in bytes. Default 16 KiB.
	coalesceBytes = 16 << 10

	// shortNap is how long a thread sleeps while native MPI is waited for, the first shortNaps
	// times, in nanoseconds. Default 5 µs. Nothing wakes the sleeper when it is done; native stages
	// of collectives last microseconds.
	shortNap = 5 * time.Microsecond

	// shortNaps is how many naps are short. Default 64.
	shortNaps = 64

	// longNap is how long a thread sleeps then, in nanoseconds. Default 100 µs.
	longNap = 100 * time.Microsecond

	// byeTimeout bounds the steps of Finish after its barrier, in nanoseconds. Default 10 s: nobody
	// has anything else left to do.
	byeTimeout = 10 * time.Second

	// finishFan is how many processes report to one at the end of the job. Default 32. Trades the
	// work of one process against the levels of the tree.
	finishFan = 32

	// abortTime is how long Abort waits for the links to take its message, in nanoseconds. Default
	// 1 s.
	abortTime = time.Second
)

// withDefaults fills in zero fields. Windows shrink as the world grows: they are what a receiver
// must be able to take from all at once.
func (l Limits) withDefaults(size int) Limits {
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
	set(&l.Eager, pt2pt.DefaultEager)
	set(&l.EagerWindow, min(max(share/2, pt2pt.MinEagerWindow), pt2pt.MaxEagerWindow))
	set(&l.DataWindow, min(max(share, link.MinDataWindow), link.MaxDataWindow))
	set(&l.EagerPool, receiverPool/2)
	set(&l.Segment, link.DefaultSegment)
	set(&l.Orphans, pt2pt.DefaultOrphans)
	last(&l.Ping, link.DefaultPing)
	last(&l.Silence, link.DefaultSilence)
	last(&l.LastWay, link.DefaultLastWay)
	last(&l.NoRail, link.DefaultNoRail)
	last(&l.Standstill, DefaultStandstill)
	last(&l.LongPath, link.DefaultLongPath)
	l.Eager = min(l.Eager, wire.MaxPayload)
	l.Segment = min(l.Segment, wire.MaxPayload, l.DataWindow/2)
	return l
}

// pt2pt and link are the parts of the layers.
func (l Limits) pt2pt() pt2pt.Limits {
	return pt2pt.Limits{Eager: l.Eager, EagerWindow: l.EagerWindow, EagerPool: l.EagerPool, Orphans: l.Orphans}
}

func (l Limits) link() link.Limits {
	return link.Limits{DataWindow: l.DataWindow, EarlyWindow: l.EagerWindow, Segment: l.Segment,
		Ping: l.Ping, Silence: l.Silence, LastWay: l.LastWay, NoRail: l.NoRail, LongPath: l.LongPath, Grace: l.Grace}
}
