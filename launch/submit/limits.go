package submit

import "time"

const (
	// lookTime is how often a batch job is looked at, 2 s: a command at its cluster each time.
	lookTime = 2 * time.Second

	// graceTime is how long other halves have to end by themselves once one has failed, 10 s, so
	// that what they print on that is not cut off.
	graceTime = 10 * time.Second

	// shellTime bounds a command at a cluster, 30 s, and shellDelay how long its pipes stay open.
	shellTime  = 30 * time.Second
	shellDelay = time.Second

	// maxUnanswered is after how many commands in a row without an answer a cluster is out of
	// reach: a minute or more.
	maxUnanswered = 30
)
