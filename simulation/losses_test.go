package simulation

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/internal/seeds"
)

// TestLossSeeds checks for each seed, in a job that outlives clusters, that all ranks that are left
// end successfully, with right results, and agree on the set of these ranks.
func TestLossSeeds(t *testing.T) {
	from, to := which(t)
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(memoryLimit))
	var next, steps, bad, lost, losses atomic.Uint64
	var virtual atomic.Int64
	next.Store(from)
	begin := time.Now()
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for s := next.Add(1) - 1; s < to && bad.Load() < 5; s = next.Add(1) - 1 {
				p := DrawLosses(s)
				o := Run(p, to == from+1)
				steps.Add(o.Steps)
				virtual.Add(int64(o.Virtual))
				if losses.Add(uint64(o.Lost)); o.Lost > 0 {
					lost.Add(1)
				}
				if o.Err != nil {
					bad.Add(1)
					t.Errorf("%s=%d go test -run TestLossSeeds ./simulation\n%s", seeds.Variable, s, transcript(p))
				}
				if to == from+1 {
					t.Log(o.History)
				}
			}
		})
	}
	all.Wait()
	n := time.Duration(to - from)
	t.Logf("%d runs, %d of which have lost %d clusters; %v each, %v in virtual time, %d steps", to-from, lost.Load(),
		losses.Load(), time.Since(begin)/n, time.Duration(virtual.Load())/n, steps.Load()/(to-from))
}
