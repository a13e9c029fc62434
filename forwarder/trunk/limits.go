package trunk

import "time"

const (
	// Far is the round trip above which a path is a long one, 2 ms: longer than any within a site.
	Far = 2 * time.Millisecond

	// First is the initial number of connections that carry bulk over a long path, 4. With the
	// default buffers of the kernel they carry 1 Gbit/s over a round trip of 40 ms, and nine tenths
	// of it over 100 ms.
	First = 4

	// Eager is the number of connections without a congestion control that spreads bursts over a
	// round trip (BBR), 2: those for small frames and for bursts. Over 40 ms BBR would delay the
	// end of a burst as long as the last one by 14 ms. These connections use it, too, once they
	// lose packets.
	Eager = 2

	// lossShare is the inverse of the share of retransmitted packets from which a connection counts
	// as losing packets, 20000, if reached in two Measures in a row: a single overflow of a queue
	// does not count.
	lossShare = 20000

	// Burst is the number of bytes queued for the first bulk connection from which the others are
	// used, 1 MiB: the longest message that is sent at once. A warm connection sends that in a
	// round trip; the others take several round trips for a tenth of it.
	Burst = 1 << 20

	// lastBatch is the number of packets of 8 KiB in the last batch that warms a connection, 128: a
	// Burst. That opens the window for two Bursts, one of which an idle time may close again. More
	// packets lengthen a job's start by a round trip for each doubling; fewer lengthen its first
	// long message.
	lastBatch = 128

	// full is the number of shortest round trips after which a batch has filled the path, 4.
	full = 4

	// Most is the maximum number of bulk connections, 16. With more, queues on the path overflow,
	// and one job takes more than its share from others.
	Most = 16

	// Measure is the interval at which the use of the connections is measured to decide about more
	// of them, 2 s: several round trips, and longer than a connection takes to become fast.
	Measure = 2 * time.Second

	// Soon is the pause before a lost connection is redialled, 20 ms: most lost connections were
	// only damaged.
	Soon = 20 * time.Millisecond

	// Redial is the pause after a failed attempt, 500 ms. A shorter pause burdens an unreachable
	// forwarder; with a longer one the job waits longer.
	Redial = 500 * time.Millisecond

	// DialForPeer is the time after which the end that usually does not dial dials a link that is
	// cut, 2 s: the other end may have been restarted, and have no rank left for which to dial.
	// After a shorter time both ends dial; after a longer one the job waits longer.
	DialForPeer = 2 * time.Second

	// Attempt is the time-out of one attempt to dial, 3 s: several round trips of the longest path.
	// After an outage the kernel would wait longer and longer until it tries again.
	Attempt = 3 * time.Second

	// AttemptCarried is the time-out of an attempt by a command, 20 s: ssh takes ten round trips.
	AttemptCarried = 20 * time.Second

	// Retry is the pause after a failed attempt while other connections are in use, 5 s.
	Retry = 5 * time.Second

	// shortShare is the inverse of the share of its busy time from which a connection that was
	// short of room asks for more connections.
	shortShare = 2

	// busyShare is the inverse of the share of the time from which a connection counts as busy.
	busyShare = 2
)
