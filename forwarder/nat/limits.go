package nat

import "time"

const (
	// MaxWays is the maximum number of ways of a table: each takes a port of its address, and a
	// file descriptor that reserves the port.
	MaxWays = 1024

	// atOnce is the number of ways in one message to the kernel, which limits a list to 64 KiB, and
	// a message to the socket's buffer.
	atOnce = 256

	// answerTime is the time-out of the kernel's answers, 2 s. It usually answers at once. A table
	// without an answer is lost, with the connections that it forwards, and the next request makes
	// another one.
	answerTime = 2 * time.Second

	// retryTime is the pause after a failure to make a table, 1 s.
	retryTime = time.Second
)

// lowestPort is the lowest port to which ways may lead: lower ports are for a system's services.
const lowestPort = 1024
