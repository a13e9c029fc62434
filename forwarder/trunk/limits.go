package trunk

import "time"

const (
	// Far is from which round trip on a path is a long one, 2 ms: longer than any within a site.
	Far = 2 * time.Millisecond

	// First is how many connections carry bulk over a long path at first, 4. With the buffers that
	// the kernel gives each by default they carry 1 Gbit/s over a round trip of 40 ms, and nine
	// tenths of it over 100 ms.
	First = 4

	// Eager is how many connections do without a congestion control that spreads what it sends over
	// a round trip (BBR), 2: those that small frames and bursts take. Over 40 ms a burst as long as
	// the last one would be on its way for 14 ms more. Once packets are lost they take it, too.
	Eager = 2

	// lossShare: a connection counts as losing packets if one of so many has to be sent again,
	// 20000, in two Measures in a row: a queue that overflows once is nothing.
	lossShare = 20000

	// Burst is how many bytes may wait for the first connection for bulk before the others are
	// used, 1 MiB: the longest message that goes at once. A warm connection sends that in a round
	// trip; others take several round trips for a tenth of it.
	Burst = 1 << 20

	// lastBatch is how many packets of 8 KiB the last batch that warms a connection has, 128: a
	// Burst. That opens the window for two Bursts, of which an idle time may take one. More: a
	// job's start takes a round trip longer for each doubling; fewer: its first long message does.
	lastBatch = 128

	// full: a batch that takes 4 of the shortest round trips has filled the path.
	full = 4

	// Most is how many there may be, 16. More: queues on the way overflow, and one job takes more
	// than its share from others.
	Most = 16

	// Measure is how long the connections are watched before there may be more of them, 2 s: some
	// round trips, and longer than a connection takes to become fast.
	Measure = 2 * time.Second

	// Soon is how long after a loss a connection is dialled again, 20 ms: most of those that are
	// lost were only damaged.
	Soon = 20 * time.Millisecond

	// Redial is the same after a failure to do so, 500 ms. Sooner: a forwarder that is away is
	// asked more often; later: the job waits longer.
	Redial = 500 * time.Millisecond

	// Instead is how long a link has to be cut until the end dials that is not to, 2 s: the other
	// one may have been started again, and have nobody left who would have it dial. Sooner: both
	// do; later: the job waits longer.
	Instead = 2 * time.Second

	// Attempt is how long one attempt to dial a connection takes at most, 3 s: after an outage the
	// kernel would wait longer and longer until it asks again. Some round trips of the longest
	// path.
	Attempt = 3 * time.Second

	// AttemptCarried is the same where a command opens it, 20 s: ssh takes ten round trips.
	AttemptCarried = 20 * time.Second

	// Retry is Redial of one that could not be opened while there are others, 5 s.
	Retry = 5 * time.Second

	// shortShare: more are opened if they were short of room for half of the time that they were
	// busy.
	shortShare = 2

	// busyShare: who was busy for less than half of the time needs no more of them.
	busyShare = 2
)
