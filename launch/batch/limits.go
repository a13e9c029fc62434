package batch

import "time"

const (
	// slurmTime bounds the questions to Slurm's controller, 2 s. Each takes 50 ms on a controller
	// that works well, and a job that is ended has its KillWait, 30 s by default.
	slurmTime = 2 * time.Second

	// endingTime is how long a process that was signalled waits for the reason, 1.5 s, and askAgain
	// is the time between its questions. The forwarder waits for 3 s for ranks whose links were
	// closed.
	endingTime = 1500 * time.Millisecond
	askAgain   = 100 * time.Millisecond

	// waitDelay is how long a command's pipes may stay open after its end.
	waitDelay = 200 * time.Millisecond
)
