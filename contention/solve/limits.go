package solve

// The numbers of the rule sharing.Buffered (buffered.go). They trade the time of a run for nearness
// to what is measured; docs/howto/predicting.md says how near that is.
const (
	// piece is what the fastest connection moves in the shortest step, bytes. Programs move pieces,
	// too, so finer steps would not be truer.
	piece = 128 << 10
	// mostSteps is into how many steps of equal length a run is divided at most, and stepsPerGrain,
	// divided by the grain, the same with one.
	mostSteps     = 4000
	stepsPerGrain = 10
	// leastStep is the shortest step, in parts of the longest.
	leastStep = 1e-4
	// manyQueues send queues together let a step, with a grain, be as long as it may: the more
	// there are, the less does one matter.
	manyQueues = 5000
	// windowSteps is how many steps a window lasts at least.
	windowSteps = 4
	// rateRounds bounds how often the rates of one step are worked out anew.
	rateRounds = 8
)
