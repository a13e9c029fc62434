package simulation

import (
	"sync/atomic"
	"testing"
)

// TestLossSeeds checks for each seed, in a job that outlives clusters, that all ranks that are left
// end successfully, with right results, and agree on the set of these ranks.
func TestLossSeeds(t *testing.T) {
	var lost, losses, direct atomic.Int64
	runs := runSeeds(t, DrawLosses, func(_ Plan, o Outcome) {
		direct.Add(int64(o.Direct))
		if losses.Add(int64(o.Lost)); o.Lost > 0 {
			lost.Add(1)
		}
	})
	t.Logf("%s; %d of them lost %d clusters; %d links on demand", runs, lost.Load(), losses.Load(), direct.Load())
}
