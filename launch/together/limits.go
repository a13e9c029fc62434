package together

import "time"

const (
	// DefaultTolerance is how far the estimates of halves may differ to have met, 2 min: a batch
	// system plans every 30 s or so, and a running half wastes no more than that.
	DefaultTolerance = 2 * time.Minute

	// DefaultIdleLimit is how long a half that runs waits for the others, 5 min.
	DefaultIdleLimit = 5 * time.Minute

	// lead is how long before its estimated start a half is deferred if another one is later, 10
	// min. Until then it stays in the queue and gets older.
	lead = 10 * time.Minute

	// settle is how long a late estimate is waited for before an early half is requeued, 40 s: the
	// batch system has made another plan by then.
	settle = 40 * time.Second

	// bound is the longest time for which a half is deferred at once, 1 h. The half comes back to
	// the queue by itself then, although this process may have ended. It also bounds the wait for a
	// half that does not come back although it is told to, and for a batch system out of reach.
	bound = time.Hour

	// repeat is the time after which an action without effect is repeated, 60 s.
	repeat = time.Minute

	// maxDoublings bounds the time for which a requeued half steps back: the tolerance, doubled
	// with each attempt, and at most bound.
	maxDoublings = 10
)
