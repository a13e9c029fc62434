package standing

import "time"

// These are the limits of the queue in front of a connection (Queue), as measured in
// docs/decisions/0021-short-send-queues.md.
const (
	// ahead is the amount that a bounded socket holds in addition to the content of its path, in
	// nanoseconds of its rate. Default 100 µs. With more, small messages wait longer behind large
	// ones; with less, the writer has to write again sooner.
	ahead = 100 * time.Microsecond

	// leastHeld and mostHeld limit the bound, in bytes. Default 16 KiB: eleven packets; and 384
	// KiB: a little less than the limit of Linux for ordinary users.
	leastHeld = 16 << 10
	mostHeld  = 384 << 10

	// standing and standingShare define a standing queue: a round trip takes 0.5 ms, and eight
	// times as long as the shortest. Shorter: a process that waits for a core is taken for a slow
	// link; longer: small messages wait longer before the bound is set.
	standing      = 500 * time.Microsecond
	standingShare = 8

	// nearTrip is the round trip from which paths are not bounded, in nanoseconds. Default 2 ms:
	// the path itself holds most of the waiting bytes.
	nearTrip = 2 * time.Millisecond

	// stands is the number of consecutive measurements that must find a queue. Default 3.
	stands = 3

	// measureFor is the shortest measurement, in nanoseconds with unacknowledged bytes. Default 20
	// ms: acknowledgements come in bursts of up to some milliseconds.
	measureFor = 20 * time.Millisecond

	// steady is the divisor of a measurement that gives the longest time without unacknowledged
	// bytes, if its rate is to be that of the path. Default 8: an eighth.
	steady = 8

	// fastest is the rate above which no bound is set, in bytes per second. Default 10 Gbit/s: a
	// megabyte takes less than 1 ms there, and processors are the limit.
	fastest = 1250e6

	// forget is the part of the best rate that is forgotten at each measurement. Default 1/256.
	forget = 1. / 256

	// slower is the part of the best rate below which a connection counts as slower. Default 0.9.
	slower = 0.9

	// holdFor and longestHold are the numbers of measurements for which a bound that was too low is
	// not lowered: 8, twice as many each time that it is too low again, up to 1024. Each time the
	// link is idle until its writer comes back.
	holdFor     = 8
	longestHold = 1024

	// leaveFor is the number of measurements for which a connection that could not be bounded is
	// left alone. Default 64.
	leaveFor = 64

	// askAfter and askFull determine how often the kernel is asked: after so many bytes, or after
	// the socket was full so often. Default 1 MiB and 16.
	askAfter = 1 << 20
	askFull  = 16
)
