package loop

import (
	"runtime"
	"slices"
	"time"
)

// DefaultLoops returns the default number of event loops of a process, 1 to 4: one for two CPUs,
// because loops that spin keep a CPU from others.
func DefaultLoops() int { return max(1, min(runtime.NumCPU()/2, maxLoops)) }

// Tick returns Config.Tick for a loop that checks time-outs: at most 1 s, and a quarter of the
// shortest one.
func Tick(timeouts ...time.Duration) time.Duration {
	return min(maxTick, slices.Min(timeouts)/ticksIn)
}
