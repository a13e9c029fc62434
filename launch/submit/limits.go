package submit

import "time"

const (
	// lookTime is the time between looks at a batch job, 2 s: each look is a command at its
	// cluster.
	lookTime = 2 * time.Second

	// queueTime is the time between looks at halves that wait in their queues to begin together, 10
	// s: they may wait for days.
	queueTime = 10 * time.Second

	// gateSlack is how much longer than the idle limit a half waits on its nodes for zipper submit,
	// 10 min. It then ends by itself, because zipper submit must have ended or lost its connection.
	gateSlack = 10 * time.Minute

	// endTime is how long a batch system that does not answer is asked to cancel a half, 1 min, and
	// commitTime how long it is told that the halves go on, 5 min: those that know it wait so long.
	endTime    = time.Minute
	commitTime = 5 * time.Minute

	// maxDrift is the difference between clocks, in seconds, above which a cluster's clock has been
	// set, or summer time has begun.
	maxDrift = 30

	// notifyTime bounds the command of --notify, 10 s. A status is stale after staleTime, 3 min,
	// because a look takes 30 s at most.
	notifyTime = 10 * time.Second
	staleTime  = 3 * time.Minute

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
