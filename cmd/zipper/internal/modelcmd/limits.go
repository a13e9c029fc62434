package modelcmd

// What is left out of a job that is too large for it to take seconds: trying what the doubling of
// each resource would save, by messages, and the set of ranks whose removal leaves nothing to
// cross, by pairs of ranks that talk.
const (
	mostForGains = 20_000
	mostForCut   = 20_000
)

// mostCompute is the greatest factor of --compute, which its message names.
const mostCompute = 1e6

// How much of a plan people are shown: ranks of a set, ranks with their hosts, and characters of an
// order for a batch script. JSON and --output have all of it.
const (
	mostListed   = 32
	mostPlaces   = 64
	longestOrder = 200
)
