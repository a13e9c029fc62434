package solve

// These are the numbers of the rule sharing.Buffered (buffered.go). Finer steps are closer to
// measurements but take longer; docs/howto/predicting.md has the differences.
const (
	// piece is the number of bytes that the fastest connection moves in the shortest step. Programs
	// also move pieces, so finer steps would not be more exact.
	piece = 128 << 10
	// mostSteps is the largest number of equal steps of a run. With a grain it is at most
	// stepsPerGrain divided by the grain.
	mostSteps     = 4000
	stepsPerGrain = 10
	// leastStep is the shortest step, relative to the longest one.
	leastStep = 1e-4
	// manyQueues is the number of send queues from which a step, with a grain, may have its full
	// length: the more there are, the less each one matters.
	manyQueues = 5000
	// windowSteps is the smallest number of steps in a window.
	windowSteps = 4
	// rateRounds bounds how often the rates of one step are computed again.
	rateRounds = 8
)
