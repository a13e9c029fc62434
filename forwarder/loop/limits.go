package loop

import "time"

// How a loop waits. With those of cgo/libmmpi/core/limits.h, by which ranks wait, these numbers
// belong together: change both, and measure both.
const (
	// spinFor: so long nothing is found before the loop sleeps, 200 µs. Both of a ping-pong's ranks
	// are waited for in it, if they spin as well. Longer: latency over slower ranks; shorter:
	// processor time (docs/decisions/0001-spin-and-yield-before-sleeping.md).
	spinFor = 200 * time.Microsecond

	// crowded: whoever gives way for longer than 500 µs shares the core with somebody who computes,
	// and a sleeper is back sooner.
	crowded = 500 * time.Microsecond

	// batchFor: where much comes and nobody is in a hurry, it gathers for 500 µs. Longer: a job
	// starts later; shorter: more processor time for each who joins
	// (docs/decisions/0029-joins-are-batched.md).
	batchFor = 500 * time.Microsecond

	// maxGap: much comes if what two looks found was less than 1 ms apart, twice batchFor.
	maxGap = 2 * batchFor

	// maxPenalty: at most so many waits without spinning follow one another on a crowded core.
	maxPenalty = 1024

	// firstPenalty: so many follow the first time that the core is found crowded.
	firstPenalty = 16
)

// Where the loop's thread stands among others that want its core
// (docs/decisions/0022-forwarder-runs-before-ranks.md).
const (
	bulkNice  = 3                     // nice value while large segments come fast: behind the ranks, which copy
	bulkEvery = 10 * time.Millisecond // time between two looks at the rate
	bulkRate  = 1e9                   // bytes per second that put the loop there; a quarter of it keeps it there
)

// maxEvents is how many descriptors one look at epoll reports. More wait for the next look: work
// that is posted and ticks are late by the time that so many take.
const maxEvents = 128
