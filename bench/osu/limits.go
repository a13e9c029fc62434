package osu

// The largest message of a benchmark if the user names none, bytes: to one rank, and of
// collectives, which take as much for every rank. As in the original.
const (
	largestToOne = 4 << 20
	largestToAll = 1 << 20
)

// largeMessage in bytes: above it the original does fewer iterations.
const largeMessage = 8192

// The original's iterations before the measured ones, for small and large messages; in bandwidth
// tests they are windows.
const (
	warmupSmall, warmupLarge               = 100, 10
	warmupSmallWindows, warmupLargeWindows = 10, 2
)

// mostIterations bounds one repetition, and shortestCall, in seconds, is what a call is taken to
// last at least when the iterations are reckoned from how long one took: a clock may not have
// moved.
const (
	mostIterations = 10_000
	shortestCall   = 1e-7
)
