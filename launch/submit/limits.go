package submit

import "time"

const (
	// lookTime is the time between looks at a batch job, 2 s: each look is a command at its
	// cluster.
	lookTime = 2 * time.Second

	// graceTime is how long other halves have to end by themselves once one has failed, 10 s, so
	// that their last output is not cut off.
	graceTime = 10 * time.Second

	// shellTime bounds a command at a cluster, 30 s, and shellDelay how long its pipes stay open.
	shellTime  = 30 * time.Second
	shellDelay = time.Second

	// maxUnanswered is the number of commands in a row without an answer after which a cluster is
	// out of reach: a minute or more.
	maxUnanswered = 30
)
