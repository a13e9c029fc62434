package flow

import "time"

const (
	// maxSpans bounds the pieces of a Cover. Default 4096: honest senders have at most a window of
	// segments on their way.
	maxSpans = 1 << 12

	// maxPlace bounds where a segment says that it is, in bytes of an epoch. Default 2^62: more
	// than anybody sends.
	maxPlace = 1 << 62

	// MaxEarly is how far ahead of the next frame an early one may be, in frames. Default 65536.
	MaxEarly = 1 << 16

	// firstEchoes is how many echoes tell how long a path is. Default 3: the first ones may find a
	// process that is just starting.
	firstEchoes = 3

	// echoEvery is the time between two echoes over a long path, in nanoseconds. Default 1 s: so
	// long may a short path be taken for one.
	echoEvery = time.Second

	// echoLost is when an echo that has not come back is sent again, in nanoseconds. Default 10 s.
	echoLost = 10 * time.Second

	// tellShare: credit is told when so many-th of a window is free again. Default 4. Trades frames
	// against the part of a window that is of no use.
	tellShare = 4

	// tellShareLong is tellShare on a long path, where the window is what holds a flow up. Default
	// 8.
	tellShareLong = 8

	// pathShare: a window is so many times what its path delivers in a round trip. Default 2: what
	// is on its way, and as much again while the next credit comes. So it doubles in each round
	// trip in which it was the limit.
	pathShare = 2

	// measureFor is the shortest measurement of a Pace, in nanoseconds. Default 1 ms. Trades how
	// soon a rate is known against its accuracy.
	measureFor = time.Millisecond

	// measureShare is the weight of a new measurement, the one before has the rest. Default 0.25.
	measureShare = 0.25
)
