package monitor

import "time"

// DefaultPort is the port at which a forwarder shows its status.
const DefaultPort = 7476

// Bounds of an answer at /status, in bytes.
const (
	// maxStatus is the longest answer that Fetch reads, 16 MiB: thousands of jobs.
	maxStatus = 16 << 20

	// maxAnswer is the length at which the lists of an answer end, 15 MiB. The rest of the answer
	// has a few KiB, so the whole stays below maxStatus.
	maxAnswer = 15 << 20

	// pastShare is the inverse of the part of maxAnswer that jobs which have ended may take, 1/8.
	pastShare = 8
)

// aliveWithin is the time within which a working forwarder responds: many times the time that a
// busy one needs.
const aliveWithin = 2 * time.Second

// Time-outs of clients. With longer ones, slow or hostile clients occupy descriptors.
const (
	headerTime = 5 * time.Second  // to send the head of its request
	writeTime  = 30 * time.Second // to take the answer
	idleTime   = time.Minute      // until the next request
)

// Bounds for clients.
const (
	// maxConns is the maximum number of connections of the status address, 40: maxWatchers pages,
	// and 8 others. A larger number leaves fewer of the descriptors that package forwarder reserves
	// (otherFiles) for its loops and listeners; with a smaller one simultaneous clients close each
	// other's connections.
	maxConns = maxWatchers + 8

	// headerBytes is the longest head of a request, 16 KiB. Browsers send a few.
	headerBytes = 16 << 10
)

// Bounds of the number of series, which a Prometheus keeps for its retention time.
const (
	// maxJobs is the number of jobs with series of their own, 64; further ones are in the totals.
	maxJobs = 64

	// maxPeers is the number of other forwarders with series of their own, 32.
	maxPeers = 32
)

// Bounds of the histograms' buckets, in seconds or bytes.
var (
	waitBuckets   = []float64{1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10}
	lengthBuckets = []float64{1 << 10, 16 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20}
	gatherBuckets = []float64{0.1, 0.3, 1, 3, 10, 30, 60, 300, 1800}
	ranBuckets    = []float64{1, 10, 60, 600, 3600, 6 * 3600, 24 * 3600}
)

// The page for users.
const (
	// step is the interval at which the forwarder's status is read, 2 s. With a shorter one rates
	// fluctuate and pages cost more; with a longer one users wait.
	step = 2 * time.Second

	// ratesKept is the number of steps in the page's chart, five minutes.
	ratesKept = 150

	// rateSteps and minuteSteps are the numbers of steps over which rates of jobs are taken, 6 s
	// and a minute.
	rateSteps   = 3
	minuteSteps = 30

	// maxWatchers is the maximum number of open pages, 32: each takes a connection.
	maxWatchers = 32

	// jobsShown is the maximum number of jobs on a page, 100; further ones are counted.
	jobsShown = 100

	// maxView is the maximum length of a page's update in a step, 4 MiB: room for jobsShown jobs
	// with all their directions if names have the usual length.
	maxView = 4 << 20
)
