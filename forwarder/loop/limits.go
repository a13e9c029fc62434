package loop

import "time"

// Parameters of waiting. They belong together with those of cgo/libmmpi/core/limits.h, by which
// ranks wait: change both, and measure both.
const (
	// spinFor is the time without events after which the loop sleeps, 200 µs. It covers the wait
	// for both ranks of a ping-pong if they spin as well. A longer time helps the latency over
	// slower ranks; a shorter one saves processor time
	// (docs/decisions/0001-spin-and-yield-before-sleeping.md).
	spinFor = 200 * time.Microsecond

	// crowded is the duration of a yield above which the core is shared with a thread that
	// computes, 500 µs; a sleeping thread gets it back sooner.
	crowded = 500 * time.Microsecond

	// batchFor is the time for which frequent events accumulate while no source is in a hurry, 500
	// µs. With a longer time a job starts later; with a shorter one each join takes more processor
	// time (docs/decisions/0029-joins-are-batched.md).
	batchFor = 500 * time.Microsecond

	// maxGap is the maximum time between two looks with events for events to count as frequent, 1
	// ms: twice batchFor.
	maxGap = 2 * batchFor

	// maxPenalty is the maximum number of consecutive waits without spinning on a crowded core.
	maxPenalty = 1024

	// firstPenalty is that number after the core is first found crowded.
	firstPenalty = 16
)

// Scheduling of the loop's thread among others that want its core
// (docs/decisions/0022-forwarder-runs-before-ranks.md).
const (
	// the nice value while large segments are frequent: behind the ranks, which copy
	bulkNice  = 3
	bulkEvery = 10 * time.Millisecond // the interval at which the rate is checked
	// the rate in bytes per second that lowers the priority; a quarter of it keeps the priority low
	bulkRate = 1e9
)

// Parameters of ticks.
const (
	// maxTick is the maximum time between two ticks, 1 s.
	maxTick = time.Second

	// ticksIn is the number of ticks within the shortest time-out. With more, time-outs are more
	// exact; with fewer, idle loops wake less often.
	ticksIn = 4
)

// maxLoops is the maximum of DefaultLoops; more loops do not pay before the network is the limit.
const maxLoops = 4

// maxEvents is the maximum number of descriptors that one look at epoll reports. Others wait for
// the next look: posted work and ticks are delayed by the time to handle that many.
const maxEvents = 128
