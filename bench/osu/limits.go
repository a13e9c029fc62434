package osu

// largestToOne and largestToAll are the largest messages of a benchmark if the user names none, in
// bytes: to one rank, and of collectives, which need as much for every rank. They are the
// original's.
const (
	largestToOne = 4 << 20
	largestToAll = 1 << 20
)

// largeMessage is the size in bytes above which the original does fewer iterations.
const largeMessage = 8192

// warmupSmall and the others are the original's iterations before the measured ones, for small and
// large messages; in bandwidth tests they are windows.
const (
	warmupSmall, warmupLarge               = 100, 10
	warmupSmallWindows, warmupLargeWindows = 10, 2
)

// mostIterations bounds one repetition. shortestCall, in seconds, is the least time of a call that
// is assumed when the iterations are computed from the time of one call, because a clock may not
// have advanced.
const (
	mostIterations = 10_000
	shortestCall   = 1e-7
)
