package nat

import "time"

const (
	// MaxWays is how many ways a table has: each takes a port of its address, and a file descriptor
	// that keeps it.
	MaxWays = 1024

	// atOnce is how many ways are in one message to the kernel. It takes 64 KiB for a list, and for
	// a message as much as the socket's buffer has.
	atOnce = 256

	// answerTime is how long the kernel may take to answer, 2 s. It answers at once; a table that
	// does not is given up, and the jobs that wait for it start without.
	answerTime = 2 * time.Second
)

// lowestPort is the lowest port that ways lead to: those below are for a system's services.
const lowestPort = 1024
