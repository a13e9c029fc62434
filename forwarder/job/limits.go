package job

import "time"

const (
	// noticeAfterRefusal is the time after a refusal at which waiting ranks are told what is
	// missing, 1 s, because more refusals may follow.
	noticeAfterRefusal = time.Second

	// joinsLeast is the room for the Joins of a job, 1 MiB, and joinShare the additional room for
	// each of its ranks, 8 KiB. An honest Join has a few hundred bytes, or a few thousand with the
	// names and addresses of a hundred forwarders.
	joinsLeast = 1 << 20
	joinShare  = 8 << 10

	// ComesBack is the time for which a rank whose link was closed is awaited, 3 s: a live process
	// returns at once. A longer time reports a dead rank later; with a shorter one a busy host's
	// live rank is given up.
	ComesBack = 3 * time.Second

	// allClosed is the time for which a job that outlives clusters waits for the ranks of a cluster
	// whose links were all closed, 500 ms: the cluster has probably ended, and the others are to
	// know within a second. Live processes return within milliseconds unless their hosts are
	// overloaded.
	allClosed = 500 * time.Millisecond

	// MaxBad is the number of damaged frames that a rank or forwarder may send within badTime, 100
	// in 10 s: as many as bit errors on the network damage. The job fails if more arrive.
	MaxBad  = 100
	badTime = 10 * time.Second

	// maxOrigins is the number of clusters that a log line names, 16.
	maxOrigins = 16

	// maxGaps is the maximum number of missing links that are named at once, 4: further ones have
	// the same cause, or can be fixed later. maxGapText is the maximum length of their text, 1 KiB,
	// which is usually enough for them.
	maxGaps    = 4
	maxGapText = 1 << 10

	// maxGapNotices is the maximum number of Notices about missing links that are accepted from
	// another forwarder for a job, 256: a few for each link of the largest trees. It also bounds
	// the Notices that are forwarded.
	maxGapNotices = 256
)

// Bounds of the ways that the kernel opens.
const (
	// maxDoors is the maximum number of ports of this host that are open for a job, 256: each is
	// needed only while ranks connect. Further requests wait in the queue.
	maxDoors = 256

	// doorTime is the time at which a port is closed after a rank was told its address, 3 s: longer
	// than a rank tries to connect. A port can be used by the host of a rank of the job.
	doorTime = 3 * time.Second

	// doorRest is the minimum time between two occasions at which ports are closed, 200 ms: those
	// of many requests are closed together.
	doorRest = 200 * time.Millisecond

	// maxQueue is the maximum number of pairs of ranks of a job that wait for a port, 1024: they
	// are served within about 12 s. Further requests are ignored.
	maxQueue = 1024

	// maxAsks is the maximum number of ways that a rank may ask for within askTime, 256 in 10 s.
	// Further requests are ignored. An honest rank asks for at most 64 in 3 s.
	maxAsks = 256
	askTime = 10 * time.Second

	// unusedTime is the time without traffic over ways, after a rank was told the first one, at
	// which an administrator is told, 20 s, if ranks were told at least manyWays.
	unusedTime = 20 * time.Second
	manyWays   = 4

	// fastestMessages and fastestBytes bound the traffic over ways that a rank can report, to 1
	// message and 100 bytes for each nanosecond: 100 GB/s.
	fastestMessages = 1
	fastestBytes    = 100
)
