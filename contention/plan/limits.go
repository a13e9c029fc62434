package plan

// ExactLimit is the number of sets of ranks up to which Solve uses Exact.
const ExactLimit = 14

// exactSteps is after how many placements of a rank branch and bound gives up, unless it is told
// otherwise.
const exactSteps = 20_000_000

// coarsest is how many vertices a graph is contracted to before it is placed. stalled ends
// contracting early: it goes on only while at most so many in a hundred vertices are left of the
// last graph. Fewer vertices are placed faster, and with less to choose from.
const (
	coarsest = 40
	stalled  = 95
)

// refinePasses bounds the passes of Fiduccia and Mattheyses; they end with the first that gains
// nothing.
const refinePasses = 20

// unreachable weighs traffic between places that cannot reach each other (a zipper node and a
// cluster it does not join): a plan avoids it at nearly any cost, and Check refuses what is left.
const unreachable = 1e6
