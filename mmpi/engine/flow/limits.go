package flow

import "time"

const (
	// maxSpans bounds the pieces of a Cover. Default 4096: honest senders have at most a window of
	// segments on their way.
	maxSpans = 1 << 12

	// maxPlace bounds where a segment says that it is, in bytes of an epoch. Default 2^62: more than
	// anybody sends.
	maxPlace = 1 << 62

	// MaxEarly is how far ahead of the next frame an early one may be, in frames. Default 65536.
	MaxEarly = 1 << 16

	// measureFor is the shortest measurement of a Pace, in nanoseconds. Default 1 ms. Trades how
	// soon a rate is known against its accuracy.
	measureFor = time.Millisecond

	// measureShare is the weight of a new measurement, the one before has the rest. Default 0.25.
	measureShare = 0.25
)
