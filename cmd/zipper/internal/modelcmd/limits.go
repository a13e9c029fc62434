package modelcmd

// mostForGains and mostForCut bound the computation for large jobs to seconds. Beyond them two
// results are left out: the savings by doubling each resource (limited in messages), and the set of
// ranks whose removal leaves no traffic between clusters (limited in pairs of ranks that
// communicate).
const (
	mostForGains = 20_000
	mostForCut   = 20_000
)

// mostCompute is the largest factor of --compute; the error message names it.
const mostCompute = 1e6

// mostListed, mostPlaces and longestOrder bound the part of a plan that users see: ranks of a set,
// ranks with their hosts, and characters of an order for a batch script. JSON and --output have the
// whole plan.
const (
	mostListed   = 32
	mostPlaces   = 64
	longestOrder = 200
)
