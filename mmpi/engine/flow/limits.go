package flow

import "time"

const (
	// maxSpans bounds the pieces of a Cover. Default 4096: honest senders have at most a window of
	// segments in flight.
	maxSpans = 1 << 12

	// maxPlace bounds the position of a segment, in bytes of an epoch. Default 2^62: more than any
	// process sends.
	maxPlace = 1 << 62

	// MaxEarly is the largest distance of an early frame from the next one, in frames. Default
	// 65536.
	MaxEarly = 1 << 16

	// firstEchoes is the number of echoes that determine the length of a path. Default 3: the first
	// ones may find a process that is just starting.
	firstEchoes = 3

	// echoEvery is the time between two echoes over a long path, in nanoseconds. Default 1 s: a
	// short path may be taken for a long one for that time.
	echoEvery = time.Second

	// echoLost is the time after which an echo without an answer is sent again, in nanoseconds.
	// Default 10 s.
	echoLost = 10 * time.Second

	// tellShare is the divisor of a window that gives the free part for which credit is sent.
	// Default 4. A larger one sends more frames, a smaller one leaves more of the window unused.
	tellShare = 4

	// tellShareLong is tellShare on a long path, where the window limits a flow. Default 8.
	tellShareLong = 8

	// pathShare is the ratio of a window to the bytes that its path delivers in a round trip.
	// Default 2: the bytes in flight, and as many while the next credit arrives. So the window
	// doubles in each round trip in which it was the limit.
	pathShare = 2

	// measureFor is the shortest measurement of a Pace, in nanoseconds. Default 1 ms. With a longer
	// one the rate is known later, but more exactly.
	measureFor = time.Millisecond

	// measureShare is the weight of a new measurement; the previous value has the rest. Default
	// 0.25.
	measureShare = 0.25
)
