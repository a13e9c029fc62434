package standing

import "time"

// What stands in front of a connection (Queue). Measured:
// docs/decisions/0021-short-send-queues.md.
const (
	// ahead is how much a bounded socket holds besides what its path does, in nanoseconds. Default
	// 100 µs. Trades the wait of small messages behind large ones against how soon the writer has
	// to come back.
	ahead = 100 * time.Microsecond

	// leastHeld and mostHeld are the bounds of the bound, in bytes. Default 16 KiB: eleven packets;
	// and 384 KiB: what Linux lets everybody set, less a little.
	leastHeld = 16 << 10
	mostHeld  = 384 << 10

	// standing and standingShare say that a queue stands: a round trip takes 0.5 ms, and eight
	// times as long as the shortest. Shorter: a process that is slow to get a core is taken for a
	// slow link; longer: small messages wait longer before something is done.
	standing      = 500 * time.Microsecond
	standingShare = 8

	// nearTrip is the shortest round trip of paths that are left alone, in nanoseconds. Default 2
	// ms: what they hold is most of what waits there.
	nearTrip = 2 * time.Millisecond

	// stands is how many measurements in a row have to say so. Default 3.
	stands = 3

	// measureFor is the shortest measurement, in nanoseconds during which something was
	// unacknowledged. Default 20 ms: acknowledgements come in bursts of up to some milliseconds.
	measureFor = 20 * time.Millisecond

	// steady is the share of a measurement for which nothing may be unacknowledged, if its rate is
	// to be that of the path. Default 8: an eighth.
	steady = 8

	// fastest is the rate above which nothing is done, in bytes per second. Default 10 Gbit/s: a
	// megabyte takes less than 1 ms there, and processors are the limit.
	fastest = 1250e6

	// forget is the share of the best rate that is forgotten at each measurement. Default 1/256.
	forget = 1. / 256

	// slower is the share of the best rate below which a connection has become slower. Default
	// 0.9.
	slower = 0.9

	// holdFor and longestHold say for how many measurements a bound that was too low is not
	// lowered: 8, twice as many when it is too low again, up to 1024. Each time costs what the link
	// could have carried until its writer came back.
	holdFor     = 8
	longestHold = 1024

	// leaveFor is for how many measurements a connection that could not be bounded is left alone.
	// Default 64.
	leaveFor = 64

	// askAfter and askFull say how often the kernel is asked: after so many bytes, or so often
	// that the socket was full. Default 1 MiB and 16.
	askAfter = 1 << 20
	askFull  = 16
)
