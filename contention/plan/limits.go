package plan

// ExactLimit is the number of sets of ranks up to which Solve uses Exact.
const ExactLimit = 14

// exactSteps is the default number of placements of a rank after which branch and bound gives up.
const exactSteps = 20_000_000

// coarsest is the number of vertices to which a graph is contracted before it is placed. stalled
// ends contracting early: a contraction must leave at most this percentage of the vertices. Fewer
// vertices are placed faster, but leave fewer choices.
const (
	coarsest = 40
	stalled  = 95
)

// refinePasses bounds the passes of Fiduccia and Mattheyses. The passes also end with the first one
// that gains nothing.
const refinePasses = 20

// unreachable is the weight of traffic between places that cannot reach each other (a zipper node
// and a cluster that it does not join). A plan avoids such traffic at nearly any cost, and Check
// returns an error if any is left.
const unreachable = 1e6
